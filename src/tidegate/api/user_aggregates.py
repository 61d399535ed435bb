"""User-defined aggregates for windows. Nothing here needs Spark.

class MeanFare(tg.Aggregator):
    state = "n long, total double"
    returns = "double"

    def zero(self): return (0, 0.0)
    def update(self, state, fares): return (state[0] + len(fares), state[1] + fares.sum())
    def merge(self, one, other): return (one[0] + other[0], one[1] + other[1])
    def finish(self, state): return state[1] / state[0]

near.window("1 minute", by="cell").agg(mean=MeanFare("fare"))
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from copy import copy
from typing import Any, TypeVar

from tidegate.errors import FlowError


class Aggregator:
    """An aggregate of your own: subclass it, and give an instance to `.window(…).agg(…)`.

    Attributes, of the class or of an instance:

        state                     names and types of the fields of a state: "n long, total double"
        returns                   the type of the result: "double"

    Methods:

        zero()                    the state of no rows: a tuple with a value per field of `state`
        update(state, array, …)   the state after more rows, given as one numpy array per column
        merge(state, state)       the state of the rows of both; optional
        finish(state)             the result

    With `merge`, arriving rows are folded into states, states are stored, and the state of a window is merged
    from those of its panes; values of states are plain Python values of the declared types. The first
    argument of `merge` covers rows that are earlier, or that arrived earlier in the same pane.
    Without `merge`, the rows of every window are stored, and `update` gets each whole window ordered by time
    (equal times by a hash of the row's values). The cost is the sum of the rows of all windows.

    The constructor takes the columns, as names or Spark expressions. A subclass may have other parameters:

        class Quantile(tg.Aggregator):
            def __init__(self, column, share):
                super().__init__(column)
                self.share = share

    Arrays are read-only. Floats have NaN for null; integers become float64 with NaN if one of them is null
    (`F.coalesce` avoids this); booleans are bool, or objects if any is null; dates and times are datetime64
    (UTC) with NaT for null; all else are objects: str, bytes, Decimal, dicts (of structs and maps), numpy
    arrays, and None.

    Methods must be pure: a replay calls them again, and windows share states. The instance is sent to the
    workers without its columns, and is never stored, so a query can continue from its checkpoint with other
    methods. An exception fails the batch with an error that names method, group and window; no rows are lost.

    >>> class Total(Aggregator):
    ...     state, returns = "total double", "double"
    ...     def zero(self):
    ...         return (0.0,)
    ...     def update(self, state, fares):
    ...         return (state[0] + float(fares.sum()),)
    ...     def merge(self, one, other):
    ...         return (one[0] + other[0],)
    ...     def finish(self, state):
    ...         return state[0]
    >>> total = Total("fare")       # for orders.window("1 minute").agg(total=total)
    >>> total.finish(total.merge((3.0,), total.zero()))
    3.0
    """

    state: str = ""
    returns: str = ""
    #: The arguments of `update`; on workers it is empty.
    columns: tuple[Any, ...] = ()

    def __init__(self, *columns: Any) -> None:
        self.columns = columns

    def zero(self) -> tuple[Any, ...]:
        """The state of no rows."""
        raise NotImplementedError

    # An override may name its arrays: a signature that ends in *Any, **Any accepts every list of arguments.
    def update(self, state: Any, *arrays: Any, **unused: Any) -> tuple[Any, ...]:
        """The state after more rows, given as one array per column."""
        raise NotImplementedError

    def merge(self, one: Any, other: Any) -> tuple[Any, ...]:
        """The state of the rows of both. Without it, `update` gets each window whole."""
        raise NotImplementedError

    def finish(self, state: Any) -> Any:
        """The result."""
        raise NotImplementedError


_Kind = TypeVar("_Kind", bound=Aggregator)
#: The number of arguments of each method, without columns, and what they are.
_ARGUMENTS = {
    "zero": (0, "no argument"),
    "update": (1, "a state and one array per column"),
    "finish": (1, "a state"),
    "merge": (2, "two states"),
}


def defines(given: Aggregator, method: str) -> bool:
    """Whether a subclass has its own version of a method."""
    return getattr(type(given), method, None) is not getattr(Aggregator, method)


def has_merge(given: Aggregator) -> bool:
    """Whether states are stored; otherwise the rows of windows are."""
    return defines(given, "merge") and given.merge is not None


def for_workers(given: _Kind) -> _Kind:
    """A copy without the columns: Spark expressions cannot be pickled, and no worker needs them."""
    sent = copy(given)
    object.__setattr__(sent, "columns", ())
    return sent


def check_aggregator(name: str, given: Aggregator) -> None:
    """All that can be checked without Spark; `name` is the name of the result."""
    if not given.columns:
        raise FlowError(
            f"Aggregate {name!r} has no columns",
            code="AGGREGATOR_COLUMNS_MISSING",
            got=f"{type(given).__name__}()",
            why="update gets one array per column, and learns from them how many rows there are",
            do=f'Write {name}={type(given).__name__}("fare"); an own __init__ calls super().__init__("fare")',
        )
    for method, (states, _) in _ARGUMENTS.items():
        if method != "merge" or has_merge(given):
            _check_method(name, given, method, states + len(given.columns) * (method == "update"))
    _check_type(name, given, "state", "n long, total double")
    _check_type(name, given, "returns", "double")
    _check_zero(name, given)


def _check_type(name: str, given: Aggregator, what: str, example: str) -> None:
    text: object = getattr(given, what)
    if not isinstance(text, str) or not text.strip():
        raise FlowError(
            f"Aggregate {name!r}: {what} must be a type, as text",
            code="AGGREGATOR_TYPE_MISSING",
            got=repr(text),
            do=f'Write for example {what} = "{example}" in the class {type(given).__name__}',
        )


def _check_method(name: str, given: Aggregator, method: str, arguments: int) -> None:
    takes = _ARGUMENTS[method][1]
    function: Callable[..., Any] = getattr(given, method)
    if not defines(given, method) or not callable(function):
        raise FlowError(
            f"Aggregate {name!r} needs a method {method}, which takes {takes}",
            code="AGGREGATOR_METHOD_MISSING",
            got=f"the class {type(given).__name__} without {method}"
            if callable(function)
            else repr(function),
            do="Define zero, update and finish, and merge if states can be merged",
        )
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # Some functions written in C have no signature.
    try:
        signature.bind(*range(arguments))
    except TypeError as error:
        raise FlowError(
            f"Aggregate {name!r}: {method} must take {takes}",
            code="AGGREGATOR_METHOD_ARGUMENTS",
            got=f"{method}{signature}, {error}",
            do=f"Let it take {arguments} argument(s) after self",
        ) from None


def _check_zero(name: str, given: Aggregator) -> None:
    try:
        state: object = given.zero()
    except Exception as error:
        raise FlowError(
            f"Aggregate {name!r}: zero raised an error",
            code="AGGREGATOR_ZERO_FAILED",
            got=f"{type(error).__name__}: {error}",
            why="Every window starts with the state that zero returns",
            do="Let it return the state of no rows, for example (0, 0.0)",
        ) from error
    if not isinstance(state, tuple):
        raise FlowError(
            f"Aggregate {name!r}: a state must be a tuple, with a value per field",
            code="AGGREGATOR_STATE_NOT_TUPLE",
            got=f"{state!r} from zero",
            why="It is stored as columns",
            do=f"Return a tuple with the fields of {given.state!r}",
        )
