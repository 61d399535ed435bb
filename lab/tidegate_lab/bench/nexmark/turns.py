"""All at once: every contender takes every query over the same files, in turns.

    query q3   round 1   tidegate  spark-memory  spark-rocksdb  flink      results are written and compared
               round 2   tidegate  spark-memory  spark-rocksdb  flink      counts
    query q4   …

The first round of a query meets a cold Java, so only later ones count. Every contender stays in its process
for the rounds of a query, and waits there for its turn. All must give DuckDB's result.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from tidegate_lab.bench.nexmark.answers import Oracle, answer_in
from tidegate_lab.bench.nexmark.processes import Processes
from tidegate_lab.bench.nexmark.task import FLINKS, Answer
from tidegate_lab.workloads.nexmark.events import Events
from tidegate_lab.workloads.nexmark.files import write

#: Rounds that do not count.
COLD = 1
Say = Callable[[str], None]


@dataclass
class Line:
    """One contender on one query."""

    query: str
    contender: str
    events: int
    rounds: list[Answer] = field(default_factory=list)
    #: Whether the result was DuckDB's; None where it was never written.
    right: bool | None = None

    @property
    def trouble(self) -> str:
        """Why there is no complete result; empty if there is one."""
        return next((one["why"] for one in self.rounds if one["event"] != "done"), "")

    @property
    def absent(self) -> bool:
        return any(one["event"] == "absent" for one in self.rounds)

    @property
    def seconds(self) -> float | None:
        """Of a warm round."""
        warm = [float(one["seconds"]) for one in self.rounds[COLD:] if one["event"] == "done"]
        return median(warm) if warm and not self.trouble else None

    @property
    def rate(self) -> float | None:
        """Events a second."""
        return None if self.seconds is None else self.events / self.seconds


@dataclass(frozen=True)
class Settings:
    """How much, how often, and where results go."""

    events: Events
    files: int
    rounds: int
    #: Whether warm rounds write their results too; Flink's never do.
    keep: bool
    timeout_seconds: float


def run_turns(
    queries: Sequence[str],
    contenders: Sequence[str],
    settings: Settings,
    processes: Processes,
    folder: Path,
    say: Say,
) -> list[Line]:
    """A line for each query and contender, in this order."""
    say(f"generating {settings.files} files of {settings.events.per_file:,} events …")
    files = list(write(settings.events, folder / "events", settings.files))
    turns = _Turns(settings, processes, files, folder / "work", Oracle(folder / "events"), say)
    count = settings.files * settings.events.per_file
    lines: list[Line] = []
    for query in queries:
        of_query = [Line(query, contender, count) for contender in contenders]
        try:
            for number in range(settings.rounds):
                for line in of_query:
                    if not line.trouble:
                        turns.take(line, number)
        finally:
            processes.leave()
        lines += of_query
    return lines


@dataclass(frozen=True)
class _Turns:
    """What every turn needs."""

    settings: Settings
    processes: Processes
    files: Sequence[Path]
    folder: Path
    oracle: Oracle
    say: Say

    def take(self, line: Line, number: int) -> None:
        """One run, and what it wrote compared with DuckDB's result."""
        work = self.folder / f"{line.query}-{line.contender}-{number}"
        work.mkdir(parents=True)
        keep = number < COLD or (self.settings.keep and line.contender not in FLINKS)
        answer = self.processes.play(
            line.contender, line.query, self.files, work, keep, self.settings.timeout_seconds
        )
        line.rounds.append(answer)
        label = f"{line.query} round {number + 1}/{self.settings.rounds}: {line.contender}"
        if answer["event"] == "done":
            rate = line.events / answer["seconds"]
            self.say(f"{label} {answer['seconds']:.2f} s, {rate / 1000:,.0f} thousand events/s")
            if keep:
                self._compare(line, work / "out", label)
        else:
            self.say(f"{label}: {answer['event']}: {answer['why']}")
        shutil.rmtree(work, ignore_errors=True)

    def _compare(self, line: Line, out: Path, label: str) -> None:
        right = answer_in(out, line.query) == self.oracle.answer(line.query)
        line.right = right and line.right is not False
        if not right:
            self.say(f"{label} gave another result than DuckDB")
