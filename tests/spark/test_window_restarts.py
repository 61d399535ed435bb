"""Windows that were dropped before a restart stay dropped, whatever the settings of the next run are."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.spark.flows import PATIENCE_SECONDS, Sink, add_files, read_files, seconds, start_bounded
from tests.spark.test_window_drop import GOAL, SCHEMA, micros, rows_table

import tidegate as tg

#: Nearly every window goes, as far as `max_gap` allows.
SHED = tg.Shed(window=0.97)
#: The run stops inside of a window of 20 seconds; each file is a batch of 7 seconds.
FIRST_RUN, ALL_FILES, SIZE_US = 6, 16, 20_000_000


class Stopping(Sink):
    """Fails in its fifth batch, whose plan is there then."""

    def __call__(self, frame: DataFrame, batch: int) -> None:
        if batch == 4:
            raise RuntimeError("no room")
        super().__call__(frame, batch)


Next = Callable[[Any, Sink], tuple[list[Any], dict[str, Any]]]


def without_a_goal(counts: Any, sink: Sink) -> tuple[list[Any], dict[str, Any]]:
    return [counts.write_to(sink, name="busy", max_gap=30)], {}


def without_a_gap(counts: Any, sink: Sink) -> tuple[list[Any], dict[str, Any]]:
    return [counts.write_to(sink, name="busy")], {}


def with_a_smaller_gap(counts: Any, sink: Sink) -> tuple[list[Any], dict[str, Any]]:
    return [counts.write_to(sink, name="busy", max_gap=2)], {"goal": GOAL, "shed": SHED}


def renamed(counts: Any, sink: Sink) -> tuple[list[Any], dict[str, Any]]:
    return [counts.write_to(sink, name="calm", max_gap=30)], {"goal": GOAL, "shed": SHED}


def with_a_second_output(counts: Any, sink: Sink) -> tuple[list[Any], dict[str, Any]]:
    first = counts.write_to(Sink("first"), name="busy", max_gap=30)
    return [first, counts.write_to(sink, name="second")], {"goal": GOAL, "shed": SHED}


def told_to_drop_none(counts: Any, sink: Sink) -> tuple[list[Any], dict[str, Any]]:
    shed = tg.Shed(window="none", sift="none")
    outputs = [counts.write_to(sink, name="busy", max_gap=30)]
    return outputs, {"goal": GOAL, "shed": shed}


@pytest.mark.parametrize(
    ("follows", "fails"),
    [
        (without_a_goal, True),
        (with_a_smaller_gap, False),
        (with_a_second_output, False),
        *(
            pytest.param(one, fails, marks=pytest.mark.soak)
            for one, fails in [
                (without_a_goal, False),
                (without_a_gap, False),
                (without_a_gap, True),
                (renamed, False),
                (renamed, True),
                (told_to_drop_none, False),
            ]
        ),
    ],
)
def test_a_window_of_which_rows_are_gone_never_comes_and_is_reported_missing(
    spark: SparkSession, tmp_path: Path, follows: Next, fails: bool
) -> None:
    whole = rows_table(1600, 112, 7)
    parts = [whole.slice(i, 100) for i in range(0, 1600, 100)]

    def counts() -> Any:
        frame = read_files(spark, tmp_path / "in", SCHEMA)
        stream = tg.stream(frame, time="ts", name="rides", lateness="1 second")
        return stream.window("20 seconds", by="k").agg(n=F.count("*"), s=F.sum("v"))

    add_files(tmp_path / "in", parts[:FIRST_RUN])
    sinks = Stopping("before") if fails else Sink("before"), Sink("after")
    first = start_bounded(
        counts().write_to(sinks[0], name="busy", max_gap=30), checkpoint=tmp_path / "ck", goal=GOAL, shed=SHED
    )
    with pytest.raises(tg.BatchFailed, match="no room") if fails else nullcontext():
        assert first.await_termination(PATIENCE_SECONDS)
    # Rows of the window that is open now were dropped.
    assert sum(sum(o["dropped"]) for p in first.telemetry for o in p["operators"]) > 100

    add_files(tmp_path / "in", parts[FIRST_RUN:ALL_FILES])
    outputs, settings = follows(counts(), sinks[1])
    second = start_bounded(*outputs, checkpoint=tmp_path / "ck", **settings)
    assert second.await_termination(PATIENCE_SECONDS)

    exact = Sink("exact")
    given = tg.stream(spark.read.schema(SCHEMA).parquet(str(tmp_path / "in")), time="ts", name="rides")
    aggregated = given.window("20 seconds", by="k").agg(n=F.count("*"), s=F.sum("v"))
    tg.start(aggregated.write_to(exact))
    name = outputs[-1].name
    receipts = second.receipts()
    lines = [line for line in receipts.itertuples() if (line.kind, line.name) == ("output", name)]
    missing = {
        at
        for line in lines
        for begin, end, slide in line.missing_windows
        for at in range(begin, end + 1, slide)
    }
    came = {micros(row) for row in sinks[1].rows}
    assert set(sinks[1].counted) <= set(exact.counted), "a window came with a part of its rows"
    assert missing
    assert not missing & came
    ran = 4 if fails else FIRST_RUN
    closing = range(seconds(7 * ran) - SIZE_US, seconds(110) - SIZE_US + 1)
    closed = {at for at in map(micros, exact.rows) if at in closing}
    assert closed <= came | missing, "a window went without a word"
    assert all(line.mode == "SUBSET" for line in lines if line.windows_missing)


@pytest.mark.parametrize(
    ("added", "settings"),
    [
        ("beside", {}),
        pytest.param("beside", {"goal": GOAL, "shed": SHED}, marks=pytest.mark.soak),
        pytest.param("behind", {}, marks=pytest.mark.soak),
        pytest.param("behind", {"goal": GOAL, "shed": SHED}, marks=pytest.mark.soak),
        pytest.param("on left", {}, marks=pytest.mark.soak),
    ],
)
def test_windows_added_where_rows_were_dropped_are_whole_or_missing(
    spark: SparkSession, tmp_path: Path, added: str, settings: dict[str, Any]
) -> None:
    """Rows in front of a join went with the windows behind it; their pairs with later rows are lost, too."""
    whole = {side: rows_table(1600, 112, seed) for side, seed in (("left", 3), ("right", 4))}

    def add(first: int, last: int) -> None:
        for side, rows in whole.items():
            add_files(tmp_path / side, [rows.slice(100 * number, 100) for number in range(first, last)])

    def flow(read: Callable[[Path], DataFrame]) -> tuple[Any, Any, Any]:
        left, right = (
            tg.stream(read(tmp_path / side), time="ts", name=side, lateness="1 second")
            for side in ("left", "right")
        )
        pairs = left.join(right, on="k", within="5 seconds", name="near")
        counts = pairs.window("20 seconds", by="k", name="busy").agg(n=F.count("*"), s=F.sum("v"))
        more = {
            "beside": lambda: pairs.window("2 seconds", by="k", name="twos").agg(n=F.count("*")),
            "behind": lambda: counts.window("20 seconds", by="k", name="twos").agg(n=F.sum("n")),
            "on left": lambda: left.window("2 seconds", by="k", name="twos").agg(n=F.count("*")),
        }
        return counts, more[added](), pairs

    def stream(folder: Path) -> DataFrame:
        return read_files(spark, folder, SCHEMA)

    # Decided windows stay, as many as a gap is long.
    max_gap = 2 if added == "behind" else 30
    add(0, FIRST_RUN)
    first_sink, later, twos, exact = Sink("busy"), Sink("busy"), Sink("twos"), Sink("exact")
    first = start_bounded(
        flow(stream)[0].write_to(first_sink, name="busy", max_gap=max_gap),
        checkpoint=tmp_path / "ck",
        goal=GOAL,
        shed=SHED,
    )
    assert first.await_termination(PATIENCE_SECONDS)
    assert sum(sum(o["dropped"]) for p in first.telemetry for o in p["operators"]) > 100
    add(FIRST_RUN, ALL_FILES)
    counts, more, pairs = flow(stream)
    with pytest.raises(tg.StateError, match=r"CHECKPOINT_ROWS_DROPPED.*'pairs'.*then add the new one"):
        tg.start(
            counts.write_to(Sink(), name="busy"),
            pairs.write_to(Sink(), name="pairs"),
            checkpoint=tmp_path / "ck",
        )
    second = start_bounded(
        counts.write_to(later, name="busy", max_gap=max_gap),
        more.write_to(twos, name="twos"),
        checkpoint=tmp_path / "ck",
        **settings,
    )
    assert second.await_termination(PATIENCE_SECONDS)
    tg.start(flow(lambda folder: spark.read.schema(SCHEMA).parquet(str(folder)))[1].write_to(exact))
    assert set(twos.counted) <= set(exact.counted), "a window came with a part of its rows"
    lines = [line for line in second.receipts().itertuples() if line.name == "twos"]
    missing = {
        at
        for line in lines
        for begin, end, slide in line.missing_windows
        for at in range(begin, end + 1, slide)
    }
    came = {micros(row) for row in twos.rows}
    # Windows that began before are listed where they were dropped, and else nobody's.
    begins = min(at for at in came | missing if at > seconds(7 * FIRST_RUN - 1))
    assert begins <= seconds(7 * FIRST_RUN) + 40_000_000
    closed = {at for at in map(micros, exact.rows) if begins <= at < seconds(110) - 40_000_000}
    assert closed <= came | missing, "a window went without a word"
    assert came
