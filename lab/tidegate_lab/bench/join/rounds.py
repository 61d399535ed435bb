"""The runs of `tidegate bench join`: the same data through every engine, in turns.

Speed on a shared machine drifts, so contenders alternate and are compared within a round:

    round 1   tidegate  spark-memory  floor  duckdb          ratio of the round: its own two figures
    round 2   tidegate  spark-memory  floor  duckdb          reported: median of the ratios, and their spread

One contender runs at a time, each in fresh processes. All of them must find the same pairs; otherwise the
command fails.

A contender that dies is tried again with half the rows per batch, and half of that, until it survives; the
largest rate that it survives is compared.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tidegate_lab.bench.join import process
from tidegate_lab.bench.join.process import Outcome
from tidegate_lab.bench.join.spec import CORES, HEAP_OTHERS, HEAP_OURS, Task
from tidegate_lab.workloads.join_data import JoinData, checksum_sql, write

#: A dead contender's rate is halved at most this often.
HALVINGS = 4
#: Cheap to run, and independent of Spark: confirms the pairs of engines that have nobody to compare with.
REFERENCE = "duckdb"
Say = Callable[[str], None]


@dataclass(frozen=True)
class Entry:
    """One contender with its work: entries with equal data and window must give equal pairs."""

    engine: str
    data: JoinData
    window_ms: int
    #: Batches at the start that are not timed; the others are.
    warmup: int
    watch: bool = False


@dataclass(frozen=True)
class Settings:
    """How to run, whatever is run."""

    rounds: int = 3
    timeout_seconds: float = 3600.0
    heap_others: str = HEAP_OTHERS
    heap_ours: str = HEAP_OURS
    #: Engine → interpreter that has its package, for engines that live elsewhere.
    pythons: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Line:
    """An entry and what became of it, round by round."""

    entry: Entry
    outcomes: list[Outcome] = field(default_factory=list)
    #: Where the entry died: the same engine at the largest rate tried at which it lived.
    survivor: Line | None = None
    #: A survivor's rate is its own, so the others' pairs cannot confirm it; this engine's do.
    reference: Line | None = None

    @property
    def died(self) -> str:
        return next((o.died for o in self.outcomes if o.died), "")

    @property
    def absent(self) -> bool:
        return any(o.absent for o in self.outcomes)

    @property
    def alive(self) -> bool:
        return bool(self.outcomes) and not self.died and not self.absent


class Arena:
    """Holds the generated data and runs entries, one at a time, below one folder."""

    def __init__(self, folder: Path, settings: Settings, say: Say) -> None:
        self._folder = folder
        self._settings = settings
        self._say = say
        self._data: dict[JoinData, Path] = {}

    def run_rounds(self, entries: Sequence[Entry]) -> list[Line]:
        """Every entry once a round, in turn; one that died or is absent is not run again."""
        lines = [Line(entry) for entry in entries]
        for number in range(1, self._settings.rounds + 1):
            for line in lines:
                if not line.died and not line.absent:
                    line.outcomes.append(self._run(line.entry, f"round {number}/{self._settings.rounds}"))
        for line in lines:
            if line.died:
                line.survivor = self._largest_surviving(line.entry)
        return lines

    def _largest_surviving(self, entry: Entry) -> Line | None:
        for halving in range(1, HALVINGS + 1):
            rows = entry.data.rows_per_batch >> halving
            if rows < 2:
                return None
            line = Line(replace(entry, data=replace(entry.data, rows_per_batch=rows)))
            line.outcomes.append(self._run(line.entry, f"with {rows:,} rows a batch"))
            if line.alive:
                line.reference = Line(replace(line.entry, engine=REFERENCE))
                line.reference.outcomes.append(self._run(line.reference.entry, f"with {rows:,} rows a batch"))
                return line
        return None

    def _run(self, entry: Entry, label: str) -> Outcome:
        work = self._folder / "work"
        work.mkdir(parents=True)
        python = self._settings.pythons.get(entry.engine, sys.executable)
        task = self._task(entry, work)
        self._say(f"{label}: {entry.engine} …")
        try:
            outcome = process.run_contender(task, self._settings.timeout_seconds, python)
        finally:
            shutil.rmtree(work, ignore_errors=True)
        if outcome.died:
            self._say(f"{label}: {entry.engine} did not survive: {outcome.died}")
        elif outcome.absent:
            self._say(f"{label}: {entry.engine} is not installed")
        return outcome

    def _task(self, entry: Entry, work: Path) -> Task:
        ours = entry.engine in ("tidegate", "floor")
        return Task(
            engine=entry.engine,
            data=str(self._files(entry.data)),
            work=str(work),
            batches=entry.data.batches,
            rows_per_batch=entry.data.rows_per_batch,
            warmup=entry.warmup,
            window_ms=entry.window_ms,
            payload_bytes=entry.data.payload_bytes,
            heap=self._settings.heap_ours if ours else self._settings.heap_others,
            cores=CORES,
            watch=entry.watch,
            checksum=checksum_sql("lms", "rms", entry.data.payload_bytes),
            seed=entry.data.seed,
        )

    def _files(self, data: JoinData) -> Path:
        if data not in self._data:
            path = self._folder / f"data-{len(self._data)}"
            self._say(f"generating {data.batches} batches of {data.rows_per_batch:,} rows …")
            for _ in write(data, path):
                pass
            self._data[data] = path
        return self._data[data]


def disagreements(lines: Sequence[Line]) -> list[str]:
    """What the engines do not agree on, in words; nothing when all is well."""
    floors = [o.done for line in lines if line.entry.engine == "floor" for o in line.outcomes]
    complaints = [
        f"floor: {done['counted']:,} of {done['rows']:,} rows arrived"
        for done in floors
        if done and done["counted"] != done["rows"]
    ]
    for answers in answers_by_work(lines).values():
        if len(answers) > 1:
            words = [
                f"{pairs:,} pairs with checksum {checksum} from {', '.join(sorted(engines))}"
                for (pairs, checksum), engines in answers.items()
            ]
            complaints.append("different results: " + "; ".join(words))
    return complaints


def unconfirmed(lines: Sequence[Line]) -> list[str]:
    """Engines whose pairs nobody else's confirm."""
    alone: list[str] = []
    for answers in answers_by_work(lines).values():
        engines = {engine for found in answers.values() for engine in found}
        if len(engines) == 1:
            alone.extend(engines)
    return alone


Answers = dict[tuple[int, int], set[str]]


def answers_by_work(lines: Sequence[Line]) -> dict[tuple[JoinData, int], Answers]:
    """Per data and window: (pairs, checksum) → engines that found it."""
    survivors = [line.survivor for line in lines if line.survivor]
    references = [line.reference for line in survivors if line.reference]
    found: dict[tuple[JoinData, int], Answers] = {}
    for line in (*lines, *survivors, *references):
        for done in (o.done for o in line.outcomes if o.done and line.entry.engine != "floor"):
            answers = found.setdefault((line.entry.data, line.entry.window_ms), {})
            answers.setdefault((int(done["pairs"]), int(done["checksum"])), set()).add(line.entry.engine)
    return found
