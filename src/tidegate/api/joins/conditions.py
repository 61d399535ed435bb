"""What `on=` of a join takes besides SQL text (`sql_conditions.py`).

    on="cell"                                             equal columns
    on={"cell": "place"}                                  with different names on the two sides
    on=tg.equal("cell", null_safe=True)                   equal columns, and null equals null
    on=tg.overlap("items", at_least=3)                    sets with at least three common items
    on=tg.overlap("items", jaccard=0.5)                   at least half of all their items are common
    on=tg.inner_product("weights", at_least=0.6)          weighted sets
    on=tg.pairwise(near, ["lat", "lon"])                  any function of candidate pairs
    on=["target", tg.overlap("alerts", at_least=2)]       equal targets and one such condition

A column with different names on the two sides is written {"left_name": "right_name"} everywhere.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

from tidegate.errors import FlowError
from tidegate.join.sets.thresholds import InnerProduct, Jaccard, Overlap, SetCondition

#: The columns in a key expression.
_NAMED = re.compile(r"`([^`]+)`")
#: How the pairs of a set condition are found.
SetIndex = Literal["auto", "time", "identifier", "none"]


@dataclass(frozen=True)
class JoinKey:
    """Two columns, one of each side, that must be equal."""

    left: str
    right: str
    #: Null equals null; otherwise a null equals nothing.
    null_safe: bool = False
    #: `left` and `right` are SQL expressions, each over the columns of its side.
    expressions: bool = False

    @property
    def label(self) -> str:
        """What the default name of a join says of this key: its left column or columns."""
        return "_".join(_NAMED.findall(self.left)) if self.expressions else self.left

    def __str__(self) -> str:
        if self.null_safe:
            return f"{self.left} <=> {self.right}"
        return self.left if self.left == self.right else f"{self.left} = {self.right}"

    def describe(self) -> list[str]:
        """The part of a checkpoint's fingerprint that stands for this key."""
        marks = [word for word, given in (("null_safe", self.null_safe), ("sql", self.expressions)) if given]
        return [self.left, self.right, *marks]


@dataclass(frozen=True)
class OnEqual:
    """Columns that must be equal."""

    keys: tuple[JoinKey, ...]


@dataclass(frozen=True)
class OnSets:
    """Sets of items, one column on each side."""

    holds_sets: ClassVar[bool] = True

    left: str
    right: str
    condition: SetCondition
    #: How pairs are found: `auto` chooses, `none` compares row by row, the others are inverted lists.
    index: SetIndex = "auto"

    def __post_init__(self) -> None:
        if self.index not in get_args(SetIndex):
            raise FlowError(
                "Unknown index of a set condition",
                code="JOIN_SET_INDEX_UNKNOWN",
                got=f"index={self.index!r}",
                do="Use one of " + ", ".join(get_args(SetIndex)),
            )

    @property
    def weighted(self) -> bool:
        return isinstance(self.condition, InnerProduct)

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        return ((self.left, self.right),)

    def describe(self) -> str:
        """The part of the condition that must not change between runs on one checkpoint."""
        kind = type(self.condition).__name__
        return f"{kind}({self.left}, {self.right}, at_least={self.condition.at_least!r})"


@dataclass(frozen=True)
class OnPairs:
    """A function of pairs and its argument columns."""

    holds_sets: ClassVar[bool] = False

    function: Callable[[Any, Any], Any]
    columns: tuple[tuple[str, str], ...]
    #: The columns were given as one name: the function takes two series instead of two frames.
    single: bool

    @property
    def name(self) -> str:
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    def describe(self) -> str:
        # A function cannot be compared; its name and columns can.
        return f"pairwise({self.name}, {', '.join('='.join(pair) for pair in self.columns)})"


Condition = OnSets | OnPairs
Columns = str | Sequence[str] | Mapping[str, str]
OnePart = str | Mapping[str, str] | OnEqual | Condition
#: What `on=` takes, apart from Spark columns.
On = OnePart | Sequence[OnePart]


