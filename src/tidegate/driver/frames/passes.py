"""One pass over all operators: its action, its reports, and its rows for outputs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

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
from tidegate.driver.io.staging import read_staged
from tidegate.driver.operators.protocol import Operator
from tidegate.driver.operators.tap import Tap
from tidegate.model.graph import Reader
from tidegate.model.reports import MatchReport, Observed, TaskReport, reports_in
from tidegate.model.times import BEGINNING_US
from tidegate.window.drop.gap_table import GapTable
from tidegate.worker.runtime.layout import CELL, REPAIRED, REPORT, TAG, TIME


def tapped(frame: DataFrame, tap: Tap, late_before_us: Mapping[str, int]) -> DataFrame:
    """Rows of one port with the columns of its stream."""
    mine = frame.where(F.col(TAG) == F.lit(tap.port.tag))
    usable = F.col(TIME) != F.lit(BEGINNING_US)
    late = is_late(tap, late_before_us)
    kept = {"rows": usable & ~late, "late": late, "rejected": ~usable}[tap.kind]
    named = [F.col(lane).alias(name) for name, lane in zip(tap.port.columns, tap.port.lanes, strict=True)]
    return mine.where(kept).select(*named)


def is_late(tap: Tap, late_before_us: Mapping[str, int]) -> Column:
    """Whether a row belongs to this port and has a usable time below its stream's watermark."""
    # A plain literal would cost a compilation in every batch. An array that is indexed by a column (which is
    # 0 for these rows) is data to the compiled code.
    mark = F.get(F.array(F.lit(late_before_us[tap.stream])), F.col(TAG).cast("int") - F.lit(tap.port.tag))
    mine = (F.col(TAG) == F.lit(tap.port.tag)) & (F.col(TIME) != F.lit(BEGINNING_US))
    return mine & (F.col(TIME) < mark)


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
    input: DataFrame | None
    results: dict[str, DataFrame]
    held: list[DataFrame]
    #: By operator whose tasks stage its results. Spark persists all other results.
    staging: Mapping[str, Staged] = field(default_factory=dict)
    #: By window aggregate whose dropped rows reach no task: the name of Spark's count of all its rows.
    counted: Mapping[str, str] = field(default_factory=dict)
    #: By operator that stages: its files.
    staged: dict[str, list[str]] = field(default_factory=dict)
    _read_back: set[str] = field(default_factory=set)

    def run(self) -> Reports:
        """The action: materialise everything and return the reports of all tasks."""
        silent = {union.name for union in self.compiled.unions}
        frames = [self._reports(name) for name in self.results if name not in silent]
        if not frames and self.input is not None:
            self.input.count()
        whole = ports.union(frames) if frames else None
        stateful, matches = _collected(whole)
        if self.counted and whole is not None:
            for name, all_rows in observed.read_entered(self.counted, whole).items():
                stateful = _with_dropped(stateful, name, all_rows)
        reports: list[TaskReport | MatchReport] = [*stateful, *matches]
        for name, one in self.staging.items():
            files = [report.staged for report in reports if report.operator == name]
            self.staged[name] = [f"{one.root}/{file}" for file in files if file is not None]
        return stateful, matches

    def _reports(self, operator: str) -> DataFrame:
        frame = self.results[operator]
        # Tasks that stage their results return only reports.
        return frame if operator in self.staging else frame.where(f"{REPORT} IS NOT NULL").select(REPORT)

    def rows(
        self, output: Output, late_before_us: Mapping[str, int], gaps: GapTable | None = None
    ) -> DataFrame | None:
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
                frame = frame.where(f"NOT ({in_gap(gaps, start)})")
            hides = any(name.startswith(HIDDEN) for name in frame.columns)
            if not steps and not hides and output.repair_column is None:
                return frame
        elif self.input is None:
            return None
        else:
            frame = tapped(self.input, self.compiled.taps[id(node)], late_before_us)
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

    def late(self, late_before_us: Mapping[str, int]) -> dict[str, int]:
        """Late rows of streams that enter no operator, so that no task counts them."""
        counted = {stream for operator in self.compiled.operators for stream in operator.streams}
        # A tap of refused rows lies in front of all steps, so its count takes precedence.
        taps = sorted(self.compiled.taps.values(), key=lambda tap: tap.kind != "rows")
        chosen = {tap.stream: tap for tap in taps if tap.stream not in counted}
        if self.input is None or not chosen:
            return {}
        counts = [F.count_if(is_late(tap, late_before_us)).alias(name) for name, tap in chosen.items()]
        row = self.input.agg(*counts).collect()[0]
        return {name: int(row[name]) for name in chosen}

    def united(self, late_before_us: Mapping[str, int]) -> dict[Reader, tuple[int, int]]:
        """By input of a union: its rows, and the late ones among them."""
        unions = self.compiled.unions
        if self.input is None or not unions:
            return {}
        row = self.input.agg(*[one for union in unions for one in union.counts(late_before_us)]).collect()[0]
        inputs = [reader for union in unions for reader in union.readers((), drops=False)]
        return dict(zip(inputs, zip(row[::2], row[1::2], strict=True), strict=True))

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
        for frame in self.held:
            frame.unpersist()
        for files in self.staged.values():
            for file in files:
                os.remove(file)


def _with_dropped(reports: list[TaskReport], operator: str, entered: Observed) -> list[TaskReport]:
    """Rows dropped in front of an operator are added to the report of its first instance."""
    dropped = entered.offered - sum(
        report.rows.offered[0] for report in reports if report.operator == operator
    )
    return [
        replace(
            report,
            rows=replace(
                report.rows,
                offered=(report.rows.offered[0] + dropped, 0),
                dropped=(report.rows.dropped[0] + dropped, 0),
                seen_us=(entered.seen_us, None),
            ),
        )
        if report.operator == operator and not report.instance
        else report
        for report in reports
    ]


def _collected(frame: DataFrame | None) -> Reports:
    """The reports in a frame: one row per operator and task."""
    return reports_in(row[REPORT] for row in frame.collect()) if frame is not None else ([], [])
