"""One pass over all operators: its action, its reports, and its rows for outputs."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidegate.api.nodes import Output, Refused
from tidegate.api.streams import HIDDEN
from tidegate.driver.compile import ports
from tidegate.driver.compile.compiled import Compiled
from tidegate.driver.compile.keys import quoted
from tidegate.driver.frames import observed
from tidegate.driver.frames.drop_frames import in_gap
from tidegate.driver.frames.pass_input import result
from tidegate.driver.frames.stream_rows import StreamRows, late_count
from tidegate.driver.io.staging import read_staged
from tidegate.driver.operators.protocol import Operator
from tidegate.driver.operators.tap import Tap
from tidegate.driver.sql_text import data
from tidegate.model.graph import Reader
from tidegate.model.plan import Plan
from tidegate.model.reports import MatchReport, Observed, TaskReport, reports_in
from tidegate.model.times import BEGINNING_US, LEFT
from tidegate.window.drop.gap_table import GapTable
from tidegate.worker.runtime.layout import CELL, REPAIRED, REPORT, TIME
from tidegate.worker.runtime.pipe import Pipe
from tidegate.worker.runtime.task_runner import WorkOrder


def tapped(rows: DataFrame, tap: Tap, compiled: Compiled, plan: Plan) -> DataFrame:
    """Rows of a tap, as the plan judges them."""
    newest_us, late_before_us = compiled.accepted_us(tap.stream, plan), plan.late.streams[tap.stream]
    usable = f"({TIME} != {BEGINNING_US}L AND {TIME} <= {data(newest_us, 'bigint')})"
    on_time = f"{TIME} >= {data(late_before_us, 'bigint')}"
    kept = {
        "rows": f"{usable} AND {on_time}",
        "late": f"{usable} AND NOT {on_time}",
        "rejected": f"NOT {usable}",
    }
    return rows.where(kept[tap.kind]).select(*[F.col(quoted(name)) for name in tap.columns])


Reports = tuple[list[TaskReport], list[MatchReport]]


@dataclass(frozen=True)
class Staged:
    """How the tasks of an operator stage its results."""

    root: str
    #: The column that is stored as lists in the files.
    listed: str | None = None


@dataclass
class Pass:
    """The frames of one pass; `release` frees their memory."""

    compiled: Compiled
    batch: StreamRows | None
    results: dict[str, DataFrame]
    held: list[DataFrame]
    #: By operator whose tasks stage its results. Spark persists all other results.
    staging: Mapping[str, Staged] = field(default_factory=dict)
    #: By operator and side: the names of Spark's counts of its rows that reach no task.
    dropped: Mapping[tuple[str, int], Sequence[str]] = field(default_factory=dict)
    #: By operator whose results go straight on: how.
    pipes: Mapping[str, Pipe] = field(default_factory=dict)
    #: Operators that have nothing to do in this pass.
    at_rest: Mapping[str, WorkOrder] = field(default_factory=dict)
    #: Writes the one output of the flow: this is the action then. None: the action collects reports.
    write: Callable[[], None] | None = None
    #: By operator that stages: its files.
    staged: dict[str, list[str]] = field(default_factory=dict)
    _read_back: set[str] = field(default_factory=set)

    def run(self) -> Reports:
        """The action: materialise everything and return the reports of all tasks."""
        silent = {union.name for union in self.compiled.unions}
        silent.update(self.pipes, self.at_rest)
        frames = [self._reports(name) for name in self.results if name not in silent]
        whole = ports.union(frames) if frames else None
        texts = [] if whole is None else [row[REPORT] for row in whole.collect()]
        if self.write is not None:
            self.write()
        stateful, matches = reports_in([*texts, *_sent(self.pipes.values())])
        for name, work in self.at_rest.items():
            stateful += _idle_reports(name, work)
        for (name, side), counts in self.dropped.items():
            for rows in observed.dropped_rows(counts, self.batch, whole):
                stateful = _with_dropped(stateful, name, side, rows)
        reports: list[TaskReport | MatchReport] = [*stateful, *matches]
        for name, one in self.staging.items():
            files = [report.staged for report in reports if report.operator == name]
            self.staged[name] = [f"{one.root}/{file}" for file in files if file is not None]
        return stateful, matches

    def _reports(self, operator: str) -> DataFrame:
        frame = self.results[operator]
        # Tasks that stage their results return only reports.
        return frame if operator in self.staging else frame.where(f"{REPORT} IS NOT NULL").select(REPORT)

    def rows(self, output: Output, plan: Plan, gaps: GapTable | None = None) -> DataFrame | None:
        """The rows that an output writes; None if this pass has no such rows.

        `gaps`: starts of windows that this output drops.
        """
        node = output.node
        base, steps = ports.steps_of(node)
        operator = self.compiled.operator_of(base)
        if operator is not None:
            if operator.name not in self.results:
                return None
            frame = self._result(operator)
            if gaps is not None:
                start = "unix_micros(cast(window_start as timestamp))"
                frame = frame.where(f"NOT ({in_gap(gaps, start, operator.group_code)})")
            hides = any(name.startswith(HIDDEN) for name in frame.columns)
            if not steps and not hides and output.repair_column is None:
                return frame
        else:
            tap = self.compiled.taps[id(node)]
            if self.batch is None:
                return None
            frame = tapped(self.batch.entry(tap.entry), tap, self.compiled, plan)
            steps = steps if isinstance(base, Refused) else []
        for step in steps:
            frame = step.apply(frame)
        shown = [quoted(name) for name in frame.columns if not name.startswith(HIDDEN)]
        if output.repair_column is not None:
            skipped_by = REPAIRED if REPAIRED in frame.columns else "CAST(NULL AS BIGINT)"
            shown.append(f"{skipped_by} AS {quoted(output.repair_column)}")
        return frame.selectExpr(*shown)

    def worth(self, utility: Column) -> dict[str, dict[int, float]]:
        """The sum of the utility per join and cell, for joins whose rows carry their cell."""
        found = {}
        for join in (join for join in self.compiled.joins if join.layout.cells):
            # Null, NaN and negative utilities count as zero: such pairs are not worth a probe.
            worth = F.sum(F.greatest(F.nanvl(utility.cast("double"), F.lit(0.0)), F.lit(0.0)))
            # Repaired pairs belong to no cell of this batch.
            rows = (
                self._result(join).where(F.col(CELL) >= 0).groupBy(CELL).agg(worth.alias("worth")).collect()
            )
            found[join.name] = {row[CELL]: float(row["worth"] or 0.0) for row in rows}
        return found

    def late(self, plan: Plan) -> dict[str, int]:
        """Late rows of tapped streams that enter no operator, so that no task counts them."""
        counted = {stream for operator in self.compiled.operators for stream in operator.streams}
        # A tap of refused rows lies in front of all steps, so its count takes precedence.
        taps = sorted(self.compiled.taps.values(), key=lambda tap: tap.kind != "rows")
        chosen = {tap.stream: tap for tap in taps if tap.stream not in counted}
        direct = self.compiled.direct_tap
        if direct is not None and self.batch is not None:
            name = late_count(direct.stream)
            return {direct.stream: observed.read_counts([name], self.batch)[name]}
        counts = {}
        for stream, tap in chosen.items() if self.batch is not None else ():
            rows = None if self.batch is None else self.batch.new(tap.entry)
            if self.batch is not None and rows is not None:
                behind = f"{TIME} < {data(plan.late.streams[stream], 'bigint')}"
                late = F.expr(f"{self.batch.usable(stream)} AND {behind}")
                counts[stream] = rows.agg(F.count_if(late).alias("late"))
        return dict.fromkeys(chosen, 0) | _one_row_each(counts)

    def united(self, plan: Plan) -> dict[Reader, tuple[int, int]]:
        """By input of a union: its rows, and the late ones among them."""
        found: dict[Reader, tuple[int, int]] = {}
        for union in self.compiled.unions if self.batch is not None else ():
            inputs = list(union.readers((), drops=False))
            rows = None if self.batch is None else self.batch.new(union.entry.entry)
            counts = [0] * 2 * len(inputs)
            if rows is not None:
                counts = list(rows.agg(*union.counts(plan.late)).collect()[0])
            found |= dict(zip(inputs, zip(counts[::2], counts[1::2], strict=True), strict=True))
        return found

    def _result(self, operator: Operator) -> DataFrame:
        """The rows of an operator, read back if its tasks staged them."""
        name = operator.name
        staged = name in self.staging
        if staged and name not in self._read_back:
            session = self.results[name].sparkSession
            listed = self.staging[name].listed
            self.results[name] = read_staged(session, self.staged[name], operator.schema, listed)
            self._read_back.add(name)
        return result(operator, self.results[name], staged)

    def release(self) -> None:
        if self.batch is not None:
            self.batch.release()
        for frame in self.held:
            frame.unpersist()
        for files in self.staged.values():
            for file in files:
                os.remove(file)


def _with_dropped(reports: list[TaskReport], operator: str, side: int, dropped: Observed) -> list[TaskReport]:
    """Rows dropped in front of an operator are added to the report of its first instance."""

    def changed(pair: tuple[Any, Any], value: Any) -> tuple[Any, Any]:
        return (value, pair[1]) if side == LEFT else (pair[0], value)

    return [
        replace(
            report,
            rows=replace(
                report.rows,
                offered=changed(report.rows.offered, report.rows.offered[side] + dropped.offered),
                dropped=changed(report.rows.dropped, report.rows.dropped[side] + dropped.offered),
                seen_us=changed(report.rows.seen_us, _newest(report.rows.seen_us[side], dropped.seen_us)),
            ),
        )
        if report.operator == operator and not report.instance
        else report
        for report in reports
    ]


def _newest(*times: int | None) -> int | None:
    return max((one for one in times if one is not None), default=None)


def _one_row_each(frames: Mapping[str, DataFrame]) -> dict[str, int]:
    """The one number in each of these frames, in one job."""
    named = [frame.select(F.lit(name).alias("name"), "late") for name, frame in frames.items()]
    return {row["name"]: int(row["late"]) for row in ports.union(named).collect()} if named else {}


def _sent(pipes: Collection[Pipe]) -> list[str]:
    """The reports of tasks whose results went straight on, those of each task once."""
    found: dict[tuple[str, int], tuple[str, ...]] = {}
    for pipe in pipes:
        for token, operator, task, texts in pipe.reports.value:
            if token == pipe.token:
                found[operator, task] = texts
    for pipe in pipes:
        pipe.reports.value.clear()
    return [text for texts in found.values() for text in texts]


def _idle_reports(operator: str, work: Any) -> list[TaskReport]:
    """The reports of the instances of an operator that did not run."""
    state = getattr(work, "state", None)
    return [] if state is None else [TaskReport(operator, i) for i in range(state.routing.instances)]
