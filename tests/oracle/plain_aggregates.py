"""Aggregates row by row in plain Python: what Spark hands over per pane, and what a window must come to.

The two are computed apart from each other. A partial is what the SQL of the catalogue says of the rows of one
pane; a result is said of all rows of a window at once, and knows of no panes.

Reals are halves of small integers: their sums are exact in any order, so only variances are compared nearly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import xxhash
from tests.oracle.plain_windows import central_moment, null_if_none, present

from tidegate.window.aggregate.aggregates import AggregatePart, aggregate, users_part
from tidegate.window.aggregate.udaf import State, Udaf
from tidegate.worker.runtime.layout import UdafLayout

#: A row by column name; "time" is its event time.
Row = Mapping[str, Any]

#: The columns that rows have, as Spark would hand them over.
KINDS: dict[str, pa.DataType] = {
    "word": pa.string(),
    "flag": pa.bool_(),
    "small": pa.int8(),
    "whole": pa.int64(),
    "real": pa.float64(),
    "price": pa.decimal128(9, 2),
    "at": pa.timestamp("us", "UTC"),
}


def sparks_order(value: Any) -> Any:
    """Sorts as Spark does: nulls first, NaN above all numbers; tuples field by field."""
    if isinstance(value, tuple):
        return tuple(map(sparks_order, value))
    if value is None:
        return (0,)
    is_nan = value != value
    return (1, is_nan, 0.0 if is_nan else value)


def _least(values: Sequence[Any]) -> Any:
    return min(values, key=sparks_order)


def _most(values: Sequence[Any]) -> Any:
    return max(values, key=sparks_order)


def _total(values: Sequence[Any]) -> Any:
    return sum(values[1:], start=values[0])


def _variance(values: Sequence[float], less: int) -> float | None:
    return _spread(values) / (len(values) - less) if len(values) > less else None


def _spread(values: Sequence[float]) -> float:
    """Σ (x − mean)²; of infinities it is no number."""
    return central_moment(values, 2) if all(map(math.isfinite, values)) else math.nan


def _rounded_average(values: Sequence[Decimal]) -> Decimal:
    average = Decimal(_total(values)) / len(values)
    return average.quantize(Decimal("0.000001"), ROUND_HALF_UP)


def _average(values: Sequence[Any]) -> Any:
    return _rounded_average(values) if isinstance(values[0], Decimal) else float(_total(values)) / len(values)


def _moments(values: Sequence[float]) -> list[float | None]:
    """n, mean, m2 as `_VARIANCE_PANE` says it: the last two are NULL of no value."""
    if not values:
        return [0.0, None, None]
    return [float(len(values)), float(_total(values)) / len(values), _spread(values)]


def _by_time(rows: Sequence[Row], columns: Sequence[str]) -> list[tuple[Any, Any]]:
    return [(row["time"], row[columns[0]]) for row in rows]


def _by_key(rows: Sequence[Row], columns: Sequence[str]) -> list[tuple[Any, Any]]:
    return [(row[columns[1]], row[columns[0]]) for row in rows if row[columns[1]] is not None]


def _struct(pair: tuple[Any, Any] | None) -> dict[str, Any] | None:
    return None if pair is None else {"key": pair[0], "value": pair[1]}


@dataclass(frozen=True)
class PlainAggregate:
    """One named aggregate of columns."""

    function: str
    columns: tuple[str, ...]

    @property
    def name(self) -> str:
        return "_".join((self.function, *self.columns))

    @property
    def decimal(self) -> bool:
        return bool(pa.types.is_decimal(KINDS[self.columns[0]]))

    @property
    def parts(self) -> tuple[AggregatePart, ...]:
        if self.function in USERS:
            return (users_part(1, merged=USERS[self.function].udaf.merge is not None),)
        return aggregate(self.function, decimal=self.decimal).parts

    @property
    def final(self) -> str:
        return "users" if self.function in USERS else aggregate(self.function, decimal=self.decimal).final

    def partial_kinds(self) -> list[pa.DataType]:
        """The types of the partial columns, as Spark's analyser gives them."""
        kind = KINDS[self.columns[0]]
        match self.function:
            case "count":
                return [pa.int64()]
            case "sum":
                return [_sum_kind(kind)]
            case "avg":
                return [_sum_kind(kind) if self.decimal else pa.float64(), pa.int64()]
            case "var_samp" | "var_pop":
                return [pa.float64()] * 3
            case "first" | "last":
                return [pa.struct([("key", pa.int64()), ("value", kind)])]
            case "min_by" | "max_by":
                return [pa.struct([("key", KINDS[self.columns[1]]), ("value", kind)])]
            case "collect_list":
                return [_list_of(("time", pa.int64()), ("tie", pa.int64()), ("value", kind))]
            case "collect_set":
                return [_list_of(("tie", pa.int64()), ("check", pa.int64()), ("value", kind))]
            case "last_word" | "all_words":
                row = pa.struct([("value0", kind)])
                return [_list_of(("time", pa.int64()), ("tie", pa.int64()), ("value", row))]
        return [kind]

    @property
    def result_kind(self) -> pa.DataType:
        match self.function:
            case "count" | "sum":
                return self.partial_kinds()[0]
            case "avg":
                return _decimal(KINDS[self.columns[0]], 4, 4) if self.decimal else pa.float64()
            case "var_samp" | "var_pop":
                return pa.float64()
            case "collect_list" | "collect_set" | "all_words":
                return pa.list_(KINDS[self.columns[0]])
        return KINDS[self.columns[0]]

    def partials(self, rows: Sequence[Row]) -> list[Any]:
        """Of the rows of one pane, by the texts of the catalogue."""
        values = present([row[self.columns[0]] for row in rows])
        match self.function:
            case "count":
                return [len(values)]
            case "avg":
                total = _total(values) if values else None
                return [total if self.decimal or total is None else float(total), len(values)]
            case "var_samp" | "var_pop":
                return list(_moments([float(value) for value in values]))
            case "first" | "last" | "min_by" | "max_by":
                return [_struct(self._chosen(rows))]
            case "collect_list":
                return [
                    [
                        self._item(row, row[self.columns[0]])
                        for row in rows
                        if row[self.columns[0]] is not None
                    ]
                ]
            case "collect_set":
                return [[{"tie": tie(one), "check": tie((one, 1)), "value": one} for one in set(values)]]
            case "last_word" | "all_words":
                return [[self._item(row, {"value0": row[self.columns[0]]}) for row in rows]]
        return [_PLAIN[self.function](values) if values else None]

    def result(self, rows: Sequence[Row], *, in_order: bool = False) -> Any:
        """Of all rows of a window, by definition; `in_order`: lists are in that of these rows."""
        values = [row[self.columns[0]] for row in rows]
        if self.function in _CHOICES:
            pair = self._chosen(rows)
            return None if pair is None else pair[1]
        if self.function in ("var_samp", "var_pop"):
            numbers = [None if value is None else float(value) for value in values]
            return null_if_none(lambda some: _variance(some, self.function == "var_samp"))(numbers)
        if self.function == "count":
            return len(present(values))
        if self.function in _COLLECTIONS:
            if not in_order:
                rows = sorted(rows, key=lambda row: (row["time"], tie(row[self.columns[0]])))
            return _COLLECTIONS[self.function]([row[self.columns[0]] for row in rows])
        return null_if_none(_average if self.function == "avg" else _PLAIN[self.function])(values)

    def _item(self, row: Row, value: Any) -> dict[str, Any]:
        return {"time": row["time"], "tie": tie(row[self.columns[0]]), "value": value}

    def _chosen(self, rows: Sequence[Row]) -> tuple[Any, Any] | None:
        pairs_of, choose = _CHOICES[self.function]
        pairs = pairs_of(rows, self.columns)
        chosen: tuple[Any, Any] | None = choose(pairs) if pairs else None
        return chosen


