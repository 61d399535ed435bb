"""Approximate windows on Spark: exact while all rows are kept, estimates with intervals when they are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.spark.flows import PATIENCE_SECONDS, Sink, add_files, read_files, seconds, start_bounded

import tidegate as tg
from tidegate.control.actuators import partial_aggregation

SCHEMA = "ts timestamp, k string, v int, fare double, price decimal(9, 2)"
GOAL = tg.Goal(latency="60 seconds")
UNREACHABLE = "10 milliseconds"


def aggregates() -> dict[str, Any]:
    """All kinds of them; columns need a running Spark."""
    return {
        "n": F.count("*"),
        "paid": F.expr("count_if(v > 20)"),
        "s": F.sum("v"),
        "total": F.sum("fare"),
        "mean": F.avg("fare"),
        "cents": F.sum("price"),
        "price": F.avg("price"),
        "spread": F.stddev("fare"),
        "top": F.max("fare"),
        "word": F.max("k"),
        "newest": F.last("v"),
    }


ESTIMATED = ("n", "paid", "s", "total", "mean", "cents", "price")


def rides(rows: int, span_seconds: float, seed: int) -> pa.Table:
    """Two popular groups and a rare one; a tenth of the fares are unknown."""
    rng = np.random.default_rng(seed)
    us = seconds(0) + np.sort(rng.integers(0, int(span_seconds * 1e6), rows))
    fares = rng.lognormal(2.5, 0.6, rows)
    unknown = rng.random(rows) < 0.1
    prices = pa.array([f"{fare:.2f}" for fare in fares]).cast(pa.decimal128(9, 2))
    return pa.table(
        {
            "ts": pa.array(us, pa.timestamp("us", "UTC")),
            "k": pa.array(rng.choice(["bus", "taxi", "ferry"], rows, p=[0.5, 0.48, 0.02])),
            "v": pa.array(rng.integers(-5, 50, rows), pa.int32()),
            "fare": pa.array(fares, mask=unknown),
            "price": prices,
        }
    )


def flow(frame: Any, sink: Sink, approximate: bool = True) -> Any:
    stream = tg.stream(frame, time="ts", name="rides", lateness="1 second")
    windows = stream.window("8 seconds", slide="4 seconds", by="k", approximate=approximate)
    return windows.agg(**aggregates()).write_to(sink)


def rows_of(sink: Sink) -> dict[Any, dict[str, Any]]:
    """Results by window and group."""
    named = [dict(zip(sink.columns, row, strict=True)) for row in sink.rows]
    found = {(row["window_start"], row["k"]): row for row in named}
    assert len(found) == len(sink.rows), "a window came twice"
    return found


def exact_of(spark: SparkSession, folder: Path) -> dict[Any, dict[str, Any]]:
    sink = Sink()
    tg.start(flow(spark.read.schema(SCHEMA).parquet(str(folder)), sink, approximate=False))
    return rows_of(sink)


def test_of_batch_inputs_all_is_exact(spark: SparkSession, tmp_path: Path) -> None:
    add_files(tmp_path / "in", [rides(3000, 60, 1)])
    sink = Sink()
    query = tg.start(flow(spark.read.schema(SCHEMA).parquet(str(tmp_path / "in")), sink))
    ends = [column for name in aggregates() for column in (name, f"{name}_low", f"{name}_high")]
    assert sink.columns == ["window_start", "window_end", "k", *ends]
    exact = exact_of(spark, tmp_path / "in")
    found = rows_of(sink)
    assert found.keys() == exact.keys()
    for at, row in found.items():
        for name in aggregates():
            value = row[name]
            assert value == pytest.approx(exact[at][name]), "not exact"
            end = value if name == "word" or value is None else float(value)
            assert row[f"{name}_low"] == row[f"{name}_high"] == pytest.approx(end)
    assert query.telemetry[-1]["estimates"]["rides_window_k"]["mode"] == "EXACT"


@pytest.mark.parametrize("by_row", [False, True])
def test_of_sampled_rows_intervals_hold_the_truth_and_a_second_run_says_the_same(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_row: bool
) -> None:
    if by_row:
        # One batch this way, the next one that way: their partials are merged.
        monkeypatch.setattr(
            partial_aggregation,
            "by_row",
            lambda manifest, windows, always: tuple(windows) if manifest.batch % 2 else (),
        )
    whole = rides(60_000, 160, 2)
    add_files(tmp_path / "in", [whole.slice(i, 10_000) for i in range(0, 60_000, 10_000)])

    def run(name: str, seed: int) -> tuple[Sink, Any]:
        sink = Sink()
        query = start_bounded(
            flow(read_files(spark, tmp_path / "in", SCHEMA), sink),
            checkpoint=str(tmp_path / name),
            goal=GOAL,
            shed=tg.Shed(window=0.7),
            seed=seed,
        )
        assert query.await_termination(PATIENCE_SECONDS)
        return sink, query

    sink, query = run("ck", 5)
    exact, found = exact_of(spark, tmp_path / "in"), rows_of(sink)
    popular = {at: row for at, row in found.items() if at[1] != "ferry"}
    assert len(popular) > 60
    for name in ESTIMATED:
        held = [row[f"{name}_low"] <= exact[at][name] <= row[f"{name}_high"] for at, row in popular.items()]
        # Windows overlap, so their misses come in twos.
        assert np.mean(held) > 0.85, name
        errors = [float(row[name]) / float(exact[at][name]) - 1 for at, row in popular.items()]
        assert abs(np.mean(errors)) < 0.03, f"{name} is biased"
        assert np.mean(np.abs(errors)) > 1e-4, "nothing was left out"
        assert all(row[f"{name}_low"] < row[name] < row[f"{name}_high"] for row in popular.values())
    for at, row in found.items():
        assert row["top"] <= exact[at]["top"]
        assert row["top_low"] is row["word_high"] is row["newest_low"] is row["spread_low"] is None
        if at[1] == "ferry":
            assert row["mean_low"] is None, "of too few rows"
    spreads = [row["spread"] / exact[at]["spread"] - 1 for at, row in popular.items()]
    assert abs(np.mean(spreads)) < 0.03

    progress = query.telemetry
    assert sum(p["offered"]["rides"] for p in progress) == 60_000
    dropped = sum(sum(o["dropped"]) for p in progress for o in p["operators"])
    assert 0.68 < dropped / 60_000 < 0.72
    told = progress[-1]["estimates"]["rides_window_k"]
    assert (told["mode"], told["share_min"], told["share_max"]) == ("ESTIMATED", 0.3, 0.3)
    if not by_row:
        again, other = (rows_of(run(name, seed)[0]) for name, seed in (("again", 5), ("other", 6)))
        # Sums of doubles depend on the order of rows.
        counts = [{at: (row["n"], row["paid"]) for at, row in one.items()} for one in (found, again, other)]
        assert counts[0] == counts[1]
        assert counts[0] != counts[2]


@pytest.mark.parametrize(
    ("latency", "modes"), [("10 minutes", {"EXACT"}), (UNREACHABLE, {"EXACT", "ESTIMATED"})]
)
def test_a_goal_alone_samples_rows_when_there_is_no_time_for_all_and_not_otherwise(
    spark: SparkSession, tmp_path: Path, latency: str, modes: set[str]
) -> None:
    whole = rides(16_000, 160, 3)
    add_files(tmp_path / "in", [whole.slice(i, 2000) for i in range(0, 16_000, 2000)])
    sink = Sink()
    query = start_bounded(
        flow(read_files(spark, tmp_path / "in", SCHEMA), sink),
        checkpoint=str(tmp_path / "ck"),
        goal=tg.Goal(latency=latency),
    )
    assert query.await_termination(PATIENCE_SECONDS)
    exact, found = exact_of(spark, tmp_path / "in"), rows_of(sink)
    told = {p["batch"]: p["estimates"]["rides_window_k"] for p in query.telemetry}
    receipts = query.receipts()
    outputs = receipts[receipts["kind"] == "output"].set_index("batch_id")
    assert set(outputs["mode"]) == modes
    assert {batch: one["mode"] for batch, one in told.items()} == outputs["mode"].to_dict()
    dropped = sum(sum(o["dropped"]) for p in query.telemetry for o in p["operators"])
    assert sum(one["sampling"] for one in outputs["shed_reasons"]) == dropped
    assert (dropped > 0) == ("ESTIMATED" in modes)
    assert (min(one["kept"] for one in told.values()) < 1) == (dropped > 0)
    sure = {at: row for at, row in found.items() if row["top_low"] is not None}
    assert (len(sure) < len(found)) == (dropped > 0)
    assert len(sure) > 10, "the first windows came before anything was learnt"
    for at, row in sure.items():
        assert row["n"] == row["n_low"] == row["n_high"] == exact[at]["n"]
        assert row["total"] == pytest.approx(exact[at]["total"])


def test_estimates_feed_outputs_alone(spark: SparkSession, tmp_path: Path) -> None:
    stream = tg.stream(read_files(spark, tmp_path, SCHEMA), time="ts", name="rides", lateness="0 seconds")
    about = stream.window("8 seconds", approximate=True).agg(n=F.count("*"))
    settings: dict[str, Any] = {"checkpoint": str(tmp_path / "ck"), "goal": GOAL}
    with pytest.raises(tg.FlowError, match=r"WINDOW_ESTIMATES_REUSED.*A window"):
        tg.start(about.filter("n > 3").window("1 minute").agg(m=F.sum("n")).write_to(Sink()), **settings)
    with pytest.raises(tg.FlowError, match=r"WINDOW_ESTIMATES_REUSED.*A join"):
        tg.start(about.join(about, on="n", within="8 seconds").write_to(Sink()), **settings)
    with pytest.raises(tg.FlowError, match=r"OUTPUT_MAX_GAP_UNSUPPORTED.*approximate"):
        tg.start(about.write_to(Sink(), max_gap=3), **settings)
    lists = stream.window("8 seconds", approximate=True).agg(words=F.collect_list("k"))
    with pytest.raises(tg.FlowError, match=r"AGGREGATE_NOT_ESTIMABLE.*Aggregate 'words': collect_list"):
        tg.start(lists.write_to(Sink()), **settings)
    nested = stream.with_column("at", F.struct("fare")).window("8 seconds", by="at", approximate=True)
    with pytest.raises(tg.FlowError, match="WINDOW_BY_TYPE_INVALID"):
        tg.start(nested.agg(n=F.count("*")).write_to(Sink()), **settings)
