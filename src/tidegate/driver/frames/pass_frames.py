"""Builds the data frames of one pass over all operators; they run with the engine's action.

    input (all ports) ─┬─▶ by instance ─▶ join1 ─▶ kept ─┬─▶ outputs
                       │                                  ▼ stateless steps
                       ├──────────────▶ by instance ─▶ join2 ─▶ kept ─▶ outputs
                       ├─▶ sifter ─▶ match1 ─▶ kept ─▶ outputs
                       ├─▶ pane partials ─▶ by instance ─▶ window1 ─▶ kept ─▶ outputs
                       └─▶ taps (rows that go straight to an output)

Every operator's result is kept, because it has at least two readers: the engine, which collects the reports,
and a sink. If only sinks read it, its tasks stage it as files (`io/staging.py`); otherwise Spark persists it.
So kernels run once, however often sinks read.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark import StorageLevel
from pyspark.sql import DataFrame

from tidegate.driver.compile.compiled import Compiled
from tidegate.driver.frames.frame_cache import FrameCache
from tidegate.driver.frames.pass_input import PassInput
from tidegate.driver.frames.passes import Pass, Staged
from tidegate.worker.runtime.task_runner import WorkOrder


def build_pass(
    compiled: Compiled,
    given: DataFrame | None,
    works: Mapping[str, WorkOrder],
    again: bool,
    cache: FrameCache,
) -> Pass:
    """Frames for one pass over `given` rows (None: no new rows); `again`: more passes may follow."""
    held: list[DataFrame] = []
    readers = sum(any(stream is not None for stream in one.streams) for one in compiled.operators)
    if given is not None and (readers > 1 or compiled.taps or compiled.unions):
        given = given.persist(StorageLevel.MEMORY_AND_DISK)
        held.append(given)
    rows = PassInput(compiled, given, again, cache)
    staging: dict[str, Staged] = {}
    for operator in compiled.operators:
        work = works[operator.name]
        made = operator.frame(rows, work)
        if made is None:
            continue
        if work.stage_root is not None:
            staging[operator.name] = Staged(work.stage_root, operator.listed(work))
        elif operator.reports:  # Otherwise it is a filter of the rows of the batch, which are persisted.
            made = made.persist(StorageLevel.MEMORY_AND_DISK)
            held.append(made)
        rows.results[operator.name] = made
    return Pass(compiled, given, rows.results, held, staging, rows.counted)
