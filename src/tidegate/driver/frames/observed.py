"""Reads what Spark observed in front of the stateless steps of a stream: rows, rejected rows, newest time.

In a streaming query the numbers belong to the execution of the running batch, which calls `foreachBatch`.
Spark publishes them after the batch, too late for the manifest. They are complete when the action is done, so
they are read from the execution itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, Observation

from tidegate.driver.compile.ports import AVAILABLE
from tidegate.errors import BatchFailed
from tidegate.model.reports import MatchReport, Observed
from tidegate.model.times import BEGINNING_US

#: A number of one observation, by its name.
Number = Callable[[str], Any]


def read(observations: Mapping[str, Observation | str], query: Any) -> dict[str, Observed]:
    """The numbers of all observed streams; `query` is the Java streaming query, None in a batch run."""
    return {
        name: Observed(number("offered"), number("rejected"), number("seen_us"))
        for name, number in _numbers(observations, query).items()
    }


def read_counts(observations: Mapping[str, Observation | str], query: Any) -> dict[str, int]:
    """Rows counted behind stateless steps, by name."""
    return {name: number("rows") for name, number in _numbers(observations, query).items()}


def read_available(observations: Mapping[str, Observation | str], query: Any) -> dict[str, list[int]]:
    """By stream with an `available_at`: its quantiles in microseconds; none if all of it is null."""
    if query is None:
        texts = {name: number(AVAILABLE) for name, number in _numbers(observations, None).items()}
    else:
        texts = {name: _said_of(one, query) for name, one in observations.items()}
    return {name: [int(moment) for moment in text.split(",")] for name, text in texts.items() if text}


def _said_of(observation: Observation | str, query: Any) -> str | None:
    """The text of an observation; None if Spark does not report it."""
    try:
        row = query.streamingQuery().lastExecution().observedMetrics().get(observation)
        text: str | None = row.get().getAs(AVAILABLE) if row.isDefined() else None
    except Py4JError:
        return None
    return text


def read_entered(names: Mapping[str, str], frame: DataFrame) -> dict[str, Observed]:
    """By operator: what Spark counted while this frame was collected; tasks report rejected rows.

    A stage that Spark runs again, because a machine with its output was lost, is counted twice. Then too many
    rows are reported as offered and dropped.
    """
    numbers = _published(names.values(), frame._jdf.queryExecution())
    found = {}
    for operator, name in names.items():
        rows, seen_us = numbers[name]("rows"), numbers[name]("seen_us")
        found[operator] = Observed(rows, 0, None if seen_us == BEGINNING_US else seen_us)
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


def _numbers(observations: Mapping[str, Observation | str], query: Any) -> dict[str, Number]:
    """The numbers of each observation, in a streaming or a batch run."""
    if not observations:
        return {}
    if query is None:
        return {
            name: watch.get.__getitem__ for name, watch in observations.items() if not isinstance(watch, str)
        }
    return _published(observations, query.streamingQuery().lastExecution())


def _published(names: Iterable[str], execution: Any) -> dict[str, Number]:
    """The numbers of each observation, from a Java query execution."""
    metrics = execution.observedMetrics()
    found = {}
    for name in names:
        row = metrics.get(name)
        if not row.isDefined():
            raise BatchFailed(
                f"Spark returned no metrics of {name!r}",
                code="INTERNAL_METRICS_MISSING",
                why="The watermark cannot advance without them, so nothing was committed",
                do="Start the query again; if this repeats, report it with this message and Spark's log",
            )
        found[name] = row.get().getAs
    return found
