"""Builds the data frames of one pass over all operators; they run with the engine's action.

    streams ─┬─▶ steps ─▶ by instance ─▶ join1 ─▶ kept ─┬─▶ outputs
             │                                          ▼ stateless steps
             ├─▶ steps ───────────────▶ by instance ─▶ join2 ─▶ kept ─▶ outputs
             ├─▶ steps ─▶ sifter ─▶ match1 ─▶ kept ─▶ outputs
             ├─▶ window drop ─▶ steps ─▶ pane partials ─▶ by instance ─▶ window1 ─▶ kept ─▶ outputs
             └─▶ taps (rows that go straight to an output)

Kernels run once, however many read their results. If only outputs read them, the tasks stage them as files
(`io/staging.py`). If one other operator reads them, they go straight on to it (`worker/runtime/pipe.py`), and
are staged besides if outputs write them. Otherwise Spark persists them.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from tidegate.driver.compile.compiled import Compiled
from tidegate.driver.frames.frame_cache import FrameCache
from tidegate.driver.frames.pass_input import PassInput
from tidegate.driver.frames.passes import Pass, Staged
from tidegate.driver.frames.stream_rows import StreamRows
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
) -> Pass:
    """Frames for one pass over the rows of a batch (None: no new rows); `again`: more passes may follow."""
    held: list[DataFrame] = []
    rows = PassInput(compiled, batch, session, again, cache, pipes)
    staging: dict[str, Staged] = {}
    for operator in compiled.operators:
        work = works[operator.name]
        made = operator.frame(rows, work)
        if made is None:
            continue
        if operator.name in pipes:
            pipe = pipes[operator.name]
            if pipe.stage_root is not None:
                staging[operator.name] = Staged(pipe.stage_root, operator.listed(work))
        elif work.stage_root is not None:
            staging[operator.name] = Staged(work.stage_root, operator.listed(work))
        elif operator.reports:  # Otherwise it is a filter of the rows of the batch, which are kept.
            made = made.persist(StorageLevel.MEMORY_AND_DISK)
            held.append(made)
        rows.results[operator.name] = made
    return Pass(compiled, batch, rows.results, held, staging, rows.dropped, pipes)
