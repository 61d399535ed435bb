"""The inputs of the operators of one pass: the rows of the batch and the results of earlier operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from tidegate.api.nodes import Node
from tidegate.driver.arrow_map import map_in_arrow
from tidegate.driver.compile import ports
from tidegate.driver.frames.frame_cache import FrameCache
from tidegate.driver.frames.grafts import grouped_in_place
from tidegate.driver.frames.stream_rows import FrontDrop, Step, StreamRows
from tidegate.model.times import BEGINNING_US
from tidegate.worker.runtime.layout import REPORT, TIME
from tidegate.worker.runtime.pipe import Pipe, piped
from tidegate.worker.runtime.task_errors import ArrowFunction
from tidegate.worker.runtime.task_runner import P, Task, by_instance, in_one_task

if TYPE_CHECKING:
    from tidegate.driver.compile.compiled import Compiled
    from tidegate.driver.operators.protocol import Operator
    from tidegate.driver.operators.tap import Entry, Tap


@dataclass
class PassInput:
    """The inputs of a pass; each operator that has run adds its results."""

    compiled: Compiled
    #: The rows of the batch; None in a pass without new rows.
    batch: StreamRows | None
    #: The session in which the pass runs.
    spark: SparkSession
    #: More passes may follow, so tasks identify their instance by markers.
    again: bool
    cache: FrameCache
    #: One task runs all instances of an operator.
    one_task: bool = False
    #: By operator whose results go straight on: how.
    pipes: Mapping[str, Pipe] = field(default_factory=dict)
    #: By operator that has run: its results and reports.
    results: dict[str, DataFrame] = field(default_factory=dict)
    #: By window aggregate: partials that the tasks in front of it made.
    partials: dict[str, DataFrame] = field(default_factory=dict)
    #: By operator and side: the names of Spark's counts of its rows that reach no task.
    dropped: dict[tuple[str, int], list[str]] = field(default_factory=dict)
    #: By operator: its rows as others read them.
    _shown: dict[str, DataFrame] = field(default_factory=dict)

    @property
    def one_reader(self) -> bool:
        """Whether only one operator reads the rows of the batch."""
        return len(self.compiled.operators) == 1 and not self.compiled.taps

    def tasks(self, make: Callable[[P, int, str], Task], work: P) -> ArrowFunction:
        """The tasks of an operator with instances. `make`: from work order, instance and attempt."""
        return in_one_task(make, work) if self.one_task else by_instance(make, work, TaskContext.get)

    def run(
        self, operator: Operator, placed: DataFrame, function: ArrowFunction, schema: T.StructType
    ) -> DataFrame:
        """The results of an operator's tasks over its rows, with these columns, or what goes on of them."""
        pipe = self.pipes.get(operator.name)
        if pipe is None:
            return map_in_arrow(placed, function, schema)
        reader = next((one for one in self.compiled.windows if one.reads_onward(pipe)), None)
        made = schema if reader is None or reader.early is None else reader.early.schema
        results = map_in_arrow(placed, piped(function, pipe, TaskContext.get), made)
        if reader is not None:
            self.partials[reader.name] = results
        return results

    def reads(self, entry: Entry) -> bool:
        """Whether new rows of a reader come. They have a task of Spark for certain; results of an operator do
        not: where Spark finds that there are none, it runs no task but for markers."""
        return self.batch is not None and not self.batch.is_empty(entry)

    def port(self, entry: Entry, fronts: Sequence[FrontDrop] = ()) -> DataFrame | None:
        """Rows that enter an operator in its own layout; None if there are no new ones."""
        return None if self.batch is None else self.batch.new(entry, fronts)

    def grouped(self, entry: Entry, fronts: Sequence[FrontDrop], judge: Step) -> DataFrame | None:
        """The same behind a projection, for an aggregation within each partition (`grouped_in_place`)."""
        if self.batch is None or self.batch.is_empty(entry):
            return None
        return self.batch.entry(entry, fronts, judge, grouped_in_place)

    def entering(self, tap: Tap, usable_only: bool = False, behind: Step | None = None) -> DataFrame | None:
        """Rows of a tap with the columns of its stream and their time, including late ones; None in a pass
        without new rows. `behind`: what it drops behind its steps."""
        if self.batch is None:
            return None
        usable = f"{TIME} != {BEGINNING_US}L"

        def chosen(rows: DataFrame) -> DataFrame:
            rows = rows.where(usable) if usable_only else rows
            return rows if behind is None else behind(rows)

        return self.batch.entry(tap.entry, (), chosen)

    def upstream(self, node: Node, timed: bool = False, front: FrontDrop | None = None) -> DataFrame | None:
        """The rows of an operator behind its stateless steps; None if it has none in this pass.

        `timed`: the steps must keep the event time. `front`: what is dropped in front of them.
        """
        base, steps = ports.steps_of(node)
        operator = self.compiled.operator_of(base)
        if operator is None or operator.name not in self.results:
            return None
        if operator.name not in self._shown:
            self._shown[operator.name] = result(operator, self.results[operator.name], cells=False)
        frame = self._shown[operator.name]
        if front is not None and not front.behind:
            frame = front.of(frame)
        if timed:
            return ports.apply_steps(frame, steps, "an operator")
        for step in steps:
            frame = step.apply(frame)
        return front.of(frame) if front is not None and front.behind else frame


def result(operator: Operator, results: DataFrame, staged: bool = False, cells: bool = True) -> DataFrame:
    """The rows without reports that pass the condition behind the operator.

    `staged`: they were read back from files, which contain no reports. `cells`: with the column of cells.
    """
    rows = results if staged else results.where(f"{REPORT} IS NULL")
    if not staged or operator.is_pruned:
        rows = (operator.rows_and_cells if cells else operator.rows_only).of(rows)
    # After the reports are removed: a condition in Python must never get a row of nulls.
    return operator.shown(rows)
