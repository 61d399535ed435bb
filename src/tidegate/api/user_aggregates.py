"""User-defined aggregates for windows. Nothing here needs Spark.

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
    """A user-defined aggregate; columns and types are passed on unread."""

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

    `init()` returns the state of no rows: a tuple with a value per field of `state` ("n long, s double").
    `incr(state, array, …)` returns the state after more rows, given as one numpy array per column.
    `merge(state, state)` combines two states; `final(state)` returns the result, of type `returns`.

    With `merge`, arriving rows are folded into states, states are stored, and the state of a window is merged
    from those of its panes; values of states are plain Python values of the declared types. The first
    argument of `merge` covers rows that are earlier, or that arrived earlier in the same pane.
    Without `merge`, the rows of every window are stored, and `incr` gets each whole window ordered by time
    (equal times by a hash of the row's values). The cost is the sum of the rows of all windows.

    `columns` are names or Spark expressions. Arrays are read-only. Floats have NaN for null; integers become
    float64 with NaN if one of them is null (`F.coalesce` avoids this); booleans are bool, or objects if any
    is null; dates and times are datetime64 (UTC) with NaT for null; all else are objects: str, bytes,
    Decimal, dicts (of structs and maps), numpy arrays, and None.

    Functions must be pure: a replay calls them again, and windows share states. They are sent to the workers
    and never stored, so a query can continue from its checkpoint with other functions. An exception fails
    the batch with an error that names function, group and window; no rows are lost.
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
        return  # Some functions written in C have no signature.
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
