"""Reads what Spark counted while a batch ran: rows, rejected rows, newest time.

Spark publishes observed metrics after the batch, too late for the manifest. They are complete when the action
is done, so they are read from the execution itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame

from tidegate.driver.frames.stream_rows import (
    AVAILABLE,
    OFFERED,
    REJECTED,
    ROWS,
    SEEN,
    StreamRows,
    available_count,
    stream_count,
)
from tidegate.errors import BatchFailed
from tidegate.model.reports import MatchReport, Observed
from tidegate.model.times import BEGINNING_US


def read(streams: Iterable[str], batch: StreamRows) -> dict[str, Observed]:
    """The numbers of all observed streams."""
    found = {}
    for stream in streams:
        name = stream_count(stream)
        if batch.observes(name):
            number = _numbers(name, batch.observed(name))
            found[stream] = Observed(number(OFFERED), number(REJECTED), number(SEEN))
        else:
            found[stream] = Observed(0, 0, None)
    return found


def read_counts(names: Iterable[str], batch: StreamRows) -> dict[str, int]:
    """Rows counted behind stateless steps, by name."""
    return {name: _numbers(name, batch.observed(name))(ROWS) if batch.observes(name) else 0 for name in names}


def read_available(streams: Iterable[str], batch: StreamRows) -> dict[str, list[int]]:
    """By stream with an `available_at`: its quantiles in microseconds; none if all of it is null."""
    found = {}
    for stream in streams:
        text = _available(available_count(stream), batch)
        if text:
            found[stream] = [int(moment) for moment in text.split(",")]
    return found


def _available(name: str, batch: StreamRows) -> str | None:
    """The text of an observation; None if Spark does not report it."""
    if not batch.observes(name):
        return None
    try:
        number = batch.observed(name)
    except Py4JError:
        return None
    text: str | None = None if number is None else number(AVAILABLE)
    return text


def dropped_rows(names: Sequence[str], batch: StreamRows | None, whole: DataFrame | None) -> list[Observed]:
    """What Spark counted of rows that were dropped in front of the tasks; `whole`: the frame of the action.

    A stage that Spark runs again, because a machine with its output was lost, is counted twice. Then too many
    rows are reported as offered and dropped.
    """
    found = []
    for name in names:
        if batch is not None and batch.observes(name):
            number = batch.observed(name)
        else:
            row = None if whole is None else whole._jdf.queryExecution().observedMetrics().get(name)
            number = row.get().getAs if row is not None and row.isDefined() else None
        numbers = _numbers(name, number)
        seen_us = numbers(SEEN)
        found.append(Observed(numbers(ROWS), 0, None if seen_us == BEGINNING_US else seen_us))
    return found


def judged(seen: Observed, matched: Sequence[MatchReport], newest_us: int) -> Observed:
    """The observation of a stream, corrected by the tasks of a match, which find times too far ahead.

    If the newest observed time is too far ahead, the newest time that a task accepted replaces it. Newer rows
    that a sifter dropped do not count then.
    """
    rejected = seen.rejected + sum(report.rejected for report in matched)
    if seen.seen_us is None or seen.seen_us <= newest_us:
        return Observed(seen.offered, rejected, seen.seen_us)
    times = [report.seen_us for report in matched if report.seen_us is not None]
    return Observed(seen.offered, rejected, max(times, default=None))


def counted_by(matched: Sequence[MatchReport]) -> Observed:
    """The counts of a stream by the tasks of a match."""
    times = [report.seen_us for report in matched if report.seen_us is not None]
    received = sum(report.received for report in matched)
    return Observed(received, sum(report.rejected for report in matched), max(times, default=None))


def _numbers(name: str, number: Any) -> Any:
    if number is None:
        raise BatchFailed(
            f"Spark returned no metrics of {name!r}",
            code="INTERNAL_METRICS_MISSING",
            why="The watermark cannot advance without them, so nothing was committed",
            do="Start the query again; if this repeats, report it with this message and Spark's log",
        )
    return number
