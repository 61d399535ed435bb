"""User-defined aggregates (`tg.Aggregator`): four functions over a typed state.

    zero()                    the state of no rows
    update(state, columns …)  the state after some rows, given as arrays
    merge(state, state)       the state of the rows of both, the rows of the first before those of the second
    finish(state)             the result

With `merge` the state of a pane is a partial like any other: stored and merged over windows, and the rows
are discarded. Without it the rows of every window are kept, and `update` receives each window whole, in order
of time.

A state is a tuple with a value per declared field, so that it can be stored as columns. Functions must be
pure: a replay runs them again, and windows share states.

Guarantee: an exception in a user's function, or a state of another shape, fails the batch with an error
that names the aggregate, the function, the group, the window and the place in the user's code; stored state
is unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tidegate.errors import BatchFailed, FlowError, in_one_line, shortened
from tidegate.window.aggregate.fold import fold

if TYPE_CHECKING:
    from tidegate.window.aggregate.closing import Stretches

State = tuple[Any, ...]
#: Describes the group and window of a stretch for error messages.
Naming = Callable[[int], str]


@dataclass(frozen=True)
class Udaf:
    """The user's functions; `fields` are the names of the values in a state."""

    name: str
    zero: Callable[[], State]
    update: Callable[..., State]
    finish: Callable[[State], Any]
    fields: tuple[str, ...]
    merge: Callable[[State, State], State] | None = None

    def __post_init__(self) -> None:
        if not self.fields:
            raise FlowError(
                f"Aggregate {self.name!r}: the state has no fields",
                code="AGGREGATOR_STATE_EMPTY",
                why="Nothing about the rows of a window could be stored",
                do='Declare the state as in state = "n long, total double"',
            )


def pane_states(udaf: Udaf, columns: Sequence[Any], cells: Stretches, naming: Naming) -> list[State]:
    """The state of every cell (the rows of one group and pane). Columns are anything that can be sliced."""
    return [_of_rows(udaf, columns, cells, k, naming) for k in range(cells.count)]


def merged_states(
    udaf: Udaf, states: Sequence[State | None], stretches: Stretches, naming: Naming
) -> Iterator[State]:
    """The state of every stretch, given the states of panes in merged order."""
    if udaf.merge is None:
        raise FlowError(
            f"Aggregate {udaf.name!r} has no merge",
            code="AGGREGATOR_MERGE_MISSING",
            why="The state of a window is merged from those of its panes",
            do="Keep the rows of windows, or give it a merge",
        )
    merged = fold(udaf.merge, states, stretches)
    for k in range(stretches.count):
        with _Blame(udaf, "merge", k, naming) as blame:
            state = next(merged)
            blame.check(state)
        yield state  # type: ignore[misc]  # checked above


def finish_states(
    udaf: Udaf, states: Sequence[State | None], windows: Stretches, naming: Naming
) -> list[Any]:
    """The result of every window, given the states of panes in merged order."""
    results: list[Any] = []
    for k, state in enumerate(merged_states(udaf, states, windows, naming)):
        with _Blame(udaf, "finish", k, naming):
            results.append(udaf.finish(state))
    return results


def finish_rows(udaf: Udaf, columns: Sequence[Any], windows: Stretches, naming: Naming) -> list[Any]:
    """The result of every window, given its rows, by group and time."""
    results: list[Any] = []
    for k in range(windows.count):
        state = _of_rows(udaf, columns, windows, k, naming)
        with _Blame(udaf, "finish", k, naming):
            results.append(udaf.finish(state))
    return results


def failure(udaf: Udaf, role: str, about: str, got: str, do: str) -> BatchFailed:
    """The error of a batch in which a user's function failed."""
    return BatchFailed(
        f"Aggregate {udaf.name!r} failed in {role}, for {about}",
        code="AGGREGATOR_FAILED",
        got=got,
        why="The batch was not committed; stored state is unchanged",
        do=f"{do} and start the query again",
    )


def _of_rows(udaf: Udaf, columns: Sequence[Any], stretches: Stretches, k: int, naming: Naming) -> State:
    rows = slice(int(stretches.begin[k]), int(stretches.end[k]))
    with _Blame(udaf, "zero", k, naming):
        state = udaf.zero()
    with _Blame(udaf, "update", k, naming) as blame:
        state = udaf.update(state, *(column[rows] for column in columns))
        blame.check(state)
    return state


class _Blame:
    """Turns an exception raised inside into an error that names the function and the window."""

    def __init__(self, udaf: Udaf, role: str, k: int, naming: Naming) -> None:
        self._udaf, self._role, self._k, self._naming = udaf, role, k, naming

    def __enter__(self) -> _Blame:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, BatchFailed):
            raise self._failure(in_one_line(error), "Correct the method") from error

    def check(self, state: Any) -> None:
        fields = self._udaf.fields
        if not isinstance(state, tuple) or len(state) != len(fields):
            do = f"Return a tuple of {len(fields)}: {', '.join(fields)}"
            raise self._failure(f"the state {shortened(repr(state))}", do)

    def _failure(self, got: str, do: str) -> BatchFailed:
        return failure(self._udaf, self._role, self._naming(self._k), got, do)
