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
