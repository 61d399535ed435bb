"""The catalogue of windowed aggregates: what each is made of, and how the parts are merged.

An aggregate is *decomposed*: Spark computes a few partial columns per group and pane, before the shuffle. The
partials of a window are merged from those of its panes, and a formula computes the result from them.

    avg(fare)    per pane    sum(CAST(fare AS DOUBLE)), count(fare)        plain Spark aggregates
                 per window  Σ, Σ                                          `combine.py`
                 result      sum / count, NULL where count = 0             `finals.py`

Texts are templates: {0} and {1} are the arguments of the aggregate, as SQL, {time} is the event time, {tie}
and {check} are hashes of all arguments, {size} is that of a sketch. `row` is the same partial for a single
row: count windows have no panes (`count_windows.py`). Aggregates with a common `AggregatePart` share it:
equal texts are computed once.

Nulls are as in Spark: ignored, and a window of nothing but nulls gives NULL (counts give 0). Sums of integers
are 64-bit and exact, those of decimals exact up to 38 digits; a sum that does not fit fails the batch
(`sums.py`). Floating-point sums depend on the order of rows, here as in Spark.

Where we differ from Spark, always towards a result that does not depend on the order of rows:
- `first`, `last` and `any_value` go by event time, and of rows of one time by value (first: the smallest);
- `min_by` and `max_by` on equal keys take the smallest, or largest, value;
- `corr` of a constant is NULL, also with ANSI on;
- `collect_list` is in the order of event time, and of rows of one time by a hash of the value; `collect_set`
  in that of the hashes;
- `approx_count_distinct` and `approx_percentile` are DataSketches (HLL, KLL), with the errors that Spark's
  own arguments `rsd` and `accuracy` request (`sketches.py`). KLL is randomised: a replay may give another
  estimate within the error. It ignores NaN and takes numbers as doubles.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from tidegate.errors import FlowError


class Merge(StrEnum):
    """How partial columns of several panes are merged."""

    SUM = "sum"
    MIN = "min"
    MAX = "max"
    AND = "and"
    OR = "or"
    XOR = "xor"
    #: The lines n, mean, m2 (, m3, m4) together; see `moments.py`.
    MOMENTS = "moments"
    COMOMENTS = "comoments"
    #: A struct (key, value): the one with the smallest, or largest, key, then value.
    FIRST = "first"
    LAST = "last"
    #: Lists of items (time, tie, value) concatenated; of (tie, check, value), without duplicates.
    CONCAT = "concat"
    UNION = "union"
    #: Serialised DataSketches.
    DISTINCT = "distinct"
    QUANTILES = "quantiles"
    #: Rows of a user-defined aggregate, as CONCAT; or its states, merged by the user's function.
    ROWS = "rows"
    STATES = "states"


@dataclass(frozen=True)
class AggregatePart:
    """Partial columns that are merged together: their SQL per pane, and per row."""

    merge: Merge
    pane: tuple[str, ...]
    row: tuple[str, ...]


@dataclass(frozen=True)
class Aggregate:
    """One aggregate; `final` names the formula in `finals.py`, `result` is the type of the result.

    `same` is the type of the first argument, `array` an array of it; see `result_type`.
    """

    name: str
    arguments: int
    parts: tuple[AggregatePart, ...]
    final: str = "as it is"
    result: str = "same"
    #: The accepted types of arguments, in Spark's names for families of types.
    accepts: str = "any"
    #: Constants that may follow the arguments.
    constants: tuple[str, ...] = ()


def aggregate(name: str, *, decimal: bool = False) -> Aggregate:
    """The aggregate of this Spark name (case-insensitive); `decimal`: of decimals."""
    name = _OTHER_NAMES.get(name.lower(), name.lower())
    found = DECIMAL_AVERAGE if decimal and name == "avg" else CATALOGUE.get(name)
    if found is None:
        raise FlowError(
            f"The function {name} cannot be computed over windows",
            code="AGGREGATE_UNKNOWN",
            got=name,
            why="Tidegate cannot merge it from parts of a window, so each window would need all its rows",
            do=f"Use one of {', '.join(CATALOGUE)}; or a tg.Aggregator, which can keep the rows of a window",
        )
    return found


def result_type(of: Aggregate, argument: str) -> str:
    """The type of the result, given that of the first argument, both as Spark's simple strings."""
    match of.result:
        case "same":
            return argument
        case "array":
            return f"array<{argument}>"
        case "sum" if argument.startswith("decimal"):
            return _decimal(argument, 10, 0)
        case "avg of decimals":
            return _decimal(argument, 4, 4)
        case "sum":
            return "double" if argument in ("float", "double") else "bigint"
        case _:
            return of.result


