"""The rows behind an operator, or of a source's port, out of the frames of a pass."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidegate.driver.compile.compiled import CompiledJoin, CompiledOperator, Tap
from tidegate.driver.compile.keys import quoted
from tidegate.driver.sql_text import condition
from tidegate.model.times import BEGINNING_US
from tidegate.worker.runtime.layout import REPORT, TAG, TIME


def result(operator: CompiledOperator, results: Mapping[str, DataFrame], staged: bool = False) -> DataFrame:
    """The rows alone: no reports, and for an inner join only those that its condition lets through.

    `staged`: they were read back from files, which hold no reports.
    """
    frame = results[operator.layout.operator]
    if not staged:
        frame = frame.where(f"{REPORT} IS NULL").drop(REPORT)
    if not isinstance(operator, CompiledJoin):
        return frame
    if operator.node.where is not None and operator.candidates is None:
        # Behind the reports, not beside them: a condition in Python must never see a row of nulls.
        frame = frame.where(condition(operator.node.where))
    return frame


def entering(frame: DataFrame, tap: Tap, usable_only: bool = True) -> DataFrame:
    """Rows of one port with the columns of its stream and their time, on time or not."""
    columns = zip(tap.port.lanes, tap.port.columns, strict=True)
    mine = f"{TAG} = {tap.port.tag}"
    if usable_only:
        mine += f" AND {TIME} != {BEGINNING_US}L"
    return frame.where(mine).selectExpr(*[f"{lane} AS {quoted(name)}" for lane, name in columns], TIME)


def tapped(frame: DataFrame, tap: Tap, late_before_us: Mapping[str, int]) -> DataFrame:
    """Rows of one port with the columns of its stream."""
    mine = frame.where(F.col(TAG) == F.lit(tap.port.tag))
    usable = F.col(TIME) != F.lit(BEGINNING_US)
    late = is_late(tap, late_before_us)
    kept = {"rows": usable & ~late, "late": late, "rejected": ~usable}[tap.kind]
    named = [F.col(lane).alias(name) for name, lane in zip(tap.port.columns, tap.port.lanes, strict=True)]
    return mine.where(kept).select(*named)


def is_late(tap: Tap, late_before_us: Mapping[str, int]) -> Column:
    """Is a row one of this port, with a usable time that lies below its stream's watermark?"""
    # A plain literal would be compiled into the code and so cost a compilation in every batch; an array
    # that is looked up by a column (whose value is 0 for these rows) is passed to the compiled code as data.
    mark = F.get(F.array(F.lit(late_before_us[tap.stream])), F.col(TAG).cast("int") - F.lit(tap.port.tag))
    mine = (F.col(TAG) == F.lit(tap.port.tag)) & (F.col(TIME) != F.lit(BEGINNING_US))
    return mine & (F.col(TIME) < mark)
