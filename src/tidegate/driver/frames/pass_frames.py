"""Builds the data frames of one pass over all operators; nothing runs before the engine's action.

    input (all ports) ─┬─▶ by instance ─▶ join1 ─▶ kept ─┬─▶ outputs
                       │                                  ▼ boxes
                       ├──────────────▶ by instance ─▶ join2 ─▶ kept ─▶ outputs
                       ├─▶ sifter ─▶ match1 ─▶ kept ─▶ outputs
                       ├─▶ pane partials ─▶ by instance ─▶ window1 ─▶ kept ─▶ outputs
                       └─▶ taps (rows that go straight to an output)

Every operator's result is kept, because it has two readers at least: the engine, which collects the reports,
and a sink. Where sinks alone read it, its tasks stage it as files (staging.py); where operators do, Spark
persists it. So kernels run once, and sinks read what was materialised as often as they like.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping

import pyarrow as pa
from pyspark import StorageLevel, TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tidegate.api.nodes import Join, Match, Node, Window
from tidegate.driver.compile import ports
from tidegate.driver.compile.compiled import Compiled, CompiledJoin, CompiledMatch, CompiledWindow
from tidegate.driver.frames import residual_frames
from tidegate.driver.frames.frame_cache import Known
from tidegate.driver.frames.passes import Pass, Staged, entering, result
from tidegate.driver.frames.routing_frames import routed
from tidegate.driver.frames.sifter_frames import marked, sifted
from tidegate.driver.frames.window_frames import count_name, counts_dropped, only_markers, partials
from tidegate.model.times import BEGINNING_US
from tidegate.state.store.paths import stage_path
from tidegate.window.spec import RowsSpec
from tidegate.worker.join.task import JoinInstance, instance_in
from tidegate.worker.join.work import JoinBatch
from tidegate.worker.match.task import MatchBatch, MatchTask
from tidegate.worker.runtime.layout import CELL, CODE, MARKER, QUERY_ID, REPORT, TAG, TIME
from tidegate.worker.window.count_task import CountWindowInstance
from tidegate.worker.window.task import WindowInstance
from tidegate.worker.window.work import WindowBatch

#: What the tasks of each operator need to know in one batch.
Works = Mapping[str, JoinBatch | MatchBatch | WindowBatch]
#: What tasks return that stage their results; as a type, because Spark would parse a text in every batch.
REPORTS = T.StructType([T.StructField(REPORT, T.StringType())])


def build_pass(compiled: Compiled, given: DataFrame | None, works: Works, again: bool, known: Known) -> Pass:
    """Frames for one pass over `given` rows (None: only settling); `again`: more passes may follow."""
    held: list[DataFrame] = []
    readers = sum(any(s.from_source for s in join.inputs) for join in compiled.joins)
    readers += sum(match.tap is not None for match in compiled.matches)
    readers += sum(window.tap is not None for window in compiled.windows)
    if given is not None and (readers > 1 or compiled.taps):
        given = given.persist(StorageLevel.MEMORY_AND_DISK)
        held.append(given)
    results: dict[str, DataFrame] = {}
    staging: dict[str, Staged] = {}
    counted: dict[str, str] = {}
    for operator in compiled.operators:
        name = operator.layout.operator
        work = works[name]
        if isinstance(operator, CompiledJoin):
            assert isinstance(work, JoinBatch)
            rows = _join_rows(compiled, operator, given, results, work.routing.instances, again, known)
            made = _run_join(rows, operator, work)
        elif isinstance(operator, CompiledWindow):
            assert isinstance(work, WindowBatch)
            taken = _window_rows(compiled, operator, given, results)
            if taken is not None and counts_dropped(work):
                counted[name] = count_name(name)
            made = _run_window(compiled, operator, work, taken, known)
        else:
            assert isinstance(work, MatchBatch)
            tried = _match_rows(compiled, operator, given, results)
            if tried is None:
                continue
            made = _run_match(tried, operator, work)
        if work.stage_root is not None:
            results[name] = made
            listed = QUERY_ID if isinstance(work, MatchBatch) and work.lists_queries else None
            staging[name] = Staged(work.stage_root, listed)
        else:
            results[name] = made.persist(StorageLevel.MEMORY_AND_DISK)
            held.append(results[name])
    return Pass(compiled, given, results, held, staging, counted)


def _join_rows(
    compiled: Compiled,
    join: CompiledJoin,
    given: DataFrame | None,
    results: Mapping[str, DataFrame],
    instances: int,
    again: bool,
    known: Known,
) -> DataFrame:
    """All rows that enter a join in this pass, in the shared layout.

    Where frames of several operators or passes are put together, the number of Spark's task no longer tells
    the instance, so markers do.
    """
    lanes = sorted({lane for side in join.inputs for lane in side.port.lanes}, key=lambda name: int(name[1:]))
    columns = [TAG, TIME, CODE, *lanes]
    frames = []
    alone = len(compiled.operators) == 1 and not compiled.taps
    from_sources = [side.port.tag for side in join.inputs if side.from_source]
    if given is not None and from_sources:
        tags = [tag + keyless for tag in from_sources for keyless in (0, 1)]
        # Each step on a data frame costs its analysis in every batch: none that changes nothing.
        mine = f"{TAG} IN ({', '.join(map(str, tags))})"
        frames.append(given if alone else given.where(mine).selectExpr(*columns))
    for side in join.inputs:
        base, boxes = ports.boxes_of(side.node)
        if isinstance(base, (Join, Match, Window)) and compiled.operator_of(base).layout.operator in results:
            upstream = result(compiled.operator_of(base), results).drop(CELL)
            frames.append(side.project(ports.apply_boxes(upstream, boxes, "an operator")).select(*columns))
    if not (frames and alone and not again):
        session = frames[0].sparkSession if frames else compiled.spark
        key = ("markers", join.layout.operator, instances, bool(frames))
        frames.append(known.get(key, lambda: _markers(session, compiled, columns, instances)))
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
        return residual_frames.judged(placed, join, work)
    schema = join.schema if work.stage_root is None else REPORTS
    return placed.mapInArrow(_task(work), schema)


def _task(work: JoinBatch):  # type: ignore[no-untyped-def]
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        received = list(batches)
        context = TaskContext.get()
        task = context.partitionId() if context is not None else 0
        number = instance_in(received, task)
        # A name that no other attempt has, so retries and speculation never write to one file.
        return JoinInstance(work, number, uuid.uuid4().hex[:12]).run(iter(received))

    return run


def _match_rows(
    compiled: Compiled, match: CompiledMatch, given: DataFrame | None, results: Mapping[str, DataFrame]
) -> DataFrame | None:
    """The rows that a match tries; None in a pass without new rows, where a stream feeds it."""
    if match.tap is not None:
        # Where Spark has not counted rows without a time, the tasks do.
        counted = match.tap.stream in compiled.observed
        return None if given is None else entering(given, match.tap, usable_only=counted)
    return _upstream_rows(compiled, match.node.parent, results)


def _upstream_rows(compiled: Compiled, node: Node, results: Mapping[str, DataFrame]) -> DataFrame | None:
    """The rows of an operator behind its boxes; None where it has none in this pass."""
    base, boxes = ports.boxes_of(node)
    assert isinstance(base, (Join, Match, Window))
    upstream = compiled.operator_of(base)
    if upstream.layout.operator not in results:
        return None
    frame = result(upstream, results).drop(CELL)
    for box in boxes:
        frame = box.apply(frame)
    return frame


def _window_rows(
    compiled: Compiled, window: CompiledWindow, given: DataFrame | None, results: Mapping[str, DataFrame]
) -> DataFrame | None:
    """The rows that a window aggregate gets; None in a pass that brings none."""
    if window.tap is None:
        return _upstream_rows(compiled, window.node.parent, results)
    return None if given is None else entering(given, window.tap, usable_only=False)


def _run_window(
    compiled: Compiled, window: CompiledWindow, work: WindowBatch, rows: DataFrame | None, known: Known
) -> DataFrame:
    """Partials by Spark, one shuffle by instance number, then the kernels."""
    placed = (
        partials(rows, window, work, known)
        if rows is not None
        else only_markers(compiled.spark, window, work)
    )
    schema = window.schema if work.stage_root is None else REPORTS
    kind = CountWindowInstance if isinstance(work.layout.spec, RowsSpec) else WindowInstance

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        received = list(batches)
        context = TaskContext.get()
        task = context.partitionId() if context is not None else 0
        number = instance_in(received, task)
        return kind(work, number, uuid.uuid4().hex[:12]).run(iter(received))

    return placed.mapInArrow(run, schema)


def _run_match(rows: DataFrame, match: CompiledMatch, work: MatchBatch) -> DataFrame:
    """No shuffle: tasks take the rows as they come."""
    if work.sifter is not None:
        rows = sifted(rows, work) if match.node.mark is None else marked(rows, match.node.mark)
    schema = match.schema if work.stage_root is None else REPORTS

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        task = context.partitionId() if context is not None else 0
        staged = stage_path(work.layout.operator, work.batch, task, uuid.uuid4().hex[:12])
        return MatchTask(work, staged).run(batches)

    return rows.mapInArrow(run, schema)
