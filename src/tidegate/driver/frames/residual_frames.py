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

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidegate.driver.sql_text import condition
from tidegate.worker.join.residual import find_candidates, settle_judged
from tidegate.worker.join.work import JoinWork
from tidegate.worker.runtime.layout import OK

if TYPE_CHECKING:
    from tidegate.driver.operators.join import JoinOperator


def judged(rows: DataFrame, join: JoinOperator, work: JoinWork) -> DataFrame:
    """Run a join with a residual condition over rows that lie at their instances."""
    if join.candidates is None:
        return rows
    layout, schema = join.candidates
    finding = replace(work, layout=layout)
    candidates = rows.mapInArrow(find_candidates(work, finding, TaskContext.get), schema)
    marked = candidates.withColumn(OK, F.coalesce(condition(join.node.where), F.lit(False)))
    return marked.mapInArrow(settle_judged(work, TaskContext.get), join.schema)
