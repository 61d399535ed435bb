"""A residual condition (`where`) of a join that remembers who matched: judged by Spark, between two steps.

What counts as a match decides which rows stay lonely, so the condition must be known before bits are set; and
it is any Spark expression, so only Spark can judge it exactly. Both steps run in one task, with no shuffle
between them:

    rows ─▶ find candidate pairs, store ─▶ Spark judges `where` ─▶ mark, emit, settle ─▶ out
            (join_task.py)                  (Catalyst)              (settle_task.py)

The two steps are processes of their own. What the first has to tell the second (its report) goes through a
small file beside the state, not through a row: a condition that is a Python function would be called with it,
and a row of nulls is nothing that a user's function has to expect.

Inner joins do not need this: for them the condition is a filter behind the join.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, islice

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidegate.driver.compile.compiled import CompiledJoin
from tidegate.driver.sql_text import condition
from tidegate.worker.join.residual import Handover, SettleInstance
from tidegate.worker.join.task import JoinInstance, instance_in
from tidegate.worker.join.work import JoinBatch
from tidegate.worker.runtime.layout import OK, REPORT


def judged(rows: DataFrame, join: CompiledJoin, work: JoinBatch) -> DataFrame:
    """Run a join with a residual condition over rows that lie at their instances."""
    if join.candidates is None or join.candidates_schema is None:
        return rows
    finding = replace(work, layout=join.candidates)

    def find(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        received = list(batches)
        context = TaskContext.get()
        task = context.partitionId() if context is not None else 0
        number = instance_in(received, task)
        handover = Handover(work, _attempt(context))
        handover.tell("instance", str(number))
        for result in JoinInstance(finding, number, uuid.uuid4().hex[:12]).run(iter(received)):
            texts = result.column(REPORT)
            if texts.null_count:
                yield result
            else:
                handover.tell("report", texts[0].as_py())

    def settle(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        handover = Handover(work, _attempt(TaskContext.get()))
        # The first rows, or their end, mean that the first step has begun, and has said who it is.
        rows = chain(list(islice(batches, 1)), batches)
        number = int(handover.heard("instance"))
        settling = SettleInstance(work, number, uuid.uuid4().hex[:12])
        yield from settling.run(rows, lambda: handover.heard("report"))

    candidates = rows.mapInArrow(find, join.candidates_schema)
    marked = candidates.withColumn(OK, F.coalesce(condition(join.node.where), F.lit(False)))
    return marked.mapInArrow(settle, join.schema)


def _attempt(context: TaskContext | None) -> int:
    """What both steps know and no other attempt of the task does."""
    return 0 if context is None else context.taskAttemptId()