def equal(*columns: str | Mapping[str, str], null_safe: bool = False) -> OnEqual:
    """Equal columns, as a condition that can stand in a list beside others.

    `columns`: names that both sides have, or {"left_name": "right_name"}.
    `null_safe`: null equals null, as `<=>` in Spark; otherwise a row with a null in a key has no match.

    >>> on = ["city", equal({"cell": "place"}, null_safe=True)]
    >>> [str(key) for key in on[1].keys]
    ['cell <=> place']
    """
    if not isinstance(null_safe, bool):
        raise FlowError(
            "null_safe of tg.equal is not a truth value",
            code="JOIN_KEY_INVALID",
            got=repr(null_safe),
            do="Give True or False",
        )
    pairs: list[tuple[Any, Any]] = []
    for given in columns:
        pairs += list(given.items()) if isinstance(given, Mapping) else [(given, given)]
    if not pairs or not all(isinstance(name, str) and name for pair in pairs for name in pair):
        raise FlowError(
            "tg.equal needs the names of columns",
            code="JOIN_KEY_INVALID",
            got=", ".join(map(repr, columns)) or "nothing",
            do='Write tg.equal("cell"), or tg.equal({"left_name": "right_name"})',
        )
    return OnEqual(tuple(JoinKey(left, right, null_safe) for left, right in pairs))


def overlap(
    column: str | Mapping[str, str],
    at_least: int | None = None,
    *,
    jaccard: float | None = None,
    index: SetIndex = "auto",
) -> OnSets:
    """Pairs whose arrays have at least `at_least` common items, or at least the Jaccard similarity `jaccard`.

    Items that repeat within an array count once; null and empty arrays match nothing, null items neither.

    >>> overlap("items", at_least=3).describe()
    'Overlap(items, items, at_least=3)'
    """
    if (at_least is None) == (jaccard is None):
        raise FlowError(
            "tg.overlap takes one threshold",
            code="JOIN_SET_THRESHOLD",
            got=f"at_least={at_least!r}, jaccard={jaccard!r}",
            do="Give at_least=3 (common items) or jaccard=0.5 (their share of all items)",
        )
    left, right = _one_column(column)
    condition: SetCondition
    if jaccard is not None:
        condition = Jaccard(_number(jaccard, "jaccard"))
    elif isinstance(at_least, int) and not isinstance(at_least, bool):
        condition = Overlap(at_least)
    else:
        raise FlowError(
            "at_least of tg.overlap is not a whole number",
            code="JOIN_SET_THRESHOLD",
            got=repr(at_least),
            why="It counts common items",
            do="Give for example at_least=3",
        )
    return OnSets(left, right, condition, index)


def inner_product(column: str | Mapping[str, str], at_least: float, *, index: SetIndex = "auto") -> OnSets:
    """Pairs of weighted sets with an inner product of at least `at_least`.

    A weighted set is a map from item to weight, or an array of structs (item, weight). A sum of NaN matches
    nothing, negative weights are allowed, and items with a null weight are ignored.

    >>> inner_product({"weights": "scores"}, at_least=0.6).describe()
    'InnerProduct(weights, scores, at_least=0.6)'
    """
    left, right = _one_column(column)
    return OnSets(left, right, InnerProduct(_number(at_least, "at_least")), index)


