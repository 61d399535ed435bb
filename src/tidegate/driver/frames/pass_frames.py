"""Builds the data frames of one pass over all operators; they run with the engine's action.

    streams ─┬─▶ steps ─▶ by instance ─▶ join1 ─▶ kept ─┬─▶ outputs
             │                                          ▼ stateless steps
             ├─▶ steps ───────────────▶ by instance ─▶ join2 ─▶ kept ─▶ outputs
             ├─▶ steps ─▶ sifter ─▶ match1 ─▶ kept ─▶ outputs
             ├─▶ window drop ─▶ steps ─▶ pane partials ─▶ by instance ─▶ window1 ─▶ kept ─▶ outputs
             └─▶ taps (rows that go straight to an output)

Kernels run once, however many read their results. If only outputs read them, the tasks stage them as files
(`io/staging.py`). If one other operator reads them, they go straight on to it (`worker/runtime/pipe.py`), and
are staged besides if outputs write them. Otherwise Spark persists them. An operator that no row reaches, and
that has nothing to release, does not run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from tidegate.driver.compile.compiled import Compiled
from tidegate.driver.frames.frame_cache import FrameCache
from tidegate.driver.frames.pass_input import PassInput
from tidegate.driver.frames.passes import Pass, Staged
from tidegate.driver.frames.stream_rows import StreamRows
from tidegate.driver.operators.protocol import Operator
from tidegate.worker.runtime.pipe import Pipe
from tidegate.worker.runtime.task_runner import WorkOrder


def build_pass(
    compiled: Compiled,
    batch: StreamRows | None,
    session: SparkSession,
    works: Mapping[str, WorkOrder],
    again: bool,
    cache: FrameCache,
    pipes: Mapping[str, Pipe],
    one_task: bool,
) -> Pass:
    """Frames for one pass over the rows of a batch (None: no new rows); `again`: more passes may follow."""
    held: list[DataFrame] = []
    rows = PassInput(compiled, batch, session, again, cache, one_task, pipes)
    staging: dict[str, Staged] = {}
    at_rest: dict[str, WorkOrder] = {}
    for operator in compiled.operators:
        work = works[operator.name]
        if operator.reports and _rests(operator, rows, work, at_rest):
            at_rest[operator.name] = work
            rows.results[operator.name] = _nothing(operator, rows)
            continue
        made = operator.frame(rows, work)
        if made is None:
            continue
        if operator.name in pipes:
            pipe = pipes[operator.name]
            if pipe.stage_root is not None:
                staging[operator.name] = Staged(pipe.stage_root, operator.listed(work))
            if pipe.persists:
                made = made.persist(StorageLevel.MEMORY_AND_DISK)
                held.append(made)
        elif work.stage_root is not None:
            staging[operator.name] = Staged(work.stage_root, operator.listed(work))
        elif operator.reports:  # Otherwise it is a filter of the rows of the batch, which are kept.
            made = made.persist(StorageLevel.MEMORY_AND_DISK)
            held.append(made)
        rows.results[operator.name] = made
    return Pass(compiled, batch, rows.results, held, staging, rows.dropped, pipes, at_rest)


def _rests(operator: Operator, rows: PassInput, work: WorkOrder, at_rest: Mapping[str, WorkOrder]) -> bool:
    """Whether no row reaches an operator in this pass, and its tasks have nothing else to do."""
    return not operator.is_due(work) and not any(
        _gives(name, rows, at_rest) for name in rows.compiled.graph.inputs[operator.name]
    )


def _gives(name: str, rows: PassInput, at_rest: Mapping[str, WorkOrder]) -> bool:
    """Whether a stream or operator may give rows in this pass."""
    if name in rows.compiled.sources:
        return rows.batch is not None and rows.batch.has_rows(name)
    union = next((one for one in rows.compiled.unions if one.name == name), None)
    if union is not None:
        return any(_gives(stream, rows, at_rest) for stream in rows.compiled.graph.inputs[name])
    return name not in at_rest


def _nothing(operator: Operator, rows: PassInput) -> DataFrame:
    """A result without rows, which Spark knows to be empty, so that reading it takes no job."""
    session: Any = rows.spark

    def made() -> DataFrame:
        schema = session._jsparkSession.parseDataType(operator.schema.json())
        none = session._jvm.java.util.ArrayList()
        return DataFrame(session._jsparkSession.createDataFrame(none, schema), session)

    return rows.cache.get(("nothing", operator.name), made)
