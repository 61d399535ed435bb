"""Sliding aggregation of values that only Python can merge: sketches, and states of user-defined aggregates.

The same two-stacks algorithm as in `sliding.py`: at most two merges per row and one per stretch, however
far stretches overlap. A merge must not change its arguments, because they are used again, and must be
associative. Nulls are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from tidegate.window.aggregate.closing import Stretches

State = TypeVar("State")


def fold(
    merge: Callable[[State, State], State], values: Sequence[State | None], stretches: Stretches
) -> Iterator[State | None]:
    """The merged value of each stretch in turn; null where there is none.

    An error that `merge` raises propagates from the stretch that needed it.
    """

    def merged(one: State | None, other: State | None) -> State | None:
        if one is None or other is None:
            return other if one is None else one
        return merge(one, other)

    until_mark: dict[int, State | None] = {}
    mark = seen = 0
    since: State | None = None
    for begin, end in zip(stretches.begin.tolist(), stretches.end.tolist(), strict=True):
        if begin >= mark:
            until_mark.clear()
            until: State | None = None
            for row in range(end - 1, begin - 1, -1):
                until = until_mark[row] = merged(values[row], until)
            mark, seen, since = end, end, None
            yield until
        else:
            while seen < end:
                since = merged(since, values[seen])
                seen += 1
            yield merged(until_mark[begin], since)
