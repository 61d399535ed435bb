"""The values of one running batch: its plan, the reports of its passes, its manifest."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tidegate.control.actuators.join_shedding import Worth
from tidegate.control.goal.backpressure import TakenRows
from tidegate.control.latency import Availability
from tidegate.driver.engine.match_counts import Entered
from tidegate.driver.frames.stream_rows import StreamRows
from tidegate.errors import BatchFailed
from tidegate.model.manifest import Manifest
from tidegate.model.plan import Plan
from tidegate.model.progress import LatencyProgress
from tidegate.model.reports import MatchReport, Observed, TaskReport


class Timings:
    """Seconds by part of a batch."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - started


@dataclass
class BatchDone:
    """A batch after the passes that have run so far."""

    plan: Plan
    #: None in a commit without rows.
    rows: StreamRows | None
    before: Manifest
    after: Manifest
    #: Of the pass over its rows, and of all passes.
    reports: list[TaskReport]
    settled: list[TaskReport]
    matched: list[MatchReport]
    #: By stream: what Spark observed in front of the steps, corrected by the matches.
    seen: dict[str, Observed]
    #: Rows that entered the flow, its matches and its unions.
    entered: Entered
    #: Late rows by stream, for streams that no join or window counts.
    late: dict[str, int]
    #: The utility of the pairs of joins, if the user gave one.
    worth: Worth = field(default_factory=dict)
    #: By stream: what the batch took from its source.
    taken: dict[str, TakenRows] = field(default_factory=dict)
    #: When the rows of each stream became available.
    available: list[Availability] = field(default_factory=list)
    #: From there to the end of the sinks.
    latency: LatencyProgress | None = None

    @property
    def batch(self) -> int:
        return self.plan.batch

    @property
    def all_reports(self) -> list[TaskReport | MatchReport]:
        return [*self.settled, *self.matched]


def check_complete(reports: list[TaskReport], plan: Plan) -> None:
    """There must be exactly one report per operator and instance."""
    got = sorted((report.operator, report.instance) for report in reports)
    wanted = sorted((name, i) for name, routing in plan.routing.items() for i in range(routing.instances))
    if got != wanted:
        raise BatchFailed(
            f"Batch {plan.batch} lacks the reports of some instances",
            code="INTERNAL_REPORTS_MISSING",
            got=f"{len(got)} reports, {len(wanted)} expected",
            why="Rows of an instance without a report may be lost, so nothing was committed",
            do="Start the query again; if this repeats, report it with this message and Spark's log",
        )
