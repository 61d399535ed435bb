"""`PlainEngine` and `PlainWindows` with unions: what Spark does in front of the operators, in plain Python.

A row of a union is dropped if it is late for all operators with state that read the union, or, where each
stream is judged by itself, in its own stream. Operators behind the union get the others, and drop what is
late for them. The newest times of its streams are those that Spark observes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tests.oracle.plain_engine import Joined, PlainEngine
from tests.oracle.plain_window_engine import PlainWindows

from tidegate.control.outcome import manifest_after, newest_seen
from tidegate.control.receipts.ledger import Counted
from tidegate.model.graph import Reader
from tidegate.model.manifest import Manifest
from tidegate.model.plan import Plan
from tidegate.model.reports import TaskReport
from tidegate.model.times import BEGINNING_US

Unions = Mapping[str, tuple[str, ...]]


def inputs_of(unions: Unions) -> list[Reader]:
    """The inputs of unions, as `UnionOperator.readers` has them."""
    return [
        Reader(name, number, stream, None, True)
        for name, streams in unions.items()
        for number, stream in enumerate(streams)
    ]


def time_of(row: Any) -> int | None:
    time: int | None = row["time"] if isinstance(row, dict) else row[0]
    return time


class _Uniting(PlainEngine):
    """Operators that read the name of a union get the rows of its streams."""

    unions: Unions
    _newest: dict[str, int | None]
    #: What Spark counts in the last batch.
    counted: Counted

    def unite(self, unions: Unions) -> None:
        self.unions, self._newest, self.counted = unions, {}, Counted()
        self.operators = {name: replace(one, unions=unions) for name, one in self.operators.items()}

    def _pass(
        self,
        plan: Plan,
        before: Manifest,
        rows: Mapping[str, Sequence[Any]],
        emitted: dict[str, Counter[Joined]],
    ) -> list[TaskReport]:
        timed = {name: [row for row in some if time_of(row) is not None] for name, some in rows.items()}
        self._newest = {name: max(map(_known, some), default=None) for name, some in timed.items()}
        late_us = {
            stream: plan.late.inputs.get(name, (plan.late.streams[stream],))[0]
            for name, streams in self.unions.items()
            for stream in streams
        }
        on_time = {
            name: [row for row in some if _known(row) >= late_us.get(name, BEGINNING_US)]
            for name, some in timed.items()
        }
        if rows:
            self._count(rows, timed, on_time)
        united = {
            name: [row for stream in streams for row in on_time.get(stream, ())]
            for name, streams in self.unions.items()
        }
        return super()._pass(plan, before, {**rows, **united}, emitted)

    def _count(self, *steps: Mapping[str, Sequence[Any]]) -> None:
        rows, timed, on_time = ({name: len(some) for name, some in step.items()} for step in steps)
        self.counted = Counted(
            arrived=rows,
            rejected={name: number - timed[name] for name, number in rows.items()},
            united={
                one.name: (timed[one.source], timed[one.source] - on_time[one.source])
                for one in inputs_of(self.unions)
                if one.source in timed
            },
        )

    def _after(self, before: Manifest, plan: Plan, reports: Sequence[TaskReport]) -> Manifest:
        newest = {**newest_seen(reports, self.operators), **self._newest}
        return manifest_after(before, plan, reports, newest, self.settings, self.operators)


def _known(row: Any) -> int:
    time = time_of(row)
    assert time is not None
    return time


class UnitedJoins(_Uniting):
    """Joins over unions."""


class UnitedWindows(_Uniting, PlainWindows):
    """Windows over unions."""
