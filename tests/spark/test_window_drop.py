"""Windows dropped on Spark: what comes out is exact, what is missing was decided, and rows go early."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.spark.flows import PATIENCE_SECONDS, Sink, add_files, read_files, seconds, start_bounded

import tidegate as tg

SCHEMA = "ts timestamp, k int, v int"
GOAL = tg.Goal(latency="60 seconds")
#: From the second batch on, whatever batches take.
SHED = tg.Shed(window=0.6)


def rows_table(rows: int, span_seconds: float, seed: int, begin: float = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    us = seconds(begin) + np.sort(rng.integers(0, int(span_seconds * 1e6), rows))
    # A little disorder, within the lateness.
    us -= rng.integers(0, 300_000, rows)
    return pa.table(
        {
            "ts": pa.array(us, pa.timestamp("us", "UTC")),
            "k": pa.array(rng.integers(0, 3, rows), pa.int32()),
            "v": pa.array(rng.integers(-9, 99, rows), pa.int32()),
        }
    )


def micros(row: tuple[Any, ...]) -> int:
    at: float = row[0].timestamp()
    return round(at * 1e6)


@pytest.mark.parametrize(
    ("by_row", "offsets"),
    [
        (False, (None, None)),
        (True, (None, None)),
        (False, ("700 ms", "-1300 ms")),
        (True, ("-15 seconds", "1 second")),
    ],
)
def test_nested_and_shared_windows_are_exact_or_missing_as_decided(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    by_row: bool,
    offsets: tuple[str | None, str | None],
) -> None:
    if by_row:
        monkeypatch.setattr(
            "tidegate.control.actuators.partial_aggregation.by_row",
            lambda manifest, windows, always: tuple(windows),
        )
    whole = rows_table(4000, 400, 1)
    add_files(tmp_path / "in", [whole.slice(i, 800) for i in range(0, 4000, 800)])

    def flow(frame: Any) -> list[Any]:
        stream = tg.stream(frame, time="ts", name="rides", lateness="1 second")
        inner = (
            stream.filter("v > 0")
            .window("4 seconds", slide="2 seconds", offset=offsets[0], by="k")
            .agg(n=F.count("*"), s=F.sum("v"))
        )
        outer = (
            inner.filter("n > 1")
            .window("12 seconds", slide="6 seconds", offset=offsets[1])
            .agg(m=F.count("*"), top=F.max("s"))
        )
        return [inner, outer]

    inner, outer = flow(read_files(spark, tmp_path / "in", SCHEMA))
    first, second = Sink("inner"), Sink("outer")
    query = start_bounded(
        inner.write_to(first, max_gap=12),
        outer.write_to(second, max_gap="40 seconds"),
        checkpoint=str(tmp_path / "ck"),
        goal=GOAL,
        shed=SHED,
        seed=5,
    )
    assert query.await_termination(PATIENCE_SECONDS)
    exact_first, exact_second = Sink("inner"), Sink("outer")
    inner, outer = flow(spark.read.schema(SCHEMA).parquet(str(tmp_path / "in")))
    tg.start(inner.write_to(exact_first), outer.write_to(exact_second))

    newest = max(micros((at,)) for at in whole.column("ts").to_pylist())
    for sink, exact, slide, gap, size in (
        (first, exact_first, 2, 12, 4),
        (second, exact_second, 6, 5, 12),
    ):
        assert len(sink.rows) == len(sink.counted), "a window came twice"
        assert set(sink.counted) <= set(exact.counted), "a window is wrong"
        wanted = [row for row in exact.rows if micros(row) + size * 1_000_000 < newest - 60_000_000]
        missing = sorted({micros(row) for row in wanted} - {micros(row) for row in sink.rows})
        # None of the first batch, which comes before anything is decided, and of the rest about six of ten.
        assert 0.2 < len(missing) / len({micros(row) for row in wanted}) < 0.7
        longest, length = 1, 1
        for before, after in pairwise(missing):
            length = length + 1 if after == before + slide * 1_000_000 else 1
            longest = max(longest, length)
        assert longest <= gap
        # Within a window either all groups come or none does.
        starts = {micros(row) for row in sink.rows}
        assert {repr(r) for r in exact.rows if micros(r) in starts} == set(sink.counted)
    told = [one for progress in query.telemetry for one in progress["operators"]]
    assert sum(sum(one["dropped"]) for one in told) > 500, "rows that nobody needs went all the way"
    if by_row:
        # Spark counts them, and the first instance tells of it: none came to a task.
        assert {one["instance"] for one in told if sum(one["dropped"])} == {0}
    assert sum(p["offered"]["rides"] for p in query.telemetry) == 4000


def test_times_that_cannot_be_used_move_no_watermark_where_spark_counts_rows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "tidegate.control.actuators.partial_aggregation.by_row",
        lambda manifest, windows, always: tuple(windows),
    )
    whole = rows_table(2000, 200, 3)
    times = whole.column("ts").to_pylist()
    times[900], times[901] = None, times[901].replace(year=3000)
    wrong = whole.set_column(0, "ts", pa.array(times, pa.timestamp("us", "UTC")))
    add_files(tmp_path / "in", [wrong.slice(i, 400) for i in range(0, 2000, 400)])
    stream = tg.stream(
        read_files(spark, tmp_path / "in", SCHEMA), time="ts", name="rides", lateness="1 second"
    )
    sink = Sink()
    query = start_bounded(
        stream.window("2 seconds", by="k").agg(n=F.count("*")).write_to(sink, max_gap=4),
        checkpoint=str(tmp_path / "ck"),
        goal=GOAL,
        shed=SHED,
    )
    assert query.await_termination(PATIENCE_SECONDS)
    told = query.telemetry
    assert sum(sum(one["dropped"]) for progress in told for one in progress["operators"]) > 200
    assert sum(progress["offered"]["rides"] for progress in told) == 2000
    assert sum(progress["rejected"]["rides"] for progress in told) == 2
    assert sum(progress["late"]["rides"] for progress in told) == 0
    assert max(map(micros, sink.rows)) > seconds(180), "windows behind the wrong time are missing"


def test_an_output_without_a_gap_loses_nothing_beside_one_that_may(
    spark: SparkSession, tmp_path: Path
) -> None:
    whole = rows_table(1500, 150, 2)
    add_files(tmp_path / "in", [whole.slice(i, 250) for i in range(0, 1500, 250)])
    stream = tg.stream(
        read_files(spark, tmp_path / "in", SCHEMA), time="ts", name="rides", lateness="1 second"
    )
    counts = stream.window("2 seconds").agg(n=F.count("*"))
    all_of, some_of = Sink("all"), Sink("some")
    query = start_bounded(
        counts.write_to(all_of, name="all"),
        counts.filter("n > 0").write_to(some_of, name="some", max_gap=4),
        checkpoint=str(tmp_path / "ck"),
        goal=GOAL,
        shed=SHED,
    )
    assert query.await_termination(PATIENCE_SECONDS)
    given = spark.read.schema(SCHEMA).parquet(str(tmp_path / "in"))
    exact = Sink()
    tg.start(
        tg.stream(given, time="ts", name="rides", lateness="0 seconds")
        .window("2 seconds")
        .agg(n=F.count("*"))
        .write_to(exact)
    )
    closed = {repr(row) for row in exact.rows} - set(all_of.counted)
    assert len(closed) <= 2, "windows are missing that must not"
    assert set(all_of.counted) <= set(exact.counted)
    assert set(some_of.counted) < set(all_of.counted)
    assert len(some_of.rows) < 0.75 * len(all_of.rows)


def test_a_gap_of_rows_that_are_no_windows_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    frame = read_files(spark, tmp_path, SCHEMA)
    stream = tg.stream(frame, time="ts", name="rides", lateness="0 seconds")
    with pytest.raises(tg.FlowError, match=r"OUTPUT_MAX_GAP_UNSUPPORTED.*no windows"):
        tg.start(stream.write_to(Sink(), max_gap=3), checkpoint=str(tmp_path / "ck"), goal=GOAL)
    wrong: Any
    for wrong in (0, -1, 1.5, True):
        with pytest.raises(tg.FlowError, match="max_gap"):
            stream.window("2 seconds").agg(n=F.count("*")).write_to(Sink(), max_gap=wrong)
    counts = stream.window("2 seconds").agg(n=F.count("*"))
    with pytest.raises(tg.FlowError, match="OUTPUT_MAX_GAP_TOO_SHORT"):
        tg.start(counts.write_to(Sink(), max_gap="3 seconds"), checkpoint=str(tmp_path / "ck"), goal=GOAL)


def test_rows_go_in_front_of_a_join_only_if_no_kept_window_can_need_their_pairs(
    spark: SparkSession, tmp_path: Path
) -> None:
    for side in ("left", "right"):
        whole = rows_table(1200, 240, 3 if side == "left" else 4)
        add_files(tmp_path / side, [whole.slice(i, 200) for i in range(0, 1200, 200)])

    def flow(left: Any, right: Any) -> Any:
        first = tg.stream(left, time="ts", name="left", lateness="1 second")
        second = tg.stream(right, time="ts", name="right", lateness="1 second")
        pairs = first.join(second, on="k", within="2 seconds", how="left")
        return pairs.window("4 seconds", by="k").agg(
            n=F.count("*"), alone=F.expr("count_if(v_right is null)")
        )

    frames = [read_files(spark, tmp_path / side, SCHEMA) for side in ("left", "right")]
    sink, exact = Sink(), Sink()
    query = start_bounded(
        flow(*frames).write_to(sink, max_gap=6),
        checkpoint=str(tmp_path / "ck"),
        goal=GOAL,
        shed=SHED,
    )
    assert query.await_termination(PATIENCE_SECONDS)
    tg.start(
        flow(*[spark.read.schema(SCHEMA).parquet(str(tmp_path / s)) for s in ("left", "right")]).write_to(
            exact
        )
    )
    assert len(sink.rows) == len(sink.counted)
    assert set(sink.counted) <= set(exact.counted)
    assert 0.15 < len(sink.rows) / len(exact.rows) < 0.75
    dropped = [
        sum(o["dropped"]) for p in query.telemetry for o in p["operators"] if o["operator"] == "left_right_k"
    ]
    assert sum(dropped) > 100


@pytest.mark.parametrize("approximate", [False, True], ids=["dropped windows", "estimated ones"])
def test_rows_dropped_between_operators_are_counted_where_the_action_writes_the_output(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, approximate: bool
) -> None:
    monkeypatch.setattr(
        "tidegate.control.actuators.partial_aggregation.by_row",
        lambda manifest, windows, always: tuple(windows),
    )
    whole = rows_table(1500, 150, 2)
    add_files(tmp_path / "in", [whole.slice(i, 250) for i in range(0, 1500, 250)])
    rides = tg.stream(
        read_files(spark, tmp_path / "in", SCHEMA), time="ts", name="rides", lateness="1 second"
    )
    if approximate:
        counts = rides.window("2 seconds", by="k", approximate=True, name="last").agg(n=F.count("*"))
    else:
        counts = rides.window("1 second", by="k").agg(n=F.count("*"))
        counts = counts.window("4 seconds", name="last").agg(n=F.sum("n"))
    out = str(tmp_path / "out")
    query = start_bounded(
        counts.write_to("json", out, max_gap=None if approximate else 6),
        checkpoint=str(tmp_path / "ck"),
        goal=GOAL,
        shed=SHED,
    )
    assert query.await_termination(PATIENCE_SECONDS)
    told = [one for progress in query.telemetry for one in progress["operators"]]
    assert sum(sum(one["dropped"]) for one in told) > 100
    assert spark.read.json(out).count() > 5
