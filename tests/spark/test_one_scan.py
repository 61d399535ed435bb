"""Two inputs of a join that come from one stream: one scan, and the same rows as from two."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import tidegate as tg
from tidegate.driver.compile import compiler
from tidegate.driver.compile.compiler import compile_flow

SCHEMA = "ts timestamp, kind int, key bigint, word string, deep struct<x: bigint, y: string>"


def _events(spark: SparkSession, folder: Path) -> tg.Stream:
    if not (folder / "in").exists():
        rows = spark.range(80).selectExpr(
            "if(id = 79, null, timestamp_seconds(1767225600 + id div 2)) ts",
            "cast(id % 3 as int) kind",
            "if(id % 11 = 0, null, id % 5) key",
            "if(id % 3 = 0, cast(id as string), concat('w', id)) word",
            "if(id % 3 = 1, struct(id as x, concat('y', id) as y), null) deep",
        )
        rows.coalesce(1).write.parquet(str(folder / "in"))
    return tg.stream(
        spark.readStream.schema(SCHEMA).parquet(str(folder / "in")),
        name="events",
        time="ts",
        lateness="1 minute",
    )


def _kinds(events: tg.Stream) -> tg.Stream:
    left = events.filter("kind = 0").select("ts", "key", "word")
    right = events.filter("kind = 1").select("ts", "key", F.col("deep.x").alias("x"))
    return left.join(right, "key", within="10 seconds", name="pairs")


def _fails_on_rows_of_the_other(events: tg.Stream) -> tg.Stream:
    # The words of other kinds are no numbers: computed for them, the cast would end the query.
    left = events.filter("kind = 0").select("ts", "key", F.expr("cast(word as bigint)").alias("n"))
    right = events.filter("kind != 0").select("ts", "key", "word")
    return left.join(right, "key", within="10 seconds", name="pairs")


def _overlapping(events: tg.Stream) -> tg.Stream:
    left, right = events.filter("kind < 2"), events.filter("kind > 0").select("ts", "key", "deep")
    return left.join(right, "key", within="3 seconds", how="full", name="pairs")


def _everything(events: tg.Stream) -> tg.Stream:
    return events.select("ts", "key").join(events, "key", within="2 seconds", how="left_semi", name="pairs")


def _only_one_filtered(events: tg.Stream) -> tg.Stream:
    return events.join(events.filter("word like 'w%'"), {"kind": "kind"}, within="1 second", name="pairs")


FLOWS: dict[str, Callable[[tg.Stream], tg.Stream]] = {
    "two kinds": _kinds,
    "an expression that fails on rows of the other input": _fails_on_rows_of_the_other,
    "rows of both inputs": _overlapping,
    "no condition": _everything,
    "one condition": _only_one_filtered,
}


def _played(spark: SparkSession, flow: tg.Stream, folder: Path) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []

    def keep(frame: Any, batch: int) -> None:
        rows.extend(map(tuple, frame.collect()))

    query = tg.start(flow.write_to(keep, name="out"), checkpoint=str(folder), available_now=True)
    assert query.await_termination(60)
    offered = sum(progress["offered"]["events"] for progress in query.telemetry)
    assert offered == 80
    assert query.telemetry[0]["rejected"]["events"] == 1
    return sorted(rows, key=repr)


@pytest.mark.parametrize("name", FLOWS)
def test_one_scan_gives_the_rows_of_two(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    flow = FLOWS[name](_events(spark, tmp_path))
    (join,) = compile_flow([flow.write_to("noop", name="out")], 4).joins
    assert len(join.entries) == 1
    together = _played(spark, flow, tmp_path / "together")
    assert together
    monkeypatch.setattr(compiler, "one_scan", lambda entries: None)
    assert _played(spark, flow, tmp_path / "apart") == together


def test_a_costly_source_is_not_kept_for_the_two_inputs_of_one_join(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    read = spark.readStream.schema(SCHEMA).json(str(tmp_path / "in"))
    flow = _kinds(tg.stream(read, name="events", time="ts", lateness="1 minute"))
    assert not compile_flow([flow.write_to("noop", name="out")], 4).shared


@pytest.mark.parametrize(
    "step",
    [
        lambda rows: rows.filter(F.udf(lambda word: bool(word), "boolean")("word")),
        lambda rows: rows.filter("rand() < 2"),
        lambda rows: rows.filter("ts < current_timestamp()"),
        lambda rows: rows.with_column("word", F.explode(F.split("word", "w"))),
    ],
    ids=["a function of Python", "a random number", "the current time", "an explode"],
)
def test_inputs_are_read_apart_where_their_steps_are_more_than_a_condition(
    spark: SparkSession, tmp_path: Path, step: Callable[[tg.Stream], tg.Stream]
) -> None:
    events = _events(spark, tmp_path)
    flow = step(events).join(events, "key", within="1 second", name="pairs")
    (join,) = compile_flow([flow.write_to("noop", name="out")], 4).joins
    assert len(join.entries) == 2
