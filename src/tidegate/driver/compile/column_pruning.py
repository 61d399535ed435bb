"""Column pruning: a join makes the columns that are read behind it, and stores what it needs for them.

    stored columns ──▶ joined row ──▶ where ──▶ steps ──┬─▶ output          all columns that it writes
                                                        ├─▶ next join       what it stores, keys, conditions
                                                        └─▶ window          groups and arguments

Moving a text through the shuffle, into Python, into the state and back out takes longer than the
comparisons that found the pair. Spark's own optimiser tells what a reader needs, from the plan of its steps,
so the answer is right for any expression. Readers are asked from the outputs upwards, because what a join
needs of its inputs depends on what is needed of itself.

Columns of a fixed width are stored anyway: they cost little, and another run on the checkpoint can read
columns that this one does not. Texts, binaries and nested values that nobody reads are not stored. A later
run that reads one is refused, because the rows that are already stored lack it. A later run that reads fewer
columns keeps those that are stored. A column that the join did not have before is null in its older rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tidegate.api.nodes import Join
from tidegate.api.streams import HIDDEN
from tidegate.driver.compile.join_columns import JoinColumn
from tidegate.driver.compile.keys import Keys, quoted
from tidegate.driver.java_collections import java_items
from tidegate.driver.sql_text import condition
from tidegate.errors import StateError

#: A column of a side as it is stored: name, value, type.
StoredColumn = tuple[str, Column, T.DataType]
FIXED_WIDTH = (
    T.BooleanType,
    T.ByteType,
    T.ShortType,
    T.IntegerType,
    T.LongType,
    T.FloatType,
    T.DoubleType,
    T.DecimalType,
    T.DateType,
    T.TimestampType,
    T.TimestampNTZType,
    T.DayTimeIntervalType,
)


@dataclass(frozen=True)
class StoredBefore:
    """What an earlier run on the checkpoint stores of a side of a join."""

    columns: frozenset[str]
    #: All columns that the joined row had, read or not.
    joined: frozenset[str]


def stored_by(flow: Mapping[str, Any], join: str, side: int) -> StoredBefore | None:
    """What a side of a join stores, by the flow in a manifest; None: there is no such join."""
    operator = flow.get("operators", {}).get(join, {})
    found = operator.get(("left", "right")[side])
    return None if found is None else StoredBefore(frozenset(found["columns"]), frozenset(operator["output"]))


def blank_frame(session: SparkSession, columns: Mapping[str, T.DataType]) -> DataFrame:
    """A frame without rows that the optimiser does not know to be empty."""
    spark: Any = session
    java = spark._jsparkSession
    fields = [T.StructField(name, kind) for name, kind in columns.items()]
    schema = java.parseDataType(T.StructType(fields).json())
    none = spark.sparkContext._jsc.emptyRDD()
    return DataFrame(java.createDataFrame(none, schema), spark)


def blank_like(frame: DataFrame) -> DataFrame:
    """The same with the columns of a frame."""
    return blank_frame(frame.sparkSession, {field.name: field.dataType for field in frame.schema.fields})


def columns_needed(base: DataFrame, read: DataFrame) -> frozenset[str]:
    """The columns of `base` that `read`, a frame derived from it, needs."""
    own = {column.exprId().id(): column.name() for column in _outputs(base._jdf.queryExecution().analyzed())}
    plan = read._jdf.queryExecution().optimizedPlan()
    needed = {
        column.exprId().id() for node in inner_nodes(plan) for column in java_items(node.references().toSeq())
    }
    needed |= {column.exprId().id() for column in _outputs(plan)}
    return frozenset(name for number, name in own.items() if number in needed)


def _outputs(plan: Any) -> list[Any]:
    return java_items(plan.output())


def inner_nodes(plan: Any) -> Iterator[Any]:
    """All nodes of a plan but its leaves."""
    children = java_items(plan.children())
    if children:
        yield plan
    for child in children:
        yield from inner_nodes(child)


def visible_only(frame: DataFrame) -> DataFrame:
    """What an output writes of a frame."""
    return frame.select(*[F.col(quoted(name)) for name in frame.columns if not name.startswith(HIDDEN)])


def condition_reads(session: SparkSession, columns: Sequence[JoinColumn], where: Any) -> frozenset[str]:
    """The columns of the joined row that a residual condition reads."""
    base = blank_frame(session, {column.name: kind for column, kind in columns})
    return columns_needed(base, base.where(condition(where)).select(F.lit(1)))


def read_columns(columns: Sequence[JoinColumn], wanted: frozenset[str] | None) -> list[JoinColumn]:
    """The columns of the joined row that are wanted (None: all), and the hidden ones."""
    return [
        one for one in columns if wanted is None or one[0].name in wanted or one[0].name.startswith(HIDDEN)
    ]


def read_of(node: Join, columns: Sequence[JoinColumn], keys: Keys, side: int) -> frozenset[str | None]:
    """The stored columns of a side that the joined row and the conditions of the join read."""
    verified = [(key.left, key.right)[side] for key in keys.verify]
    compared = [] if node.condition is None else [pair[side] for pair in node.condition.columns]
    return frozenset([*((one.left, one.right)[side] for one, _ in columns), *verified, *compared])


@dataclass(frozen=True)
class SidePruning:
    """Which columns of one side of a join are stored."""

    join: str
    #: Stored columns that are read.
    read: frozenset[str | None]
    #: Those that an earlier run on the checkpoint stores; None: there was none.
    stored: frozenset[str] | None = None
    #: Those that it did not store although its rows had them.
    lost: frozenset[str] = frozenset()

    def of(self, columns: Sequence[StoredColumn]) -> list[StoredColumn]:
        """These of all columns (name, value, type) of the side."""
        wanted = [one for one in columns if self._is_read(one[0]) or isinstance(one[2], FIXED_WIDTH)]
        if self.stored is None:
            return wanted
        missing = [name for name, _, _ in columns if self._is_read(name) and name in self.lost]
        if missing:
            raise StateError(
                f"The rows that {self.join} has stored lack columns that are read now",
                code="CHECKPOINT_COLUMNS_NOT_STORED",
                got=", ".join(missing),
                why="A join does not store texts and nested columns that nobody reads, so earlier rows have "
                "no value for them",
                do="Leave out what reads these columns, or give the join another name: then it begins empty",
            )
        kept = {*self.stored, *(name for name, _, _ in wanted if name not in self.lost)}
        return [one for one in columns if one[0] in kept]

    def _is_read(self, name: str) -> bool:
        return name in self.read or name.startswith(HIDDEN)


def pruning_of(
    join: str,
    read: frozenset[str | None],
    columns: Sequence[JoinColumn],
    side: int,
    before: StoredBefore | None,
) -> SidePruning:
    """Which columns of a side are stored; `columns`: of the whole joined row."""
    if before is None:
        return SidePruning(join, read)
    known = {(one.left, one.right)[side] for one, _ in columns if one.name in before.joined}
    return SidePruning(join, read, before.columns, frozenset(filter(None, known)) - before.columns)