def pairwise(function: Callable[[Any, Any], Any], columns: Columns) -> OnPairs:
    """Pairs for which a vectorised function of (left, right) is true.

    With `columns` a list (or dict), left and right are pandas data frames with these columns, one line per
    candidate pair; with one name, two series. The result is one truth value per line.

    >>> def near(left, right):
    ...     return (left.lat - right.lat).abs() + (left.lon - right.lon).abs() < 0.01
    >>> pairwise(near, ["lat", "lon"]).describe()
    'pairwise(near, lat=lat, lon=lon)'
    """
    if not callable(function):
        raise FlowError(
            "tg.pairwise needs a function",
            code="JOIN_PAIRWISE_FUNCTION",
            got=repr(function),
            do="Write tg.pairwise(function, columns); it gets the left and the right columns",
        )
    _check_takes_two(function)
    single = isinstance(columns, str)
    pairs: tuple[tuple[Any, Any], ...] = ()
    if isinstance(columns, Mapping):
        pairs = tuple(columns.items())
    elif single or isinstance(columns, Sequence):
        pairs = tuple((name, name) for name in ([columns] if single else columns))
    if not pairs or not all(isinstance(name, str) and name for pair in pairs for name in pair):
        raise FlowError(
            "tg.pairwise needs the names of columns",
            code="JOIN_PAIRWISE_COLUMNS",
            got=repr(columns),
            do='Name what the function compares: ["lat", "lon"], or {"left_name": "right_name"}',
        )
    return OnPairs(function, pairs, single)


def _check_takes_two(function: Callable[..., Any]) -> None:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # Some functions written in C have no signature.
    try:
        signature.bind(None, None)
    except TypeError as error:
        raise FlowError(
            "The function of tg.pairwise does not take two arguments",
            code="JOIN_PAIRWISE_FUNCTION",
            got=f"{getattr(function, '__name__', 'it')}{signature}, {error}",
            why="It is called with the left and the right columns",
            do="Let it take two arguments",
        ) from None


def _one_column(given: str | Mapping[str, str]) -> tuple[str, str]:
    if isinstance(given, str) and given:
        return given, given
    if isinstance(given, Mapping) and len(given) == 1:
        ((left, right),) = given.items()
        if isinstance(left, str) and isinstance(right, str):
            return left, right
    raise FlowError(
        "A set condition compares one column of each side",
        code="JOIN_SET_COLUMN",
        got=repr(given),
        do='Give a name, or {"left_name": "right_name"}',
    )


def _number(given: Any, what: str) -> float:
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        raise FlowError(
            f"{what} of a set condition is not a number",
            code="JOIN_SET_THRESHOLD",
            got=repr(given),
            do=f"Give for example {what}=0.5",
        )
    return float(given)


def join_parts(on: Any) -> tuple[tuple[JoinKey, ...], Condition | None]:
    """The keys that `on` gives, and the condition besides, if there is one."""
    parts = list(on) if isinstance(on, Sequence) and not isinstance(on, str) else [on]
    keys: list[JoinKey] = []
    conditions: list[Condition] = []
    for part in parts:
        if isinstance(part, (OnSets, OnPairs)):
            conditions.append(part)
        elif isinstance(part, OnEqual):
            keys += part.keys
        elif isinstance(part, (str, Mapping)) and part:
            keys += equal(part).keys
        else:
            raise _no_condition(part)
    if not keys and not conditions:
        raise _no_condition(on)
    if len(conditions) > 1:
        raise FlowError(
            "A join takes one condition besides equal columns",
            code="JOIN_CONDITIONS_MANY",
            got=", ".join(condition.describe() for condition in conditions),
            do="Put the others into where=…, or into one pairwise function",
        )
    _refuse_twice(keys)
    return tuple(keys), conditions[0] if conditions else None


def _refuse_twice(keys: Sequence[JoinKey]) -> None:
    named = [(key.left, key.right) for key in keys]
    twice = next((pair for pair in named if named.count(pair) > 1), None)
    if twice is not None:
        raise FlowError(
            "A key of the join is given twice",
            code="JOIN_KEY_TWICE",
            got=str(JoinKey(*twice)),
            do="Name each key once",
        )


def _no_condition(given: object) -> FlowError:
    return FlowError(
        "A join needs columns that must be equal, or a condition",
        code="JOIN_ON_INVALID",
        got=f"on={given!r}",
        do='Give a name, a list of names, {"left_name": "right_name"}, tg.overlap(…), or SQL text',
    )
