"""Decomposes the aggregates of a window into the partials of `window/aggregate/aggregates.py`.

Each argument of an aggregate becomes a hidden column in front of the aggregation, which the SQL of partials
reads. Equal arguments share a column and equal partials are computed once: `avg` and `count` of the same
column count it once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tidegate.api.streams import HIDDEN
from tidegate.api.user_aggregates import Aggregator, for_workers, has_merge
from tidegate.driver.compile.expression_checks import check_serialisable, spark_errors_as
from tidegate.driver.compile.join_columns import arrow_schema
from tidegate.driver.compile.keys import quoted
from tidegate.driver.compile.windows.aggregate_calls import (
    ConstantArgument,
    analysed,
    called,
    columns_in,
    constant,
)
from tidegate.driver.sql_text import distinguished
from tidegate.errors import FlowError
from tidegate.window.aggregate.aggregates import (
    CONSTANTS,
    Aggregate,
    AggregatePart,
    Merge,
    aggregate,
    counting_all,
    result_type,
    users_part,
)
from tidegate.window.aggregate.sketches import hll_size, kll_size
from tidegate.window.aggregate.udaf import Udaf
from tidegate.window.estimate.estimates import estimated
from tidegate.worker.runtime.layout import TIME, WEIGHT, UdafLayout, WindowResult

#: Families of types in the catalogue. Kernels compare values by rank, which nested values do not have.
_FAMILIES: dict[str, tuple[type[T.DataType], ...]] = {
    "any": (T.DataType,),
    "numeric": (T.NumericType,),
    "integral": (T.IntegralType,),
    "boolean": (T.BooleanType,),
    "orderable": (T.AtomicType, T.NullType),
}
#: Parts as large as their rows: computing them before the shuffle saves nothing.
_ROWS = (Merge.CONCAT, Merge.ROWS, Merge.STATES)
#: Distinguishes the second hash of a value from the first.
_SALT = 977
#: Hidden columns and their types.
_Typed = Sequence[tuple[str, T.DataType]]


@dataclass
class PartialAggregates:
    """All aggregates of a window as partials."""

    #: Hidden argument columns in front of the aggregation, and the Spark expression of each.
    arguments: list[tuple[str, Column]] = field(default_factory=list)
    described: list[str] = field(default_factory=list)
    #: Columns of the stream that the arguments read.
    reads: set[str] = field(default_factory=set)
    #: Partial columns: name and SQL over the arguments.
    partials: list[tuple[str, str]] = field(default_factory=list)
    #: The same partials of a single row, if there are any.
    of_rows: list[tuple[str, str]] = field(default_factory=list)
    #: By partial: the text of a single row in the catalogue, and the arguments that it reads.
    texts: dict[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    #: By argument: the column of the stream that it is.
    named: dict[str, str] = field(default_factory=dict)
    #: Types of the partial columns.
    types: dict[str, T.DataType] = field(default_factory=dict)
    parts: list[tuple[AggregatePart, tuple[str, ...]]] = field(default_factory=list)
    results: list[tuple[WindowResult, T.DataType]] = field(default_factory=list)
    #: User-defined aggregates, by the names of their results.
    udafs: dict[str, UdafLayout] = field(default_factory=dict)

    @property
    def may_go_by_row(self) -> bool:
        """Whether every partial exists for a single row; sketches do not."""
        return len(self.of_rows) == len(self.partials)

    @property
    def carried(self) -> dict[str, str | int]:
        """For single rows, by partial: the first column that equals it, or its constant value."""
        first: dict[tuple[str, str], str] = {}
        carried: dict[str, str | int] = {}
        for name, text in self.of_rows:
            same = first.setdefault((text, self.types[name].json()), name)
            carried[name] = CONSTANTS.get(text, same)
        return carried

    @property
    def sketched(self) -> list[str]:
        """Results that are computed from sketches."""
        sketches = {names[0] for part, names in self.parts if not part.row}
        return [result.name for result, _ in self.results if result.columns[0] in sketches]

    @property
    def keeps_rows(self) -> bool:
        return any(part.merge in _ROWS for part, _ in self.parts)


def taken_apart(
    frame: DataFrame, aggregates: Sequence[tuple[str, Any]], *, approximate: bool = False
) -> PartialAggregates:
    """The aggregates of a window over the rows of a frame; `approximate`: rows may have been sampled."""
    taking = _Taking(frame, approximate)
    for name, given in aggregates:
        if isinstance(given, Aggregator):
            taking.add_users(name, given)
        else:
            taking.add(name, given)
    taking.resolve()
    return taking.taken


class _Taking:
    def __init__(self, frame: DataFrame, approximate: bool) -> None:
        self._frame, self._approximate, self.taken = frame, approximate, PartialAggregates()
        #: Arguments as Java expressions with their types; partial columns by their SQL.
        self._arguments: list[tuple[Any, T.DataType]] = []
        self._partials: dict[tuple[str, ...], tuple[str, ...]] = {}

    def add(self, name: str, given: Any) -> None:
        """Add an aggregate of the catalogue."""
        function, columns = called(self._frame, name, given)
        taken = _known(name, function, len(columns))
        arguments = [self._argument(name, column) for column in columns[: taken.arguments]]
        types = [kind for _, kind in arguments]
        found = aggregate(function, decimal=isinstance(types[0], T.DecimalType))
        check_types(name, found, types)
        found = _estimated(name, found) if self._approximate else found
        given_constants = zip(found.constants, columns[found.arguments :], strict=False)
        constants = {what: constant(self._frame, name, what, column) for what, column in given_constants}
        sizes = _sizes(name, constants)
        never_null = all(self._never_null(one) for one, _ in arguments)
        found_parts = map(counting_all, found.parts) if never_null else found.parts
        parts = [self._part(part, arguments, sizes.get(part.merge, 0)) for part in found_parts]
        percentages = constants.get("percentage", ConstantArgument(()))
        names = tuple(column for names in parts for column in names)
        kind = _result_kind(found, types[0])
        result = WindowResult(name, found.final, names, percentages.values)
        self.taken.results.append((result, T.ArrayType(kind) if percentages.many else kind))

    def add_users(self, name: str, given: Aggregator) -> None:
        """Add a user-defined aggregate."""
        layout, kind = udaf_layout(name, given)
        merges = has_merge(given)
        columns = [F.col(quoted(one)) if isinstance(one, str) else one for one in given.columns]
        arguments = [self._argument(name, column) for column in columns]
        part = users_part(len(arguments), merged=merges)
        # Stored rows serve any number of aggregates; states belong to one.
        names = self._new_part(part, *self._texts(part, arguments)) if merges else self._part(part, arguments)
        self.taken.udafs[name] = layout
        self.taken.results.append((WindowResult(name, "users", names), kind))

    def resolve(self) -> None:
        """Get the types of partial columns from Spark's analyser."""
        taken = self.taken
        arguments = [column.alias(name) for name, column in taken.arguments]
        given_to = self._frame.select(TIME, F.lit(1.0).alias(WEIGHT), *arguments)
        with spark_errors_as(
            "Spark cannot compute the aggregates of a window",
            code="AGGREGATE_NOT_COMPUTABLE",
            do="Cast the arguments, or take fields of them",
        ):
            added_up = given_to.groupBy(WEIGHT).agg(
                *[F.expr(text).alias(name) for name, text in taken.partials]
            )
        taken.types = {field.name: field.dataType for field in added_up.schema.fields}

    def _argument(self, name: str, column: Any) -> tuple[str, T.DataType]:
        """The hidden column of an argument; equal arguments share one."""
        if not isinstance(column, Column):
            raise FlowError(
                f"Aggregate {name!r}: columns must be names or Spark expressions",
                code="AGGREGATOR_COLUMNS_INVALID",
                got=repr(column),
                do='Write for example MeanFare("fare") or MeanFare(F.col("fare") / 100)',
            )
        expression, kind = analysed(self._frame, name, column)
        for number, (known, _) in enumerate(self._arguments):
            if known.semanticEquals(expression):
                return self.taken.arguments[number][0], kind
        hidden = f"{HIDDEN}arg_{len(self._arguments)}"
        self._arguments.append((expression, kind))
        self.taken.arguments.append((hidden, column))
        self.taken.described.append(str(expression.sql()))
        self.taken.reads |= columns_in(expression)
        if expression.nodeName() == "AttributeReference":
            self.taken.named[hidden] = str(expression.name())
        return hidden, kind

    def _never_null(self, hidden: str) -> bool:
        names = [name for name, _ in self.taken.arguments]
        return not self._arguments[names.index(hidden)][0].nullable()

    def _part(self, part: AggregatePart, arguments: _Typed, size: int = 0) -> tuple[str, ...]:
        """The columns of a part; equal parts share them."""
        panes, rows = self._texts(part, arguments, size)
        names = self._partials.get((part.merge, *panes)) or self._new_part(part, panes, rows)
        read = tuple(name for name, _ in arguments)
        self.taken.texts.update({name: (text, read) for name, text in zip(names, part.row, strict=False)})
        return names

    def _new_part(
        self, part: AggregatePart, panes: tuple[str, ...], rows: tuple[str, ...]
    ) -> tuple[str, ...]:
        taken = self.taken
        first = len(taken.partials)
        names = tuple(f"{HIDDEN}part_{first + i}" for i in range(len(panes)))
        taken.partials += zip(names, panes, strict=True)
        taken.of_rows += zip(names, rows, strict=False)
        taken.parts.append((part, names))
        self._partials[part.merge, *panes] = names
        return names

    def _texts(
        self, part: AggregatePart, arguments: _Typed, size: int = 0
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        hidden, hashed = [name for name, _ in arguments], distinguished(arguments)
        known = {
            "time": TIME,
            "tie": f"xxhash64({hashed})",
            "check": f"xxhash64({_SALT}, {hashed})",
            "size": size,
            "weight": WEIGHT,
        }
        panes, rows = ([text.format(*hidden, **known) for text in some] for some in (part.pane, part.row))
        return tuple(panes), tuple(rows)


def _known(name: str, function: str, given: int) -> Aggregate:
    """The aggregate of the catalogue, checked for its number of arguments."""
    try:
        found = aggregate(function)
    except FlowError as error:
        raise error.prefixed(f"Aggregate {name!r}") from None
    most = found.arguments + len(found.constants)
    # A quantile needs its rank; other constants have a default.
    least = found.arguments + ("percentage" in found.constants)
    if not least <= given <= most:
        takes = f"{least}" if least == most else f"{least} to {most}"
        raise FlowError(
            f"Aggregate {name!r}: {function} takes {takes} argument(s) over windows",
            code="AGGREGATE_ARGUMENTS_INVALID",
            got=f"{given} argument(s)",
            do="Leave out what Spark would take in addition",
        )
    return found


def _estimated(name: str, found: Aggregate) -> Aggregate:
    try:
        return estimated(found)
    except FlowError as error:
        raise error.prefixed(f"Aggregate {name!r}") from None


def check_types(name: str, found: Aggregate, types: Sequence[T.DataType]) -> None:
    """The arguments must have types that the parts of the aggregate support."""
    if not all(isinstance(one, _FAMILIES[found.accepts]) for one in types):
        raise FlowError(
            f"Aggregate {name!r}: {found.name} does not take this type",
            code="AGGREGATE_TYPE_INVALID",
            got=", ".join(one.simpleString() for one in types),
            why=f"Over windows it takes {found.accepts} types",
            do="Cast the argument, or take one of its fields",
        )


def _result_kind(found: Aggregate, argument: T.DataType) -> T.DataType:
    """The type of the result. It is never converted to text, which would lose names of fields."""
    if found.result in ("same", "array"):
        return argument if found.result == "same" else T.ArrayType(argument)
    return T._parse_datatype_string(result_type(found, argument.simpleString()))


def _sizes(name: str, constants: Mapping[str, ConstantArgument]) -> dict[Merge, int]:
    """The sizes of sketches for the requested accuracy."""
    asked = constants["percentage"].values if "percentage" in constants else ()
    if not all(0 <= one <= 1 for one in asked):
        raise FlowError(
            f"Aggregate {name!r}: percentages must lie between 0 and 1",
            code="AGGREGATE_PERCENTAGE_INVALID",
            got=", ".join(map(str, asked)),
            do="Write the median as 0.5",
        )
    nothing = ConstantArgument(())
    try:
        return {
            Merge.DISTINCT: hll_size(*constants.get("rsd", nothing).values),
            Merge.QUANTILES: kll_size(*constants.get("accuracy", nothing).values),
        }
    except FlowError as error:
        raise error.prefixed(f"Aggregate {name!r}") from None


def udaf_layout(name: str, given: Aggregator) -> tuple[UdafLayout, T.DataType]:
    """The layout of an aggregate for tasks, and the type of its result."""
    state = _typed(name, "state", given.state)
    if not isinstance(state, T.StructType):
        raise FlowError(
            f"Aggregate {name!r}: the fields of a state need names",
            code="AGGREGATOR_STATE_UNNAMED",
            got=repr(given.state),
            do='Write for example state = "n long, total double"',
        )
    sent = for_workers(given)
    merge = sent.merge if has_merge(given) else None
    udaf = Udaf(name, sent.zero, sent.update, sent.finish, tuple(state.names), merge)
    layout = UdafLayout(udaf, arrow_schema(state, f"the state of {name}"), state.simpleString())
    _check_first_state(layout, given.state)
    # A method is pickled with its instance and, where workers cannot import it, its class.
    check_serialisable(f"Aggregate {name!r}", sent.update)
    return layout, _typed(name, "returns", given.returns)


def _typed(name: str, what: str, text: str) -> T.DataType:
    try:
        return T._parse_datatype_string(text)
    except PySparkException as error:
        raise FlowError(
            f"Aggregate {name!r}: Spark does not know the type in {what}",
            code="AGGREGATOR_TYPE_INVALID",
            got=repr(text),
            do='Write for example state = "n long, total double" and returns = "double"',
        ) from error


def _check_first_state(layout: UdafLayout, declared: str) -> None:
    """The initial state must have the declared types."""
    first, schema = layout.udaf.zero(), pa.ipc.read_schema(pa.py_buffer(layout.state))
    try:
        for value, field in zip(first, schema, strict=True):
            pa.array([value], field.type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise FlowError(
            f"Aggregate {layout.udaf.name!r}: zero does not return the state that was declared",
            code="AGGREGATOR_ZERO_TYPE",
            got=f"{first!r} for {declared!r} ({error})",
            do="Return a tuple with a value of its type for every field",
        ) from error