def _decimal(argument: str, more_digits: int, more_behind: int) -> str:
    precision, scale = (int(part) for part in argument.removeprefix("decimal(").rstrip(")").split(","))
    return f"decimal({min(38, precision + more_digits)},{min(38, scale + more_behind)})"


#: Row texts: the value itself, as a double, whether it is not null, and one.
VALUE, REAL = "{0}", "CAST({0} AS DOUBLE)"
COUNTED, ONE = "CAST({0} IS NOT NULL AS BIGINT)", "1L"
#: Row texts that give the same number for every row.
CONSTANTS = {ONE: 1}
_BOTH = "{0} IS NOT NULL AND {1} IS NOT NULL"
_X = f"CASE WHEN {_BOTH} THEN CAST({{0}} AS DOUBLE) END"
_Y = f"CASE WHEN {_BOTH} THEN CAST({{1}} AS DOUBLE) END"

_COUNT = AggregatePart(Merge.SUM, ("count({0})",), (COUNTED,))
_SUM = AggregatePart(Merge.SUM, ("sum({0})",), (VALUE,))
_REAL_SUM = AggregatePart(Merge.SUM, ("sum(CAST({0} AS DOUBLE))",), (REAL,))
_VARIANCE_PANE = ("CAST(count({0}) AS DOUBLE)", "avg(CAST({0} AS DOUBLE))", "var_pop({0}) * count({0})")
# A single row has spread 0; NaN and infinity have spread NaN.
_NO_SPREAD = "CAST({0} AS DOUBLE) - CAST({0} AS DOUBLE)"
_VARIANCE_ROW = (f"CAST({COUNTED} AS DOUBLE)", "CAST({0} AS DOUBLE)", _NO_SPREAD)
#: Spark's skewness is √n · m3 / m2^1.5 and its kurtosis n · m4 / m2² − 3; both are NULL where m2 is zero.
_M3 = "coalesce(skewness({0}) * count({0}) * power(var_pop({0}), 1.5D), 0D)"
_M4 = "coalesce((kurtosis({0}) + 3D) * count({0}) * power(var_pop({0}), 2D), 0D)"
_VARIANCE = AggregatePart(Merge.MOMENTS, _VARIANCE_PANE, _VARIANCE_ROW)
_THIRD = AggregatePart(Merge.MOMENTS, (*_VARIANCE_PANE, _M3), (*_VARIANCE_ROW, _NO_SPREAD))
_FOURTH = AggregatePart(Merge.MOMENTS, (*_VARIANCE_PANE, _M3, _M4), (*_VARIANCE_ROW, _NO_SPREAD, _NO_SPREAD))
_PAIRS = AggregatePart(
    Merge.COMOMENTS,
    (
        f"CAST(count({_X}) AS DOUBLE)",
        f"avg({_X})",
        f"avg({_Y})",
        f"var_pop({_X}) * count({_X})",
        f"var_pop({_Y}) * count({_X})",
        "covar_pop({0}, {1}) * " + f"count({_X})",
    ),
    (f"CAST({_BOTH} AS DOUBLE)", _X, _Y, f"{_X} - {_X}", f"{_Y} - {_Y}", f"({_X} - {_X}) + ({_Y} - {_Y})"),
)
_BY_TIME = "struct({time} AS key, {0} AS value)"
_BY_KEY = "CASE WHEN {1} IS NOT NULL THEN struct({1} AS key, {0} AS value) END"


def counting_all(part: AggregatePart) -> AggregatePart:
    """The part where its argument is never null, as in `count(*)`: each row counts as one."""
    return replace(part, row=tuple(ONE if text == COUNTED else text for text in part.row))


def _same(name: str, merge: Merge, accepts: str = "any") -> Aggregate:
    """An aggregate whose partial is itself."""
    return Aggregate(name, 1, (AggregatePart(merge, (f"{name}({{0}})",), (VALUE,)),), accepts=accepts)


def _real(name: str, part: AggregatePart) -> Aggregate:
    """A statistic of numbers with a double as its result; the formula has the same name."""
    arguments = 2 if part.merge is Merge.COMOMENTS else 1
    return Aggregate(name, arguments, (part,), name, "double", "numeric")


