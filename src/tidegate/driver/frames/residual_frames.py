"""A join with matched bits and a residual condition (`where`), which Spark evaluates between two steps.

The condition decides which rows stay unmatched, so it must be evaluated before matched bits are set. It is
any Spark expression, so only Spark can evaluate it exactly. Both steps (`worker/join/residual.py`) run in one
task, without a shuffle between them:

    rows ─▶ find candidate pairs, store ─▶ Spark evaluates `where` ─▶ mark, emit, settle ─▶ out

They run in separate processes. The report of the first reaches the second through a small file beside the
state, not through a row: a condition that is a Python function would be called with that row of nulls.

Inner joins do not need this: their condition is a filter behind the join.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidegate.driver.arrow_map import map_in_arrow
from tidegate.driver.sql_text import condition
from tidegate.worker.join.residual import find_candidates, settle_judged
from tidegate.worker.join.work import JoinWork
from tidegate.worker.runtime.layout import OK

if TYPE_CHECKING:
    from tidegate.driver.operators.join import JoinOperator


def judged(rows: DataFrame, join: JoinOperator, work: JoinWork) -> DataFrame:
    """Run a join with a residual condition over rows that are at their instances."""
    if join.candidates is None:
        return rows
    layout, schema = join.candidates
    finding = replace(work, layout=layout)
    candidates = map_in_arrow(rows, find_candidates(work, finding, TaskContext.get), schema)
    marked = candidates.withColumn(OK, F.coalesce(condition(join.where), F.lit(False)))
    return map_in_arrow(marked, settle_judged(work, TaskContext.get), join.schema)
