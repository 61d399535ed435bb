"""Builds the data frames of one pass over all operators; nothing runs before the engine's action.

    input (all ports) ─┬─▶ by instance ─▶ join1 ─▶ kept ─┬─▶ outputs
                       │                                  ▼ boxes
                       ├──────────────▶ by instance ─▶ join2 ─▶ kept ─▶ outputs
                       └─▶ taps (rows that go straight to an output)

Every operator's result is kept, because it has two readers at least: the engine, which collects the reports,
and a sink. The tasks of a lone join stage it as files (staging.py); otherwise Spark persists it. So kernels
run once, and sinks read what was materialised as often as they like.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark import StorageLevel, TaskContext
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from tidegate.flow import HIDDEN, Join, Node, Refused
from tidegate.spark import ports, residual
from tidegate.spark.compiled import Compiled, CompiledJoin, Tap
from tidegate.spark.join_batch import JoinBatch
from tidegate.spark.join_task import JoinInstance, instance_in
from tidegate.spark.keys import quoted
from tidegate.spark.layout import CELL, CODE, MARKER, REPORT, TAG, TIME
from tidegate.spark.routed import routed
from tidegate.spark.staging import read_staged
from tidegate.values import BEGINNING_US, TaskReport


@dataclass
class Pass:
    """The frames of one pass. `release` gives their memory back."""

    compiled: Compiled
    input: DataFrame | None
    results: dict[str, DataFrame]
    held: list[DataFrame]
    #: The join whose results its tasks stage; None where Spark persists them.
    staging: CompiledJoin | None = None
    stage_root: str = ""
    staged: list[str] = field(default_factory=list)
    _is_read: bool = False

    def run(self) -> list[TaskReport]:
        """The one action: materialises everything, returns the reports of all tasks."""
        if self.staging is not None:
            return self._run_staged(self.staging)
        frames = [frame.where(F.col(REPORT).isNotNull()) for frame in self.results.values()]
        if not frames and self.input is not None:
            self.input.count()
        if len(frames) > 1:
            frames = [ports.union([frame.select(REPORT) for frame in frames])]
        return [report for frame in frames for report in _collected(frame)]

    def _run_staged(self, join: CompiledJoin) -> list[TaskReport]:
        reports = _collected(self.results[join.layout.operator])
        self.staged = [f"{self.stage_root}/{r.staged}" for r in reports if r.staged is not None]
        return reports

    def rows(self, node: Node, late_before_us: Mapping[str, int]) -> DataFrame | None:
        """The rows of a node that an output writes; None where this pass brings no such rows."""
        base, boxes = ports.boxes_of(node)
        if isinstance(base, Join):
            self._read_back()
            frame = _joined(self.compiled.join_of(base), self.results)
            if not boxes and not any(name.startswith(HIDDEN) for name in frame.columns):
                return frame
        elif self.input is None:
            return None
        else:
            frame = _tapped(self.input, self.compiled.taps[id(node)], late_before_us)
            boxes = boxes if isinstance(base, Refused) else []
        for box in boxes:
            frame = box.apply(frame)
        return frame.select(*[quoted(name) for name in frame.columns if not name.startswith(HIDDEN)])

    def worth(self, utility: Column) -> dict[str, dict[int, float]]:
        """Per join whose rows say where they were found: what was found there is worth, added up."""
        valued = [join for join in self.compiled.joins if join.layout.cells]
        if valued:
            self._read_back()
        found = {}
        for join in valued:
            # Null, NaN and negative are worth nothing: to look for such pairs would be a waste of time.
            worth = F.sum(F.greatest(F.nanvl(utility.cast("double"), F.lit(0.0)), F.lit(0.0)))
            rows = _joined(join, self.results).groupBy(CELL).agg(worth.alias("worth")).collect()
            found[join.layout.operator] = {row[CELL]: float(row["worth"] or 0.0) for row in rows}
        return found

    def late(self, late_before_us: Mapping[str, int]) -> dict[str, int]:
        """Late rows of streams that enter no join, where no task counts them."""
        joined = {side.port.stream for join in self.compiled.joins for side in join.inputs}
        # Refused rows are tapped in front of all boxes, so where there is such a tap it has the last word.
        taps = sorted(self.compiled.taps.values(), key=lambda tap: tap.kind != "rows")
        chosen = {tap.stream: tap for tap in taps if tap.stream not in joined}
        if self.input is None or not chosen:
            return {}
        counts = [F.count_if(_is_late(tap, late_before_us)).alias(name) for name, tap in chosen.items()]
        row = self.input.agg(*counts).collect()[0]
        return {name: int(row[name]) for name in chosen}

    def _read_back(self) -> None:
        """From now on the result of a staged join is its rows, no longer its reports."""
        if self.staging is not None and not self._is_read:
            name = self.staging.layout.operator
            session = self.results[name].sparkSession
            self.results[name] = read_staged(session, self.staged, self.staging.schema)
            self._is_read = True

    def release(self) -> None:
        for frame in self.held:
            frame.unpersist()
        for file in self.staged:
            os.remove(file)


def _collected(frame: DataFrame) -> list[TaskReport]:
    """The reports in a frame: one row per operator and instance, however many rows were joined."""
    return [TaskReport.from_json(json.loads(row[REPORT])) for row in frame.collect()]


def build_pass(
    compiled: Compiled, given: DataFrame | None, works: Mapping[str, JoinBatch], again: bool
) -> Pass:
    """Frames for one pass over `given` rows (None: only settling); `again`: more passes may follow."""
    held: list[DataFrame] = []
    readers = sum(any(s.from_source for s in join.inputs) for join in compiled.joins)
    if given is not None and (readers > 1 or compiled.taps):
        given = given.persist(StorageLevel.MEMORY_AND_DISK)
        held.append(given)
    results: dict[str, DataFrame] = {}
    for join in compiled.joins:
        work = works[join.layout.operator]
        rows = _join_rows(compiled, join, given, results, work.routing.instances, again)
        if work.stage_root is not None:
            reports = routed(rows, work).mapInArrow(_task(work), f"{REPORT} string")
            return Pass(compiled, given, {join.layout.operator: reports}, held, join, work.stage_root)
        result = _run_join(rows, join, work).persist(StorageLevel.MEMORY_AND_DISK)
        held.append(result)
        results[join.layout.operator] = result
    return Pass(compiled, given, results, held)


def _join_rows(
    compiled: Compiled,
    join: CompiledJoin,
    given: DataFrame | None,
    results: Mapping[str, DataFrame],
    instances: int,
    again: bool,
) -> DataFrame:
    """All rows that enter a join in this pass, in the shared layout.

    Where frames of several operators or passes are put together, the number of Spark's task no longer tells
    the instance, so markers do.
    """
    lanes = sorted({lane for side in join.inputs for lane in side.port.lanes}, key=lambda name: int(name[1:]))
    columns = [TAG, TIME, CODE, *lanes]
    frames = []
    alone = len(compiled.joins) == 1 and not compiled.taps
    from_sources = [side.port.tag for side in join.inputs if side.from_source]
    if given is not None and from_sources:
        tags = [tag + keyless for tag in from_sources for keyless in (0, 1)]
        # Each step on a data frame costs its analysis in every batch: none that changes nothing.
        frames.append(given if alone else given.where(F.col(TAG).isin(tags)).select(*columns))
    for side in join.inputs:
        base, boxes = ports.boxes_of(side.node)
        if isinstance(base, Join):
            upstream = _joined(compiled.join_of(base), results).drop(CELL)
            frames.append(side.project(ports.apply_boxes(upstream, boxes, "a join")).select(*columns))
    if not (frames and alone and not again):
        session = frames[0].sparkSession if frames else compiled.spark
        frames.append(_markers(session, compiled, columns, instances))
    return ports.union(frames)


def _markers(session: SparkSession, compiled: Compiled, columns: list[str], instances: int) -> DataFrame:
    """One row per instance that tells its task who it is, also where no other row comes."""
    numbers = session.range(0, instances, 1, 1).withColumn(TIME, F.lit(BEGINNING_US))
    nothing = ports.Port(MARKER, None, (), ())
    return ports.project(numbers, nothing, compiled.lanes, (), F.col("id"), F.lit(False)).select(*columns)


def _run_join(rows: DataFrame, join: CompiledJoin, work: JoinBatch) -> DataFrame:
    """One shuffle by instance number, then the kernels."""
    placed = routed(rows, work)
    if join.candidates is not None:
        return residual.judged(placed, join, work)
    return placed.mapInArrow(_task(work), join.schema)


def _task(work: JoinBatch):  # type: ignore[no-untyped-def]
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        received = list(batches)
        context = TaskContext.get()
        task = context.partitionId() if context is not None else 0
        number = instance_in(received, task)
        # A name that no other attempt has, so retries and speculation never write to one file.
        return JoinInstance(work, number, uuid.uuid4().hex[:12]).run(iter(received))

    return run


def _joined(join: CompiledJoin, results: Mapping[str, DataFrame]) -> DataFrame:
    """The joined rows alone: no reports, and for an inner join only those that its condition lets through."""
    frame = results[join.layout.operator]
    if REPORT in frame.columns:
        frame = frame.where(F.col(REPORT).isNull()).drop(REPORT)
    if join.node.where is not None and join.candidates is None:
        # Behind the reports, not beside them: a condition in Python must never see a row of nulls.
        frame = frame.where(residual.condition(join.node.where))
    return frame


def _tapped(frame: DataFrame, tap: Tap, late_before_us: Mapping[str, int]) -> DataFrame:
    """Rows of one port with the columns of its stream."""
    mine = frame.where(F.col(TAG) == F.lit(tap.port.tag))
    usable = F.col(TIME) != F.lit(BEGINNING_US)
    late = _is_late(tap, late_before_us)
    kept = {"rows": usable & ~late, "late": late, "rejected": ~usable}[tap.kind]
    named = [F.col(lane).alias(name) for name, lane in zip(tap.port.columns, tap.port.lanes, strict=True)]
    return mine.where(kept).select(*named)


def _is_late(tap: Tap, late_before_us: Mapping[str, int]) -> Column:
    """Is a row one of this port, with a usable time that lies below its stream's watermark?"""
    # A plain literal would be compiled into the code and so cost a compilation in every batch; an array
    # that is looked up by a column (whose value is 0 for these rows) is passed to the compiled code as data.
    mark = F.get(F.array(F.lit(late_before_us[tap.stream])), F.col(TAG).cast("int") - F.lit(tap.port.tag))
    mine = (F.col(TAG) == F.lit(tap.port.tag)) & (F.col(TIME) != F.lit(BEGINNING_US))
    return mine & (F.col(TIME) < mark)