_PLAIN: dict[str, Callable[[Sequence[Any]], Any]] = {
    "sum": _total,
    "min": _least,
    "max": _most,
    "bool_and": all,
    "bool_or": any,
}
_CHOICES: dict[str, tuple[Callable[..., list[tuple[Any, Any]]], Callable[[Sequence[Any]], Any]]] = {
    "first": (_by_time, _least),
    "last": (_by_time, _most),
    "min_by": (_by_key, _least),
    "max_by": (_by_key, _most),
}


def tie(value: Any) -> int:
    """A hash, as signed as Spark's."""
    number: int = np.uint64(xxhash.xxh64_intdigest(repr(value).encode())).astype(np.int64).item()
    return number


def _list_of(*fields: tuple[str, pa.DataType]) -> pa.DataType:
    return pa.list_(pa.struct(fields))


#: Of the values of a window, nulls among them, in order of time.
_COLLECTIONS: dict[str, Callable[[Sequence[Any]], Any]] = {
    "collect_list": lambda values: tuple(present(values)),
    "collect_set": lambda values: tuple(sorted(set(present(values)), key=tie)),
    "last_word": lambda values: max(present(values), default=None),
    "all_words": tuple,
}


def _last_word(state: State, words: Any) -> State:
    return state[0] + len(words), max([*present([state[1]]), *present(list(words))], default=None)


