"""The inputs of the operators of one pass: the rows of the batch and the results of earlier operators."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession

from tidegate.api.nodes import Node
from tidegate.driver.compile import ports
from tidegate.driver.compile.keys import quoted
from tidegate.driver.frames.frame_cache import FrameCache
from tidegate.model.times import BEGINNING_US
from tidegate.worker.runtime.layout import CELL, REPORT, TAG, TIME

if TYPE_CHECKING:
    from tidegate.driver.compile.compiled import Compiled
    from tidegate.driver.operators.protocol import Operator
    from tidegate.driver.operators.tap import Tap


@dataclass
class PassInput:
    """The inputs of a pass; each operator that has run adds its results."""

    compiled: Compiled
    #: The rows of the batch in the shared layout; None in a pass without new rows.
    given: DataFrame | None
    #: More passes may follow, so tasks identify their instance by markers.
    again: bool
    cache: FrameCache
    #: By operator that has run: its results and reports.
    results: dict[str, DataFrame] = field(default_factory=dict)
    #: By operator whose dropped rows reach no task: the name of Spark's count of all its rows.
    counted: dict[str, str] = field(default_factory=dict)

    @property
    def spark(self) -> SparkSession:
        return self.compiled.spark

    @property
    def one_reader(self) -> bool:
        """Whether only one operator reads the rows of the batch."""
        return len(self.compiled.operators) == 1 and not self.compiled.taps

    def entering(self, tap: Tap, usable_only: bool) -> DataFrame | None:
        """Rows of a tap in this pass, including late ones; None in a pass without new rows."""
        return None if self.given is None else entering(self.given, tap, usable_only)

    def upstream(self, node: Node, timed: bool = False) -> DataFrame | None:
        """The rows of an operator behind its stateless steps; None if it has none in this pass.

        `timed`: the steps must keep the event time.
        """
        base, steps = ports.steps_of(node)
        operator = self.compiled.operator_of(base)
        if operator is None or operator.name not in self.results:
            return None
        frame = result(operator, self.results[operator.name]).drop(CELL)
        if timed:
            return ports.apply_steps(frame, steps, "an operator")
        for step in steps:
            frame = step.apply(frame)
        return frame


def result(operator: Operator, results: DataFrame, staged: bool = False) -> DataFrame:
    """The rows without reports that pass the condition behind the operator.

    `staged`: they were read back from files, which contain no reports.
    """
    rows = results if staged else results.where(f"{REPORT} IS NULL").drop(REPORT)
    # After the reports are removed: a condition in Python must never get a row of nulls.
    return operator.shown(rows)


def entering(frame: DataFrame, tap: Tap, usable_only: bool = True) -> DataFrame:
    """Rows of one port with the columns of its stream and their time, including late ones."""
    columns = zip(tap.port.lanes, tap.port.columns, strict=True)
    mine = f"{TAG} = {tap.port.tag}"
    if usable_only:
        mine += f" AND {TIME} != {BEGINNING_US}L"
    return frame.where(mine).selectExpr(*[f"{lane} AS {quoted(name)}" for lane, name in columns], TIME)
