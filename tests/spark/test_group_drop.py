"""Windows dropped by groups on Spark: exact, within the gap of each group, evenly, early, and for good."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
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

SCHEMA = "ts timestamp, cell string, k int, v int"
GOAL = tg.Goal(latency="60 seconds")
SHED = tg.Shed(window=0.5)
CELLS = 90
SECOND = 1_000_000

Row = tuple[Any, ...]


def rides(rows: int, span_seconds: float, seed: int) -> pa.Table:
    """Rows of many cells, in some disorder; of one cell the name is null."""
    rng = np.random.default_rng(seed)
    us = seconds(0) + np.sort(rng.integers(0, int(span_seconds * 1e6), rows))
    k = rng.integers(0, CELLS, rows)
    return pa.table(
        {
            "ts": pa.array(us - rng.integers(0, 300_000, rows), pa.timestamp("us", "UTC")),
            "cell": pa.array([f"cell {one}" if one else None for one in k.tolist()]),
            "k": pa.array(k, pa.int32()),
            "v": pa.array(rng.integers(-9, 99, rows), pa.int32()),
        }
    )


def in_files(folder: Path, table: pa.Table, files: int) -> None:
    rows = -(-table.num_rows // files)
    add_files(folder, [table.slice(at, rows) for at in range(0, table.num_rows, rows)])


def start_us(row: Row) -> int:
    at: float = row[0].timestamp()
    return round(at * 1e6)


def by_group(rows: Iterable[Row], key: int = 2) -> dict[Any, set[int]]:
    """By group: the starts of its windows."""
    found: dict[Any, set[int]] = defaultdict(set)
    for row in rows:
        found[row[key]].add(start_us(row))
    return found


def longest_gap(missing: set[int], slide_us: int) -> int:
    longest = length = 0
    for before, after in pairwise([-slide_us, *sorted(missing)]):
        length = length + 1 if after == before + slide_us else 1
        longest = max(longest, length)
    return longest


def judged(came: Sink, exact: Sink, slide_us: int, gap: int, from_us: int, to_us: int) -> float:
    """The share of (group, window) results between two starts that is missing; all others must be exact."""
    assert len(came.rows) == len(came.counted), "a window came twice"
    assert set(came.counted) <= set(exact.counted), "a window is wrong"
    starts = by_group(came.rows)
    gone = wanted = 0
    for group, windows in by_group(exact.rows).items():
        mine = {at for at in windows if from_us <= at < to_us}
        missing = mine - starts[group]
        assert longest_gap(missing, slide_us) <= gap
        gone, wanted = gone + len(missing), wanted + len(mine)
    return gone / wanted


def exactly(spark: SparkSession, folder: Path, flow: Callable[[Any], Any]) -> Sink:
    sink = Sink("exact")
    given = tg.stream(spark.read.schema(SCHEMA).parquet(str(folder)), time="ts", name="rides")
    tg.start(flow(given).write_to(sink))
    return sink


def streamed(spark: SparkSession, folder: Path) -> tg.Stream:
    return tg.stream(read_files(spark, folder, SCHEMA), time="ts", name="rides", lateness="1 second")


def shed_rows(query: Any) -> list[int]:
    """By batch: rows that were dropped because no kept window needs them."""
    return [sum(sum(one["dropped"]) for one in told["operators"]) for told in query.telemetry]


def test_windows_much_longer_than_a_batch_are_thinned_evenly_and_early(
    spark: SparkSession, tmp_path: Path
) -> None:
    in_files(tmp_path / "in", rides(8_000, 160, 1), 20)
    calls = spark.sparkContext.accumulator(0)

    # Without type hints, which Spark cannot read of a nested function.
    def counted(value):  # type: ignore[no-untyped-def]
        calls.add(1)
        return value

    costly = F.udf(counted, "int")

    def flow(stream: tg.Stream) -> tg.Stream:
        # The steps leave the grouping column alone.
        steps = stream.filter("v > -100").with_column("cost", costly("v"))
        return steps.window("40 seconds", by="cell", drop="groups").agg(n=F.count("*"), s=F.sum("cost"))

    sink = Sink()
    query = start_bounded(
        flow(streamed(spark, tmp_path / "in")).write_to(sink, name="busy", max_gap=3),
        checkpoint=tmp_path / "ck",
        goal=GOAL,
        shed=SHED,
        seed=5,
    )
    assert query.await_termination(2 * PATIENCE_SECONDS)
    called = calls.value
    exact = exactly(spark, tmp_path / "in", flow)

    # The first window is open when the first decision is made; the last one is not closed yet.
    size_us = 40 * SECOND
    first, last = (seconds(0) // size_us + 1) * size_us, seconds(158) - size_us
    assert 0.4 < judged(sink, exact, size_us, 3, first, last) < 0.6
    dropped = shed_rows(query)
    # Not windows of all rows and windows of none: about half of the rows in every batch of eight seconds.
    shares = [rows / 400 for rows in dropped[(first - seconds(0)) // (8 * SECOND) + 1 : 20]]
    assert 0.33 < min(shares)
    assert max(shares) < 0.67
    assert called == 8_000 - sum(dropped), "a costly step ran for a row that no window needs"

    receipts = query.receipts()
    lines = receipts[receipts["name"] == "busy"]
    closed, missing = (int(lines[name].fillna(0).sum()) for name in ("windows_closed", "windows_missing"))
    # The windows of every cohort are counted; the first ones are not decided, so none of them is missing.
    assert closed in (64 * 2, 64 * 3)
    assert 0.4 < missing / (closed - 64) < 0.6
    assert sum(told["offered"]["rides"] for told in query.telemetry) == 8_000


@pytest.mark.parametrize(
    ("made", "by_row"),
    [(False, False), (False, True), (True, False)],
    ids=["source columns", "source columns, by row", "made by a step"],
)
def test_sliding_windows_are_exact_and_within_the_gap_of_every_group(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: bool, by_row: bool
) -> None:
    monkeypatch.setattr(
        "tidegate.control.actuators.partial_aggregation.by_row",
        lambda manifest, windows, always: tuple(windows) if by_row else (),
    )
    in_files(tmp_path / "in", rides(8_000, 400, 2), 10)

    def flow(stream: tg.Stream) -> tg.Stream:
        if made:
            stream = stream.with_column("cell", F.expr("concat(cell, ' of the city')"))
        windows = stream.filter("v > 0").window(
            "12 seconds", slide="4 seconds", offset="1500 ms", by=["cell", "k"], drop="groups"
        )
        return windows.agg(n=F.count("*"), s=F.sum("v"))

    sink = Sink()
    query = start_bounded(
        flow(streamed(spark, tmp_path / "in")).write_to(sink, max_gap=8),
        checkpoint=tmp_path / "ck",
        goal=GOAL,
        shed=tg.Shed(window=0.6),
    )
    assert query.await_termination(PATIENCE_SECONDS)
    exact = exactly(spark, tmp_path / "in", flow)
    share = judged(sink, exact, 4 * SECOND, 8, seconds(60), seconds(340))
    assert 0.5 < share < 0.7
    assert sum(shed_rows(query)) > 1_500


def test_nested_windows_with_the_same_groups_drop_rows_at_the_source(
    spark: SparkSession, tmp_path: Path
) -> None:
    in_files(tmp_path / "in", rides(6_000, 400, 3), 10)

    def flow(stream: tg.Stream) -> tg.Stream:
        inner = stream.window("4 seconds", by="cell", drop="groups").agg(n=F.count("*"))
        outer = inner.filter("n > 0").window("12 seconds", by="cell", drop="groups")
        return outer.agg(m=F.sum("n"), parts=F.count("*"))

    sink = Sink()
    query = start_bounded(
        flow(streamed(spark, tmp_path / "in")).write_to(sink, max_gap=4),
        checkpoint=tmp_path / "ck",
        goal=GOAL,
        shed=SHED,
    )
    assert query.await_termination(PATIENCE_SECONDS)
    share = judged(sink, exactly(spark, tmp_path / "in", flow), 12 * SECOND, 4, seconds(60), seconds(340))
    assert 0.4 < share < 0.6
    told = [one for progress in query.telemetry for one in progress["operators"]]
    inner = sum(sum(one["dropped"]) for one in told if one["operator"] == "rides_window_cell")
    assert inner > 1_500, "rows that no outer window needs entered the inner one"


def test_windows_that_group_otherwise_behind_them_lose_their_own_groups_alone(
    spark: SparkSession, tmp_path: Path
) -> None:
    in_files(tmp_path / "in", rides(5_000, 300, 4), 10)

    def flow(stream: tg.Stream) -> list[tg.Stream]:
        inner = stream.window("4 seconds", by=["cell", "k"], drop="groups", name="inner").agg(n=F.count("*"))
        outer = inner.with_column("third", F.expr("k div 3")).window(
            "12 seconds", by="third", drop="groups", name="outer"
        )
        return [inner, outer.agg(m=F.sum("n"))]

    fine, coarse, whole = Sink("fine"), Sink("coarse"), Sink("whole")
    inner, outer = flow(streamed(spark, tmp_path / "in"))
    query = start_bounded(
        inner.write_to(fine, name="fine", max_gap=2),
        outer.write_to(coarse, name="coarse", max_gap=2),
        inner.write_to(whole, name="whole"),
        checkpoint=tmp_path / "ck",
        goal=GOAL,
        shed=SHED,
    )
    assert query.await_termination(PATIENCE_SECONDS)
    exacts = [
        exactly(spark, tmp_path / "in", lambda stream: flow(stream)[0]),
        exactly(spark, tmp_path / "in", lambda stream: flow(stream)[1]),
    ]
    assert 0.4 < judged(fine, exacts[0], 4 * SECOND, 2, seconds(60), seconds(250)) < 0.6
    assert 0.35 < judged(coarse, exacts[1], 12 * SECOND, 2, seconds(60), seconds(250)) < 0.65
    # An output that must be complete has every window of every group.
    assert judged(whole, exacts[0], 4 * SECOND, 0, seconds(0), seconds(280)) == 0


@pytest.mark.parametrize(
    ("drop", "settings"),
    [
        ("groups", {"goal": GOAL, "shed": tg.Shed(window=0.9), "seed": 9}),
        ("groups", {}),
        ("windows", {"goal": GOAL, "shed": tg.Shed(window="none", sift="none")}),
    ],
    ids=["another seed, share and gap", "no goal", "all groups alike"],
)
def test_what_was_decided_holds_through_a_restart_in_the_middle_of_a_window(
    spark: SparkSession, tmp_path: Path, drop: Any, settings: dict[str, Any]
) -> None:
    whole = rides(4_800, 240, 6)
    parts = [whole.slice(at, 400) for at in range(0, 4_800, 400)]

    def flow(stream: tg.Stream, drop: Any = "groups") -> tg.Stream:
        return stream.window("50 seconds", by="cell", drop=drop).agg(n=F.count("*"), s=F.sum("v"))

    sinks = Sink("before"), Sink("after")
    add_files(tmp_path / "in", parts[:6])
    first = start_bounded(
        flow(streamed(spark, tmp_path / "in")).write_to(sinks[0], name="busy", max_gap=3),
        checkpoint=tmp_path / "ck",
        goal=GOAL,
        shed=SHED,
    )
    assert first.await_termination(PATIENCE_SECONDS)
    assert sum(shed_rows(first)) > 300, "rows of the window that is open now were dropped"

    add_files(tmp_path / "in", parts[6:])
    second = start_bounded(
        flow(streamed(spark, tmp_path / "in"), drop).write_to(sinks[1], name="busy", max_gap=1),
        checkpoint=tmp_path / "ck",
        **settings,
    )
    assert second.await_termination(PATIENCE_SECONDS)
    exact = exactly(spark, tmp_path / "in", flow)
    assert set(sinks[1].counted) <= set(exact.counted), "a window came with a part of its rows"
    lines = [line for line in second.receipts().itertuples() if line.name == "busy"]
    lacking = {
        at
        for line in lines
        for begin, end, slide in line.missing_windows
        for at in range(begin, end + 1, slide)
    }
    came, closed = by_group(sinks[1].rows), {start_us(row) for row in sinks[1].rows} | lacking
    gone = {
        (group, at)
        for group, windows in by_group(exact.rows).items()
        for at in (windows & closed) - came[group]
    }
    assert gone
    assert {at for _, at in gone} <= lacking, "a window went without a word"
    assert all(line.mode == "SUBSET" for line in lines if line.windows_missing)
    open_then = seconds(6 * 20) // (50 * SECOND) * 50 * SECOND
    if drop == "windows":
        # Of a window that lacks some groups, none is written where all groups are alike.
        assert not {at for at in came if open_then in came[at]}
    if not settings:
        assert max(at for _, at in gone) <= open_then + 50 * SECOND, "a window was dropped without a goal"


def test_an_output_of_files_has_the_kept_groups_alone(spark: SparkSession, tmp_path: Path) -> None:
    in_files(tmp_path / "in", rides(3_000, 150, 7), 6)
    flow = streamed(spark, tmp_path / "in").window("4 seconds", by="cell", drop="groups").agg(n=F.count("*"))
    some, rest = str(tmp_path / "some"), str(tmp_path / "rest")
    query = start_bounded(
        flow.write_to("parquet", some, name="some", max_gap=2),
        flow.write_to("parquet", rest, name="rest"),
        checkpoint=tmp_path / "ck",
        goal=GOAL,
        shed=SHED,
    )
    assert query.await_termination(PATIENCE_SECONDS)
    kept, every = (spark.read.parquet(one) for one in (some, rest))
    assert kept.exceptAll(every).count() == 0
    assert 0.4 < kept.count() / every.count() < 0.75


def test_groups_that_equal_values_do_not_hash_into_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    frame = read_files(spark, tmp_path, "ts timestamp, cell string collate UTF8_LCASE")
    stream = tg.stream(frame, time="ts", name="rides", lateness="1 second")
    counts = stream.window("2 seconds", by="cell", drop="groups").agg(n=F.count("*"))
    with pytest.raises(tg.FlowError, match="WINDOW_BY_TYPE_INVALID"):
        tg.start(counts.write_to(Sink(), max_gap=3), checkpoint=str(tmp_path / "ck"), goal=GOAL)


def test_windows_behind_a_join_lose_groups_between_join_and_window(
    spark: SparkSession, tmp_path: Path
) -> None:
    for number, side in enumerate(("left", "right")):
        in_files(tmp_path / side, rides(2_400, 240, 8 + number), 8)

    def flow(left: Any, right: Any) -> tg.Stream:
        streams = [
            tg.stream(frame, time="ts", name=name, lateness="1 second")
            for frame, name in ((left, "left"), (right, "right"))
        ]
        pairs = streams[0].join(streams[1], on="k", within="8 seconds", name="pairs")
        return pairs.window("10 seconds", by=["cell", "k"], drop="groups", name="busy").agg(n=F.count("*"))

    sink, exact = Sink(), Sink("exact")
    frames = [read_files(spark, tmp_path / side, SCHEMA) for side in ("left", "right")]
    query = start_bounded(
        flow(*frames).write_to(sink, max_gap=2), checkpoint=tmp_path / "ck", goal=GOAL, shed=SHED
    )
    assert query.await_termination(PATIENCE_SECONDS)
    given = [spark.read.schema(SCHEMA).parquet(str(tmp_path / side)) for side in ("left", "right")]
    tg.start(flow(*given).write_to(exact))
    assert 0.4 < judged(sink, exact, 10 * SECOND, 2, seconds(80), seconds(200)) < 0.6
    told = [one for progress in query.telemetry for one in progress["operators"]]
    assert sum(sum(one["dropped"]) for one in told if one["operator"] == "pairs") == 0
    assert sum(sum(one["dropped"]) for one in told if one["operator"] == "busy") > 200
