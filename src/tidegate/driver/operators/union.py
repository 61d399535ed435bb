"""The union operator: rows of several streams as one. Spark passes them on, without tasks or a shuffle.

All its inputs enter through one entry, with a tag for each, so that late rows are dropped and counted by
stream. Where several operators with state read a union, it drops what is late for all of them, and each drops
the rest itself.

    orders ─▶ steps ─▶ tag 0 ─┐
                              ├─▶ unionByName ─▶ one entry ─▶ rows on time ─▶ joins, windows, matches, outputs
    more   ─▶ steps ─▶ tag 1 ─┘
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tidegate.api.nodes import Node, Source, Union, name_of
from tidegate.driver.compile import ports
from tidegate.driver.compile.expression_checks import spark_errors_as
from tidegate.driver.compile.join_columns import visible
from tidegate.driver.compile.keys import quoted
from tidegate.driver.frames.pass_input import PassInput
from tidegate.driver.operators.protocol import BatchOrder, Builder, Operator
from tidegate.driver.operators.tap import Entry
from tidegate.errors import FlowError
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


class United:
    """The frame of a union. `enter`: gives the rows of a source, with their time."""

    def __init__(self, node: Union, name: str, tags: Sequence[int], enter: Callable[[Source], DataFrame]):
        self._name, self._tags, self._enter = name, iter(tags), enter
        _check_times(node)
        self.frame = self._united(node)

    def _united(self, node: Union) -> DataFrame:
        frame, *others = (self._input(parent) for parent in node.parents)
        for parent, other in zip(node.parents[1:], others, strict=True):
            if not node.allow_missing_columns:
                _check_names(self._name, frame, other, name_of(parent))
            with spark_errors_as(
                f"Spark rejects the union {self._name!r}",
                "Give columns of the same name types that Spark can unite, with with_column",
                code="UNION_INVALID",
            ):
                frame = frame.unionByName(other, allowMissingColumns=node.allow_missing_columns)
        return frame

    def _input(self, node: Node) -> DataFrame:
        base, steps = ports.steps_of(node)
        if isinstance(base, Union):
            return ports.apply_steps(self._united(base), steps, repr(name_of(base)), tagged=True)
        assert isinstance(base, Source)
        frame = ports.apply_steps(self._enter(base), steps, repr(base.name))
        return frame.withColumn(TAG, F.lit(next(self._tags)).cast("short"))


def inputs_of(node: Union) -> tuple[tuple[str, bool], ...]:
    """By input: its source, and whether no stateless step lies between."""
    found: list[tuple[str, bool]] = []
    for parent in node.parents:
        base, steps = ports.steps_of(parent)
        if isinstance(base, Union):
            found += [(source, whole and not steps) for source, whole in inputs_of(base)]
        elif isinstance(base, Source):
            found.append((base.name, not steps))
    return tuple(found)


def _check_times(node: Union) -> None:
    types = {source.name: source.frame.schema[source.time].dataType for source in node.sources}
    if len({repr(kind) for kind in types.values()}) > 1:
        raise FlowError(
            "The time columns of united streams have different types",
            code="UNION_TIME_TYPES_DIFFER",
            got=", ".join(f"{name}: {kind.simpleString()}" for name, kind in types.items()),
            why="Times with and without a time zone cannot be compared",
            do="Convert one of the columns before tg.stream, for example with to_timestamp_ltz",
        )


def _check_names(name: str, left: DataFrame, right: DataFrame, other: str) -> None:
    sensitive = str(left.sparkSession.conf.get("spark.sql.caseSensitive")) == "true"
    ours, theirs = (
        {f.name if sensitive else f.name.lower(): f.name for f in visible(frame)} for frame in (left, right)
    )
    only = [
        f"only {where}: {', '.join(columns[one] for one in columns if one not in others)}"
        for where, columns, others in (("before", ours, theirs), (f"in {other}", theirs, ours))
        if set(columns) - set(others)
    ]
    if only:
        raise FlowError(
            f"The streams of the union {name!r} have different columns",
            code="UNION_COLUMNS_DIFFER",
            got="; ".join(only),
            do="Select or rename columns until they agree, or write allow_missing_columns=True",
        )
