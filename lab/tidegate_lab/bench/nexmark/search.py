"""Sustained: the highest rate of events at which results keep coming within the goal.

    rate ▲              ✗        doubled while it holds, then halfway (as a ratio) between the highest rate
         │        ✓        ✓     that held and the lowest that did not
         │   ✓          ✗
         └──────────────────▶ attempt

The 95th percentile of the latency over the counted time must keep the goal, over its last third too: a query
that slowly falls behind does not hold the rate. Contenders take one attempt each in turns. The first attempt
of a contender also meets a cold Java; one that fails there is tried again.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import sqrt
from pathlib import Path

from tidegate_lab.bench.nexmark.latency import percentile
from tidegate_lab.bench.nexmark.processes import Processes
from tidegate_lab.bench.nexmark.task import Answer, Pace
from tidegate_lab.workloads.nexmark.events import Events
from tidegate_lab.workloads.nexmark.files import file_name, write_file
from tidegate_lab.workloads.nexmark.rows import table

PART = 0.95
#: Below this, in events a second, the search ends without a rate.
LEAST_RATE = 1_000.0
#: A run may take so much longer than its files are published.
SPARE_SECONDS = 240.0
Say = Callable[[str], None]


@dataclass(frozen=True)
class Attempt:
    """One rate, and what came of it."""

    rate: float
    held: bool
    p95: float | None
    answer: Answer


@dataclass
class Search:
    """The attempts of one contender on one query; decides which rate comes next."""

    query: str
    contender: str
    first_rate: float
    #: How often the gap between what holds and what does not is halved.
    halvings: int
    attempts: list[Attempt] = field(default_factory=list)
    trouble: str = ""

    @property
    def best(self) -> float | None:
        """The highest rate that held."""
        return max((one.rate for one in self.attempts if one.held), default=None)

    @property
    def lowest_failed(self) -> float | None:
        """The lowest rate that failed; the cold first attempt does not count."""
        failed = (one.rate for one in self.attempts[1:] if not one.held)
        return min((rate for rate in failed if self.best is None or rate > self.best), default=None)

    def next_rate(self) -> float | None:
        """The rate to try; None when the search is over."""
        if self.trouble:
            return None
        best, failed = self.best, self.lowest_failed
        if failed is None:
            return self.first_rate if best is None else 2 * best
        if best is None:
            return failed / 2 if failed / 2 >= LEAST_RATE else None
        # The gap began as a factor of two.
        narrow = 2.0 ** (1 / 2**self.halvings)
        return sqrt(best * failed) if failed / best > narrow * 1.001 else None


def holds(answer: Answer, goal_seconds: float) -> bool:
    """Whether a run kept the goal, all the time and at its end."""
    latencies = [float(one) for one in answer["latencies"]]
    last = latencies[len(latencies) * 2 // 3 :]
    values = percentile(latencies, PART), percentile(last, PART)
    return not answer["fell_behind"] and all(one is not None and one <= goal_seconds for one in values)


@dataclass(frozen=True)
class Conditions:
    """What every attempt has in common."""

    events: Events
    first_rate: float
    halvings: int
    goal_seconds: float
    warmup_seconds: float
    seconds: float
    trigger: str

    def pace(self, rate: float) -> Pace:
        return Pace(
            rate, self.events.per_file, self.warmup_seconds, self.seconds, self.trigger, 5 * self.goal_seconds
        )


def run_searches(
    queries: Sequence[str],
    contenders: Sequence[str],
    conditions: Conditions,
    processes: Processes,
    folder: Path,
    say: Say,
) -> list[Search]:
    """A search for each query and contender, in this order."""
    pool = Pool(conditions.events, folder / "events")
    found: list[Search] = []
    for query in queries:
        searches = [
            Search(query, contender, conditions.first_rate, conditions.halvings) for contender in contenders
        ]
        try:
            while any(search.next_rate() is not None for search in searches):
                for search in searches:
                    _attempt(search, conditions, processes, pool, folder, say)
        finally:
            processes.leave()
        found += searches
    return found


def _attempt(
    search: Search, conditions: Conditions, processes: Processes, pool: Pool, folder: Path, say: Say
) -> None:
    rate = search.next_rate()
    if rate is None:
        return
    pace = conditions.pace(rate)
    pool.fill(pace.files)
    work = folder / "work"
    work.mkdir()
    limit = pace.warmup_seconds + pace.seconds + SPARE_SECONDS
    answer = processes.sustain(search.contender, search.query, pool.folder, work, pace, limit)
    shutil.rmtree(work, ignore_errors=True)
    label = f"{search.query}: {search.contender} at {rate:,.0f} events/s"
    if answer["event"] != "done":
        search.trouble = str(answer["why"])
        say(f"{label}: {answer['event']}: {search.trouble}")
        return
    held = holds(answer, conditions.goal_seconds)
    p95 = answer["p95"]
    search.attempts.append(Attempt(rate, held, p95, answer))
    say(f"{label}: p95 {p95:.2f} s, {'holds' if held else 'does not hold'}")


class Pool:
    """Files of events, made when an attempt needs more of them than all before."""

    def __init__(self, events: Events, folder: Path) -> None:
        self._events = events
        self.folder = folder
        self.folder.mkdir(parents=True)

    def fill(self, files: int) -> None:
        for file in range(files):
            if not (self.folder / file_name(file)).exists():
                write_file(table(self._events, file), self.folder, file)
