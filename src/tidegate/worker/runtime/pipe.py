"""Results that go straight on to the operator that reads them, without being kept in between.

    task of join ─┬─ rows ───────────────────▶ steps ─▶ shuffle ─▶ task of window      one job, nothing kept
                  │  (or, if a window reads them, their partials: worker/window/early_partials.py)
                  ├─ rows, if outputs write them too ─▶ staged file
                  └─ report ─▶ accumulator ─▶ driver

A report cannot travel with the rows here, because steps of the user lie behind. An accumulator of Spark
carries it. Spark may run a task twice, and then the driver gets two reports of it: the plan fixes the rows,
so both describe the same result, and one is dropped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import pyarrow as pa

from tidegate.model.reports import MatchReport, TaskReport, report_text, reports_in
from tidegate.state.store.paths import stage_path
from tidegate.worker.runtime.layout import REPORT
from tidegate.worker.runtime.stage_file import Kept, StageWriter
from tidegate.worker.runtime.task_errors import ArrowFunction, guarded
from tidegate.worker.runtime.task_runner import Context, attempt, partition_of

#: A pass, an operator, the number of one of its tasks, and its reports: one of each instance that it ran.
Sent = tuple[str, str, int, tuple[str, ...]]


class Rows(Protocol):
    """What goes on of the rows of one task."""

    def add(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]: ...

    def rest(self) -> Iterator[pa.RecordBatch]: ...


class Onward(Protocol):
    """Makes what goes on; sent to the workers."""

    def begin(self) -> Rows:
        """For the rows of one task."""


class Reports:
    """How Spark's accumulator adds up reports: as a list of `Sent`."""

    def zero(self, value: list[Sent]) -> list[Sent]:
        """Nothing yet."""
        return []

    def addInPlace(self, value1: list[Sent], value2: list[Sent]) -> list[Sent]:  # noqa: N802 - Spark's name
        """All of both."""
        value1.extend(value2)
        return value1


@dataclass(frozen=True)
class Pipe:
    """What the tasks of one operator do with results that go straight on."""

    operator: str
    batch: int
    #: Distinguishes this pass from all others: a task of an earlier one may still run.
    token: str
    #: Spark's accumulator of reports.
    reports: Any
    #: Where rows are staged besides, for outputs, and how; None: no output writes them.
    stage_root: str | None = None
    kept_as: Kept | None = None
    #: Several operators read the rows, so Spark persists them.
    persists: bool = False
    #: Makes what goes on of the rows, from the rows of one task; None: they go on as they are.
    onward: Onward | None = None


def piped(function: ArrowFunction, pipe: Pipe, context: Context) -> ArrowFunction:
    """The same tasks; their report goes to the accumulator, and their rows also to a file if asked."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        path = stage_path(pipe.operator, pipe.batch, 0, attempt())
        stage = None if pipe.stage_root is None else StageWriter(f"{pipe.stage_root}/{path}", pipe.kept_as)
        texts: list[str] = []
        made = None if pipe.onward is None else pipe.onward.begin()
        for result in function(batches):
            report = result.column(REPORT)
            if report.null_count < len(report):
                texts += report.drop_null().to_pylist()
                continue
            if stage is not None:
                stage.write(result)
            yield from (result,) if made is None else made.add(result)
        yield from () if made is None else made.rest()
        staged = path if stage is not None and stage.close() else None
        tasks, matches = reports_in(texts)
        reports: list[TaskReport | MatchReport] = [*tasks, *matches]
        # The file has the rows of all instances, and is named once.
        named = [replace(one, staged=None if number else staged) for number, one in enumerate(reports)]
        sent = tuple(map(report_text, named))
        pipe.reports.add([(pipe.token, pipe.operator, partition_of(context()), sent)])

    return guarded(pipe.operator, run)
