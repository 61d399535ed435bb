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
from tidegate_lab.bench.nexmark.field import Field
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
    field_: Field,
    folder: Path,
    say: Say,
) -> list[Line]:
    """A line for each query and contender, in this order."""
    say(f"generating {settings.files} files of {settings.events.per_file:,} events …")
    files = list(write(settings.events, folder / "events", settings.files))
    oracle = Oracle(folder / "events")
    count = settings.files * settings.events.per_file
    lines: list[Line] = []
    for query in queries:
        of_query = [Line(query, contender, count) for contender in contenders]
        try:
            for number in range(settings.rounds):
                for line in of_query:
                    if not line.trouble:
                        _take_turn(line, number, settings, field_, files, folder, oracle, say)
        finally:
            field_.leave()
        lines += of_query
    return lines


def _take_turn(
    line: Line,
    number: int,
    settings: Settings,
    field_: Field,
    files: Sequence[Path],
    folder: Path,
    oracle: Oracle,
    say: Say,
) -> None:
    work = folder / "work" / f"{line.query}-{line.contender}-{number}"
    work.mkdir(parents=True)
    keep = number < COLD or (settings.keep and line.contender not in FLINKS)
    answer = field_.play(line.contender, line.query, files, work, keep, settings.timeout_seconds)
    line.rounds.append(answer)
    label = f"{line.query} round {number + 1}/{settings.rounds}: {line.contender}"
    if answer["event"] == "done":
        rate = line.events / answer["seconds"]
        say(f"{label} {answer['seconds']:.2f} s, {rate / 1000:,.0f} thousand events/s")
        if keep:
            right = answer_in(work / "out", line.query) == oracle.answer(line.query)
            line.right = right and line.right is not False
            if not right:
                say(f"{label} gave another result than DuckDB")
    else:
        say(f"{label}: {answer['event']}: {answer['why']}")
    shutil.rmtree(work, ignore_errors=True)
