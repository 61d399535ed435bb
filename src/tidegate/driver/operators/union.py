"""The union operator: rows of several streams as one. Spark passes them on, without tasks or a shuffle.

All its inputs enter through one entry, with a tag for each, so that late rows are dropped and counted by
stream. Where several operators with state read a union, it drops what is late for all of them, and each drops
the rest itself.

    orders ─▶ steps ─▶ tag 0 ─┐
                              ├─▶ unionByName ─▶ one entry ─▶ rows on time ─▶ joins, windows, matches, outputs
    more   ─▶ steps ─▶ tag 1 ─┘
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tidegate.api.nodes import Union
from tidegate.driver.compile.keys import quoted
from tidegate.driver.frames.pass_input import PassInput
from tidegate.driver.operators.protocol import BatchOrder, Builder, Operator
from tidegate.driver.operators.tap import Entry
from tidegate.model.graph import Reader
from tidegate.model.plan import LateRows
from tidegate.model.times import BEGINNING_US
from tidegate.window.drop import network
from tidegate.worker.runtime.layout import REPORT, TAG, TIME
from tidegate.worker.runtime.stage_file import Kept


@dataclass(frozen=True)
class UnionPort:
    """Where the rows of a union enter: one entry, whose rows have the number of their input as a tag."""

    entry: Entry
    columns: tuple[str, ...]
    #: By input: its source, and whether no stateless step lies between.
    inputs: tuple[tuple[str, bool], ...]


@dataclass(frozen=True)
class UnionWork:
    """What a batch asks of a union; nothing is sent to workers."""

    #: By input: rows below this are late.
    late_before_us: tuple[int, ...]
    stage_root: str | None = None
    kept_as: Kept | None = None


class UnionOperator(Operator):
    """A union of streams."""

    node: Union
    stateful = False
    reports = False
    needs_judged = True

    def __init__(self, name: str, node: Union, entry: UnionPort, schema: T.StructType):
        super().__init__(name, node, schema)
        self.entry = entry

    @property
    def streams(self) -> tuple[str | None, ...]:
        return tuple(source for source, _ in self.entry.inputs)

    def readers(self, sources: Sequence[tuple[str, bool]], drops: bool) -> Iterator[Reader]:
        for number, (source, whole) in enumerate(self.entry.inputs):
            yield Reader(self.name, number, source, None, whole)

    def drop_node(self, sources: Sequence[str]) -> network.Node:
        return network.DropSourceNode(self.name, tuple(sources))

    def work(self, order: BatchOrder, feeding: Sequence[str]) -> UnionWork:
        return UnionWork(self._late_before_us(order.plan.late))

    def frame(self, rows: PassInput, work: UnionWork) -> DataFrame | None:
        if rows.batch is None:
            return None
        entered = rows.batch.entry(self.entry.entry)
        named = [quoted(name) for name in self.entry.columns]
        on_time = entered.where(f"{TIME} != {BEGINNING_US}L").where(~self._is_late(work.late_before_us))
        return on_time.selectExpr(*named, TIME, f"CAST(NULL AS STRING) AS {REPORT}")

    def counts(self, rows: LateRows) -> list[Column]:
        """By input: its rows, and the late ones among them; all as columns of one aggregate."""
        late = self._is_late(self._late_before_us(rows))
        mine = [F.col(TAG) == F.lit(number) for number in range(len(self.entry.inputs))]
        return [one for rows in mine for one in (F.count_if(rows), F.count_if(rows & late))]

    def _late_before_us(self, late: LateRows) -> tuple[int, ...]:
        """By input: rows below this are late. If readers with state judge the rows, the most lenient one."""
        return tuple(late.inputs.get(self.name, (late.streams[name],))[0] for name, _ in self.entry.inputs)

    def _is_late(self, late_before_us: Sequence[int]) -> Column:
        """Whether a row of this union is late."""
        # An array that is indexed by a column is data to the compiled code; see `sql_text.data`.
        return F.col(TIME) < F.get(F.array(*map(F.lit, late_before_us)), F.col(TAG).cast("int"))


def build_union(node: Union, name: str, builder: Builder) -> UnionOperator:
    """Check a union and give it a port."""
    entry, fields = builder.union(node, name)
    hidden = [T.StructField(TIME, T.LongType()), T.StructField(REPORT, T.StringType())]
    return UnionOperator(name, node, entry, T.StructType([*fields, *hidden]))