def _chosen(name: str, merge: Merge, function: str, struct: str, arguments: int) -> Aggregate:
    """The value of the row that is first, or last, by some key; values must be orderable."""
    part = AggregatePart(merge, (f"{function}({struct})",), (struct,))
    return Aggregate(name, arguments, (part,), "value of struct", "same", "orderable")


_LISTED = "struct({time} AS time, {tie} AS tie, {0} AS value)"
_IN_SET = "struct({tie} AS tie, {check} AS check, {0} AS value)"


def _items(merge: Merge, function: str, item: str) -> AggregatePart:
    """A list of the values that are not null; a row has a list of one or zero."""
    there = "CASE WHEN {0} IS NOT NULL THEN "
    return AggregatePart(merge, (f"{function}({there}{item} END)",), (f"{there}array({item}) END",))


_LIST = _items(Merge.CONCAT, "collect_list", _LISTED)
_SET = _items(Merge.UNION, "collect_set", _IN_SET)
# By hash: Spark's sketch accepts few types, and hashes its input anyway.
_HLL = AggregatePart(
    Merge.DISTINCT, ("hll_sketch_agg(CASE WHEN {0} IS NOT NULL THEN {tie} END, {size})",), ()
)
_KLL = AggregatePart(Merge.QUANTILES, ("kll_sketch_agg_double(CAST({0} AS DOUBLE), {size})",), ())


def users_part(arguments: int, *, merged: bool) -> AggregatePart:
    """The part of a user-defined aggregate: rows, which become states where these can be merged."""
    values = ", ".join(f"{{{number}}} AS value{number}" for number in range(arguments))
    row = f"struct({{time}} AS time, {{tie}} AS tie, struct({values}) AS value)"
    merge = Merge.STATES if merged else Merge.ROWS
    return AggregatePart(merge, (f"collect_list({row})",), (f"array({row})",))


CATALOGUE: dict[str, Aggregate] = {
    one.name: one
    for one in (
        Aggregate("count", 1, (_COUNT,), "count", "bigint"),
        Aggregate(
            "count_if",
            1,
            (AggregatePart(Merge.SUM, ("count_if({0})",), ("CAST(coalesce({0}, false) AS BIGINT)",)),),
            "count",
            "bigint",
            "boolean",
        ),
        Aggregate("sum", 1, (_SUM,), result="sum", accepts="numeric"),
        Aggregate("avg", 1, (_REAL_SUM, _COUNT), "avg", "double", "numeric"),
        _same("min", Merge.MIN, "orderable"),
        _same("max", Merge.MAX, "orderable"),
        *(_real(name, _VARIANCE) for name in ("var_samp", "var_pop", "stddev_samp", "stddev_pop")),
        _real("skewness", _THIRD),
        _real("kurtosis", _FOURTH),
        *(_real(name, _PAIRS) for name in ("covar_samp", "covar_pop", "corr")),
        _same("bit_and", Merge.AND, "integral"),
        _same("bit_or", Merge.OR, "integral"),
        _same("bit_xor", Merge.XOR, "integral"),
        _same("bool_and", Merge.MIN, "boolean"),
        _same("bool_or", Merge.MAX, "boolean"),
        _chosen("first", Merge.FIRST, "min", _BY_TIME, 1),
        _chosen("last", Merge.LAST, "max", _BY_TIME, 1),
        _chosen("any_value", Merge.FIRST, "min", _BY_TIME, 1),
        _chosen("min_by", Merge.FIRST, "min", _BY_KEY, 2),
        _chosen("max_by", Merge.LAST, "max", _BY_KEY, 2),
        Aggregate("collect_list", 1, (_LIST,), "items", "array"),
        Aggregate("collect_set", 1, (_SET,), "items", "array"),
        Aggregate("approx_count_distinct", 1, (_HLL,), "estimate", "bigint", constants=("rsd",)),
        Aggregate(
            "approx_percentile",
            1,
            (_KLL,),
            "quantiles",
            accepts="numeric",
            constants=("percentage", "accuracy"),
        ),
    )
}

#: Spark keeps averages of decimals exact: four more digits before and after the point.
DECIMAL_AVERAGE = Aggregate("avg", 1, (_SUM, _COUNT), "avg of decimals", "avg of decimals", "numeric")

_OTHER_NAMES = {
    "mean": "avg",
    "variance": "var_samp",
    "stddev": "stddev_samp",
    "std": "stddev_samp",
    "every": "bool_and",
    "any": "bool_or",
    "some": "bool_or",
    "first_value": "first",
    "last_value": "last",
    "array_agg": "collect_list",
    "percentile_approx": "approx_percentile",
}