def _users(udaf: Udaf, state: list[tuple[str, pa.DataType]]) -> UdafLayout:
    return UdafLayout(udaf, pa.schema(state).serialize().to_pybytes(), "")


#: User-defined aggregates, with and without merge: the word that comes last in the alphabet, and all words.
USERS: dict[str, UdafLayout] = {
    "last_word": _users(
        Udaf(
            "last_word",
            zero=lambda: (0, None),
            update=_last_word,
            merge=lambda one, other: (one[0] + other[0], _last_word(one, [other[1]])[1]),
            finish=lambda state: state[1],
            fields=("n", "word"),
        ),
        [("n", pa.int64()), ("word", pa.string())],
    ),
    "all_words": _users(
        Udaf(
            "all_words",
            zero=lambda: ([],),
            update=lambda state, words: (state[0] + words.tolist(),),
            finish=lambda state: state[0],
            fields=("words",),
        ),
        [("words", pa.list_(pa.string()))],
    ),
}


def _sum_kind(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_decimal(kind):
        return _decimal(kind, 10, 0)
    return pa.float64() if pa.types.is_floating(kind) else pa.int64()


def _decimal(kind: pa.DataType, more_digits: int, more_behind: int) -> pa.DataType:
    return pa.decimal128(min(38, kind.precision + more_digits), min(38, kind.scale + more_behind))


#: Every kind of aggregate with every type that it treats in its own way.
AGGREGATES = (
    *(PlainAggregate("count", (column,)) for column in ("word", "whole")),
    *(PlainAggregate("sum", (column,)) for column in ("small", "real", "price")),
    *(PlainAggregate("avg", (column,)) for column in ("small", "real", "price")),
    *(PlainAggregate(one, (column,)) for one in ("min", "max") for column in KINDS),
    *(PlainAggregate(one, ("flag",)) for one in ("bool_and", "bool_or")),
    *(PlainAggregate(one, ("real",)) for one in ("var_samp", "var_pop")),
    *(PlainAggregate(one, (column,)) for one in ("first", "last") for column in KINDS),
    *(PlainAggregate(one, ("word", column)) for one in ("min_by", "max_by") for column in KINDS),
    *(PlainAggregate(one, ("whole", "at")) for one in ("min_by", "max_by")),
    *(
        PlainAggregate(one, (column,))
        for one in ("collect_list", "collect_set")
        for column in ("word", "whole")
    ),
    *(PlainAggregate(one, ("word",)) for one in USERS),
)
