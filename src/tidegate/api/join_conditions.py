"""Join conditions that `on=` takes besides column names.

    on=tg.overlap("items", at_least=3)                    sets with at least three common items
    on=tg.overlap("items", jaccard=0.5)                   at least half of all their items are common
    on=tg.inner_product("weights", at_least=0.6)          weighted sets
    on=tg.pairwise(near, ["lat", "lon"])                  any function of candidate pairs
    on=["target", tg.overlap("alerts", at_least=2)]       equal targets and one such condition

A column with different names on the two sides is written {"left_name": "right_name"}.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from tidegate.errors import FlowError
from tidegate.join.sets.thresholds import InnerProduct, Jaccard, Overlap, SetCondition
from tidegate.join.within import Tumbling, Unbounded, Within
from tidegate.quantities import duration_us

INDEXES = ("auto", "time", "identifier", "none")


@dataclass(frozen=True)
class OnSets:
    """Sets of items, one column on each side."""

    holds_sets: ClassVar[bool] = True

    left: str
    right: str
    condition: SetCondition
    #: How pairs are found: `auto` chooses, `none` compares row by row, the others are inverted lists.
    index: str = "auto"

    def __post_init__(self) -> None:
        if self.index not in INDEXES:
            raise FlowError(
                "Unknown kind of index", got=repr(self.index), do=f"Use one of {', '.join(INDEXES)}"
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


def overlap(
    column: str | Mapping[str, str],
    at_least: int | None = None,
    *,
    jaccard: float | None = None,
    index: str = "auto",
) -> OnSets:
    """Pairs whose arrays have at least `at_least` common items, or at least the Jaccard similarity `jaccard`.

    Items that repeat within an array count once; null and empty arrays match nothing, null items neither.
    """
    if (at_least is None) == (jaccard is None):
        raise FlowError(
            "An overlap has one threshold",
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
        raise FlowError("Common items are counted in whole numbers", got=repr(at_least), do="Give at_least=3")
    return OnSets(left, right, condition, index)


def inner_product(column: str | Mapping[str, str], at_least: float, *, index: str = "auto") -> OnSets:
    """Pairs of weighted sets with an inner product of at least `at_least`.

    A weighted set is a map from item to weight, or an array of structs (item, weight). A sum of NaN matches
    nothing, negative weights are allowed, and items with a null weight are ignored.
    """
    left, right = _one_column(column)
    return OnSets(left, right, InnerProduct(_number(at_least, "at_least")), index)


def pairwise(function: Callable[[Any, Any], Any], columns: Columns) -> OnPairs:
    """Pairs for which a vectorised function of (left, right) is true.

    With `columns` a list (or dict), left and right are pandas data frames with these columns, one line per
    candidate pair; with one name, two series. The result is one truth value per line.
    """
    if not callable(function):
        raise FlowError(
            "pairwise needs a function", got=repr(function), do="pairwise(lambda l, r: …, columns)"
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
            "pairwise needs columns",
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
            "The function of pairwise takes the left and the right columns",
            got=f"{getattr(function, '__name__', 'it')}{signature}, {error}",
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
        got=repr(given),
        do='Give a name, or {"left_name": "right_name"}',
    )


def _number(given: Any, what: str) -> float:
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        raise FlowError(f"{what} is not a number", got=repr(given), do=f"Give {what}=0.5")
    return float(given)


def tumbling(size: str) -> Tumbling:
    """For `within`: both rows fall into the same epoch-aligned window of this size."""
    return Tumbling(duration_us(size, "tumbling window"))


def _within(given: Any) -> Within | Tumbling | Unbounded:
    if given is None:
        return Unbounded()
    if isinstance(given, Tumbling):
        return given
    if isinstance(given, (tuple, list)):
        if len(given) != 2:
            raise FlowError(
                "within takes two durations, left and right", got=repr(given), do="Or one for both"
            )
        left, right = given
    else:
        left = right = given
    return Within(duration_us(left, "within (left)"), duration_us(right, "within (right)"))


def _on(
    on: str | Mapping[str, str] | Condition | Sequence[str | Condition],
) -> tuple[tuple[tuple[str, str], ...], Condition | None]:
    """Pairs of key columns, and the condition if there is one."""
    if isinstance(on, Mapping):
        return _keys([(str(left), str(right)) for left, right in on.items()], on), None
    parts = [on] if isinstance(on, (str, OnSets, OnPairs)) or not isinstance(on, Sequence) else list(on)
    names = [part for part in parts if isinstance(part, str)]
    conditions = [part for part in parts if isinstance(part, (OnSets, OnPairs))]
    if len(conditions) > 1:
        raise FlowError(
            "A join takes one condition besides equal columns",
            got=", ".join(condition.describe() for condition in conditions),
            do="Put the others into where=…, or into one pairwise function",
        )
    if len(names) + len(conditions) < len(parts) or not parts:
        return _keys([], on), None
    if len(set(names)) < len(names):
        raise FlowError("A join names a key twice", got=", ".join(names), do="Name each key once")
    keys = tuple((name, name) for name in names)
    return keys, conditions[0] if conditions else None


def _keys(pairs: list[tuple[str, str]], given: object) -> tuple[tuple[str, str], ...]:
    if not pairs:
        raise FlowError(
            "A join needs key columns or a condition",
            got=repr(given),
            do='Give a name, a list of names, a dict {"left_col": "right_col"}, or tg.overlap(…)',
        )
    return tuple(pairs)
