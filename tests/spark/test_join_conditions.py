"""Joins on sets, weighted sets and functions in real queries: exact, or a clear refusal."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.spark.flows import EPOCH_US, PATIENCE_SECONDS, Sink, add_files, read_files

import tidegate as tg
from tidegate.api.joins.conditions import Condition

SCHEMA = "ts timestamp, n int, k int, items array<string>, weights map<string,double>, x double"
SECONDS = 40
WINDOW = 6
Record = dict[str, Any]


def records(seed: int, count: int = 160) -> list[Record]:
    """Rows in the order of their times; some sets are null, some empty, some name an item twice."""
    drawn = random.Random(seed)
    rows = []
    for n in range(count):
        items = [f"i{drawn.randrange(15)}" for _ in range(drawn.randrange(6))]
        weights = {item: drawn.choice([0.5, 1.5, -1.0, float("nan")]) for item in items}
        known = drawn.random() > 0.05
        rows.append(
            {
                "second": SECONDS * n // count,
                "n": n,
                "k": drawn.randrange(3),
                "items": items if known else None,
                "weights": weights if known else None,
                "x": drawn.random(),
            }
        )
    return rows


LEFT, RIGHT = records(1), records(2)


def tables(rows: list[Record]) -> list[pa.Table]:
    """Four files, so that rows meet in one batch and across batches."""
    types = {"items": pa.list_(pa.string()), "weights": pa.map_(pa.string(), pa.float64()), "n": pa.int32()}
    types |= {"k": pa.int32(), "x": pa.float64()}
    size = len(rows) // 4
    parts = [rows[begin : begin + size] for begin in range(0, len(rows), size)]
    return [
        pa.table(
            {
                "ts": pa.array(
                    [EPOCH_US + row["second"] * 10**6 for row in part], pa.timestamp("us", tz="UTC")
                ),
                **{name: pa.array([_cell(row[name]) for row in part], kind) for name, kind in types.items()},
            }
        )
        for part in parts
    ]


def _cell(value: Any) -> Any:
    return list(value.items()) if isinstance(value, dict) else value


def pairs(judge: Callable[[Record, Record], bool]) -> set[tuple[int, int]]:
    return {
        (a["n"], b["n"])
        for a in LEFT
        for b in RIGHT
        if abs(a["second"] - b["second"]) <= WINDOW and judge(a, b)
    }


def common(a: Record, b: Record) -> set[str]:
    return set(a["items"] or ()) & set(b["items"] or ())


def product(a: Record, b: Record) -> float:
    shared = sorted(set(a["weights"] or ()) & set(b["weights"] or ()))
    return float(sum(a["weights"][item] * b["weights"][item] for item in shared))


def far_apart(left: Any, right: Any) -> Any:
    return abs(left - right) > 0.9


def same_corner(left: Any, right: Any) -> Any:
    return (left["k"] == right["k"]) & (left["x"] > 0.8) & (right["x"] > 0.8)


CASES: dict[str, tuple[Condition | list[str | Condition], Callable[[Record, Record], bool]]] = {
    "overlap": (tg.overlap("items", at_least=2), lambda a, b: len(common(a, b)) >= 2),
    "jaccard": (
        tg.overlap("items", jaccard=0.5),
        lambda a, b: 2 * len(common(a, b)) >= max(1, len(set(a["items"] or ()) | set(b["items"] or ()))),
    ),
    "inner product": (tg.inner_product("weights", at_least=2.0), lambda a, b: product(a, b) >= 2.0),
    "pairwise": (tg.pairwise(far_apart, "x"), lambda a, b: abs(a["x"] - b["x"]) > 0.9),
    "pairwise, two columns": (
        tg.pairwise(same_corner, ["k", "x"]),
        lambda a, b: bool(a["k"] == b["k"] and a["x"] > 0.8 and b["x"] > 0.8),
    ),
    "equality and overlap": (
        ["k", tg.overlap("items", at_least=2)],
        lambda a, b: a["k"] == b["k"] and len(common(a, b)) >= 2,
    ),
}


def streams(spark: SparkSession, home: Path) -> tuple[tg.Stream, tg.Stream]:
    for name, rows in (("a", LEFT), ("b", RIGHT)):
        if not (home / name).exists():
            add_files(home / name, tables(rows))
    left, right = (
        tg.stream(read_files(spark, home / name, SCHEMA), time="ts", name=name, lateness="0 seconds")
        for name in ("a", "b")
    )
    return left, right


@pytest.mark.parametrize("case", CASES)
def test_every_pair_comes_once(spark: SparkSession, tmp_path: Path, case: str) -> None:
    on, judge = CASES[case]
    left, right = streams(spark, tmp_path)
    sink = Sink()
    query = tg.start(
        left.join(right, on=on, within=f"{WINDOW} seconds").select("n", "n_right").write_to(sink),
        checkpoint=str(tmp_path / "ck"),
        available_now=True,
    )
    assert query.await_termination(PATIENCE_SECONDS)
    assert len(sink.batches) > 2
    assert sorted(sink.rows) == sorted(pairs(judge))


def test_a_left_join_without_a_key_shows_lonely_rows(spark: SparkSession, tmp_path: Path) -> None:
    on, judge = CASES["overlap"]
    left, right = streams(spark, tmp_path)
    sink = Sink()
    query = tg.start(
        left.join(right, on=on, within=f"{WINDOW} seconds", how="left_semi").select("n").write_to(sink),
        checkpoint=str(tmp_path / "ck"),
        available_now=True,
    )
    assert query.await_termination(PATIENCE_SECONDS)
    assert sorted(row[0] for row in sink.rows) == sorted({n for n, _ in pairs(judge)})


def test_a_function_that_fails_names_its_columns_and_the_batch_and_loses_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    _, judge = CASES["pairwise"]
    sink = Sink()

    def run(function: Callable[[Any, Any], Any]) -> tg.Stream:
        left, right = streams(spark, tmp_path)
        return left.join(right, on=tg.pairwise(function, "x"), within=f"{WINDOW} seconds")

    def compare(left: Any, right: Any) -> Any:
        if (left > 0.99).any():
            raise ValueError("no such number")
        return abs(left - right) > 0.9

    settings: dict[str, Any] = {"checkpoint": str(tmp_path / "ck"), "available_now": True}
    failing = tg.start(run(compare).select("n", "n_right").write_to(sink), **settings)
    with pytest.raises(
        tg.BatchFailed,
        match=r"FUNCTION_FAILED\] Batch \d+ failed.*'compare' over x failed.*no such number",
    ):
        failing.await_termination(PATIENCE_SECONDS)

    far_apart.__name__ = "compare"  # the function was mended, not replaced by another
    query = tg.start(run(far_apart).select("n", "n_right").write_to(sink), **settings)
    assert query.await_termination(PATIENCE_SECONDS)
    assert sorted(sink.rows) == sorted(pairs(judge))


@pytest.mark.parametrize(
    ("on", "said"),
    [
        (tg.overlap("weights", at_least=1), "JOIN_ITEMS_TYPE_UNSUPPORTED.*sets of items"),
        (tg.inner_product("items", at_least=1), "JOIN_ITEMS_TYPE_UNSUPPORTED.*weighted sets"),
        (tg.overlap("gone", at_least=1), "JOIN_COLUMN_MISSING.*'gone'"),
        (tg.overlap({"items": "numbers"}, at_least=1), "JOIN_ITEM_TYPES_DIFFER"),
        (tg.pairwise(far_apart, ["x", "gone"]), "JOIN_COLUMN_MISSING.*'gone'"),
    ],
)
def test_columns_that_cannot_be_compared_are_refused(spark: SparkSession, on: Condition, said: str) -> None:
    left = tg.stream(spark.createDataFrame([], SCHEMA), time="ts", name="a", lateness="0 seconds")
    more = spark.createDataFrame([], SCHEMA).selectExpr("*", "array(1, 2) as numbers")
    right = tg.stream(more, time="ts", name="b", lateness="0 seconds")
    with pytest.raises(tg.FlowError, match=said):
        tg.start(left.join(right, on=on, within="1 second").write_to(Sink()))
