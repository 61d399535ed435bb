"""Aggregates that users define for windows: what they say of them. Nothing here needs Spark.

tg.udaf(
    init=lambda: (0, 0.0),
    incr=lambda state, fares: (state[0] + len(fares), state[1] + fares.sum()),
    merge=lambda one, other: (one[0] + other[0], one[1] + other[1]),
    final=lambda state: state[1] / state[0],
    columns=["fare"], state="n long, s double", returns="double",
)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tidegate.errors import FlowError


@dataclass(frozen=True, eq=False)
class UserAggregate:
    """A user-defined aggregate; columns and types are only carried along."""

    init: Callable[[], tuple[Any, ...]]
    incr: Callable[..., tuple[Any, ...]]
    final: Callable[[tuple[Any, ...]], Any]
    merge: Callable[[tuple[Any, ...], tuple[Any, ...]], tuple[Any, ...]] | None
    columns: tuple[Any, ...]
    state: str
    returns: str

    @property
    def functions(self) -> dict[str, Callable[..., Any]]:
        named = {"init": self.init, "incr": self.incr, "final": self.final, "merge": self.merge}
        return {role: function for role, function in named.items() if function is not None}


def udaf(
    init: Callable[[], tuple[Any, ...]],
    incr: Callable[..., tuple[Any, ...]],
    final: Callable[[tuple[Any, ...]], Any],
    merge: Callable[[tuple[Any, ...], tuple[Any, ...]], tuple[Any, ...]] | None = None,
    *,
    columns: str | Sequence[Any],
    state: str,
    returns: str,
) -> UserAggregate:
    """An aggregate of your own, for `.window(…).agg(x=tg.udaf(…))`.

    `init()` is the state of no rows: a tuple, with a value per field of `state` (as in "n long, s double").
    `incr(state, array, …)` is the state after some rows, given as a numpy array per column.
    `merge(state, state)` is that of the rows of both; `final(state)` is the result, of type `returns`.

    With `merge` rows become states as they come in, states are stored, and a window is merged of those of its
    parts; their values are then plain Python ones of the declared types. The first argument is of rows that
    are earlier, or came earlier in the same part of a window.
    Without `merge` the rows of every window are kept, and `incr` sees each window whole, in the order of time
    (rows of one time by a hash of their values). This costs as much as the windows have rows, together.

    `columns` are names, or Spark's expressions. Arrays cannot be changed. Floats come as they are, null as
    NaN; whole numbers as they are, or as float64 with NaN where one of them is null (`F.coalesce` keeps them
    whole); booleans as bool, or as objects where one is null; dates and times as datetime64 (UTC), null as
    NaT; all else as objects: str, bytes, Decimal, dicts (of structs and maps), numpy arrays, and None.

    Functions must be pure: a replay calls them again, and windows share states. They travel to the workers
    and are never stored: a query can go on from its checkpoint with others. What they raise fails the batch,
    with an error that names function, group and window; nothing is lost by it.
    """
    listed = isinstance(columns, Sequence) and not isinstance(columns, str)
    names = tuple(columns) if listed else () if columns is None else (columns,)
    given = UserAggregate(init, incr, final, merge, names, state, returns)
    if not names:
        raise FlowError(
            "A user-defined aggregate needs columns",
            why="incr learns from them alone how many rows there are",
            do='Name at least one, as in columns=["fare"]',
        )
    _check_function("init", init, 0)
    _check_function("incr", incr, 1 + len(names))
    _check_function("final", final, 1)
    if merge is not None:
        _check_function("merge", merge, 2)
    _check_type("state", state, "n long, s double")
    _check_type("returns", returns, "double")
    _check_init(given)
    return given


def _check_type(what: str, text: Any, example: str) -> None:
    if not isinstance(text, str) or not text.strip():
        raise FlowError(
            f"{what} of a user-defined aggregate is a type, as text",
            got=repr(text),
            do=f'Write for example {what}="{example}"',
        )


def _check_function(role: str, function: Any, arguments: int) -> None:
    if not callable(function):
        raise FlowError(f"{role} of a user-defined aggregate must be a function", got=repr(function))
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # Some functions written in C do not say what they take.
    try:
        signature.bind(*range(arguments))
    except TypeError as error:
        takes = {"init": "nothing", "incr": "a state and an array per column", "final": "a state"}
        raise FlowError(
            f"{role} of a user-defined aggregate takes {takes.get(role, 'two states')}",
            got=f"{role}{signature}, {error}",
            do=f"Let it take {arguments} argument(s)",
        ) from None


def _check_init(given: UserAggregate) -> None:
    try:
        state = given.init()
    except Exception as error:
        raise FlowError(
            "init of a user-defined aggregate raised an error",
            got=f"{type(error).__name__}: {error}",
            why="Every window begins with it",
            do="Let it return the state of no rows, as in lambda: (0, 0.0)",
        ) from error
    if not isinstance(state, tuple):
        raise FlowError(
            "A state is a tuple, with a value per field",
            got=f"{state!r} from init",
            why="It is stored as columns",
            do=f"Return a tuple with the fields of {given.state!r}",
        )
