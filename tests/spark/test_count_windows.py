"""Windows of rows on Spark: those that Spark's own row numbers give, for any cut into batches."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import Window as Over
from pyspark.sql import functions as F
from tests.spark.flows import PATIENCE_SECONDS, Sink, add_files, read_files, seconds, start_bounded
from tests.spark.test_windows import SCHEMA, aggregates, frame_of, rides

import tidegate as tg
from tests.spark import test_window_collections as lists
from tests.spark import test_window_drop as drops
from tidegate.driver.frames.window_frames import row_sql
from tidegate.worker.runtime.layout import TIME

Rows = Sequence[tuple[Any, ...]]


def sparks_own(frame: DataFrame, size: int, slide: int, by: list[str]) -> Rows:
    """Every row once for each window that holds it; windows that have all their rows."""
    timed = frame.withColumn(TIME, F.unix_micros("ts"))
    order = Over.partitionBy(*by).orderBy("ts", F.expr(row_sql(timed)))
    numbered = timed.withColumn("row", F.row_number().over(order) - 1)
    first = f"greatest(0, ceil((row - {size} + 1) / {slide}))"
    held = numbered.withColumn("w", F.expr(f"explode_outer(sequence({first}, floor(row / {slide})))"))
    grouped = held.where(f"row < w * {slide} + {size}").groupBy(*by, "w")
    made = grouped.agg(
        F.min("ts").alias("window_start"),
        F.max("ts").alias("window_end"),
        F.count("*").alias("held"),
        *[column.alias(name) for name, column in aggregates().items()],
    )
    whole = made.where(f"held = {size}").select("window_start", "window_end", *by, *aggregates())
    return [tuple(row) for row in whole.collect()]


def assert_alike(found: Rows, wanted: Rows) -> None:
    """The same rows; floats but for rounding."""

    def rounded(row: tuple[Any, ...]) -> str:
        return repr(tuple(float(f"{one:.9g}") if isinstance(one, float) else one for one in row))

    assert len(found) == len(wanted) > 0
    for mine, theirs in zip(sorted(found, key=rounded), sorted(wanted, key=rounded), strict=True):
        for one, other in zip(mine, theirs, strict=True):
            if isinstance(other, float) and one is not None:
                assert math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
            else:
                assert one == other


@pytest.mark.parametrize(
    ("size", "slide", "by"), [(7, None, ["kind"]), (10, 3, []), (5, 2, ["paid", "kind"])]
)
def test_windows_of_batch_inputs_are_those_of_sparks_row_numbers(
    spark: SparkSession, size: int, slide: int | None, by: list[str]
) -> None:
    frame = frame_of(spark, rides(300, 1)).withColumn("ts", F.date_trunc("second", "ts"))
    sink = Sink()
    windows = tg.stream(frame, time="ts", name="rides", lateness="0 seconds").window(
        tg.row_window(size, slide=slide), by=by
    )
    tg.start(windows.agg(**aggregates()).write_to(sink))
    assert sink.columns == ["window_start", "window_end", *by, *aggregates()]
    assert_alike(sink.rows, sparks_own(frame, size, slide or size, by))


def test_streamed_windows_outlive_restarts_and_moves(spark: SparkSession, tmp_path: Path) -> None:
    """Batches of any size, two runs on one checkpoint with other numbers of instances, late rows, ties."""
    whole = rides(900, 2)
    late = whole.slice(0, 5)
    cuts = [0, 50, 51, 400, 401, 650, 900]
    parts = [whole.slice(a, b - a) for a, b in pairwise(cuts)]
    last = whole.slice(0, 1).set_column(0, "ts", pa.array([seconds(100)], pa.timestamp("us", "UTC")))
    sink = Sink()
    told = []
    for number, (files, instances) in enumerate([(parts[:3], 1), ([*parts[3:], late, last], 3)]):
        add_files(tmp_path / "in", files)
        stream = tg.stream(
            read_files(spark, tmp_path / "in", SCHEMA), time="ts", name="rides", lateness="1 second"
        )
        windows = stream.window(tg.row_window(6, slide=4), by="kind").agg(**aggregates())
        query = tg.start(
            windows.write_to(sink),
            checkpoint=str(tmp_path / "ck"),
            available_now=True,
            instances=instances,
        )
        assert query.await_termination(PATIENCE_SECONDS), number
        told += query.telemetry
    given = frame_of(spark, whole)
    assert_alike(sink.rows, sparks_own(given, 6, 4, ["kind"]))
    assert sum(progress["late"]["rides"] for progress in told) == 5
    assert sum(progress["offered"]["rides"] for progress in told) == 906
    assert told[-1]["state_rows"] <= 2 * 4 * 6 + 1, "rows are kept that no window needs"


def test_windows_of_time_over_windows_of_rows_wait_for_the_slowest_group(
    spark: SparkSession, tmp_path: Path
) -> None:
    def table(rows: list[tuple[float, str]]) -> pa.Table:
        times = pa.array([seconds(at) for at, _ in rows], pa.timestamp("us", "UTC"))
        return pa.table({"ts": times, "kind": pa.array([kind for _, kind in rows])})

    files: list[list[tuple[float, str]]] = [
        [(1, "slow"), (2, "bus"), (3, "bus")],
        [(14, "bus"), (15, "bus")],
        [(26, "slow"), (40, "bus")],
    ]
    add_files(tmp_path / "in", map(table, files))
    stream = tg.stream(
        read_files(spark, tmp_path / "in", "ts timestamp, kind string"),
        time="ts",
        name="s",
        lateness="0 seconds",
    )
    pairs = stream.window(tg.row_window(2), by="kind").agg(n=F.count("*"))
    sink = Sink()
    query = tg.start(
        pairs.window("10 seconds").agg(k=F.count("*"), n=F.sum("n")).write_to(sink),
        checkpoint=str(tmp_path / "ck"),
        available_now=True,
    )
    assert query.await_termination(PATIENCE_SECONDS)
    assert sorted((round(row[0].timestamp() - seconds(0) / 1e6), *row[2:]) for row in sink.rows) == [
        (0, 2, 4),
        (10, 1, 2),
    ]


def test_lists_sets_and_what_users_define_are_of_the_rows_of_their_windows(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = lists.rides(500, 2)
    add_files(tmp_path / "in", [table.slice(a, b - a) for a, b in pairwise([0, 3, 40, 41, 190, 420, 500])])
    # A row at the watermark is late, and files may end between rows of one time.
    stream = tg.stream(
        read_files(spark, tmp_path / "in", lists.SCHEMA), time="ts", name="rides", lateness="100 milliseconds"
    )
    sink = Sink()
    query = tg.start(
        stream.window(tg.row_window(7, slide=5), by="word").agg(**lists.aggregates()).write_to(sink),
        checkpoint=str(tmp_path / "ck"),
        available_now=True,
        instances=2,
    )
    assert query.await_termination(PATIENCE_SECONDS)
    given = (
        spark.read.schema(lists.SCHEMA).parquet(str(tmp_path / "in")).withColumn(TIME, F.unix_micros("ts"))
    )
    groups: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for row in given.orderBy(TIME, F.expr(row_sql(given))).collect():
        groups[row["word"]].append(row.asDict(recursive=True))
    newest = max(row[TIME] for rows in groups.values() for row in rows)
    wanted = {
        (rows[first][TIME], word): rows[first : first + 7]
        for word, rows in groups.items()
        for first in range(0, len(rows) - 6, 5)
        if rows[first + 6][TIME] < newest - 100_000
    }
    lists.check(lists.dicts(sink), wanted, ["word"])


def test_windows_of_time_over_windows_of_rows_are_dropped_whole(spark: SparkSession, tmp_path: Path) -> None:
    """Rows in front of windows of rows all pass: what is dropped is what is computed from these."""
    whole = drops.rows_table(3000, 300, 3)
    add_files(tmp_path / "in", [whole.slice(i, 500) for i in range(0, 3000, 500)])

    def flow(frame: DataFrame) -> tg.Stream:
        stream = tg.stream(frame, time="ts", name="rides", lateness="1 second")
        return stream.window(tg.row_window(4, slide=2), by="k").agg(s=F.sum("v"))

    tops, sink, exact = {"n": F.count("*"), "top": F.max("s")}, Sink(), Sink()
    query = start_bounded(
        flow(read_files(spark, tmp_path / "in", drops.SCHEMA))
        .window("4 seconds")
        .agg(**tops)
        .write_to(sink, max_gap=6),
        checkpoint=str(tmp_path / "ck"),
        goal=drops.GOAL,
        shed=drops.SHED,
    )
    assert query.await_termination(PATIENCE_SECONDS)
    given = spark.read.schema(drops.SCHEMA).parquet(str(tmp_path / "in"))
    tg.start(flow(given).window("4 seconds").agg(**tops).write_to(exact))
    assert set(sink.counted) <= set(exact.counted), "a window is wrong"
    assert 0.3 < len(sink.rows) / len(exact.rows) < 0.8
    told = [one for progress in query.telemetry for one in progress["operators"]]
    assert sum(sum(one["dropped"]) for one in told if one["operator"] == "rides_window_k") == 0


def test_what_windows_of_rows_cannot_do_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    stream = tg.stream(read_files(spark, tmp_path, SCHEMA), time="ts", name="rides", lateness="0 seconds")
    windows = stream.window(tg.row_window(100), by="kind")
    sketched = windows.agg(n=F.count("*"), kinds=F.approx_count_distinct("kind"))
    with pytest.raises(tg.FlowError, match=r"ROW_WINDOW_SKETCH.*approximate aggregates\. Got: kinds\."):
        tg.start(sketched.write_to(Sink()), checkpoint=str(tmp_path / "ck"))
    counts = windows.agg(n=F.count("*")).write_to(Sink(), max_gap=3)
    with pytest.raises(tg.FlowError, match=r"OUTPUT_MAX_GAP_UNSUPPORTED.*row windows"):
        tg.start(counts, checkpoint=str(tmp_path / "ck"), goal=drops.GOAL)


def test_zeros_are_one_group_and_maps_are_none(spark: SparkSession) -> None:
    frame = spark.sql("SELECT timestamp'2024-01-01' AS ts, explode(array(0D, -0D, double('NaN'))) AS x")
    stream = tg.stream(frame, time="ts", name="s", lateness="0 seconds")
    sink = Sink()
    tg.start(stream.window(tg.row_window(2), by="x").agg(n=F.count("*")).write_to(sink))
    assert [repr(row[2]) for row in sink.rows] == ["0.0"]
    mapped = stream.with_column("x", F.create_map("x", "x"))
    with pytest.raises(tg.FlowError, match="WINDOW_BY_TYPE_INVALID"):
        tg.start(mapped.window(tg.row_window(2), by="x").agg(n=F.count("*")).write_to(sink))
