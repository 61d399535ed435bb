"""Finds the waiting rows of some groups in a stored run, without reading the rest of it.

The rows of a run are sorted by (code, check, time, tie). Windows consume the rows of a group in that order,
and the watermark finalises them in that order. So in every run the waiting rows of a group are contiguous:

    a group's rows in a run     ● ● ● ● ●   ○ ○ ○ ○   ○ ○ ○
                                consumed  │ waiting │ above the watermark

Consumed rows have their bit set, in the layout of `np.packbits(…, bitorder="little")`. Groups are searched
in the order of the run, so each search continues where the last one ended, in doubling steps.

Cost: log2 of the rows between two searched groups, whatever the groups in between hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numba import types
from numpy.typing import NDArray

from tidegate.window.aggregate.merge_runs import LOWEST, PartialRun, merge_runs
from tidegate.window.kernel_types import INTEGERS, NEW_INTEGERS, NUMBER, WORDS, inlined, kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

Words: TypeAlias = NDArray[np.uint64]
Integers: TypeAlias = NDArray[np.int64]
_BITS = types.Array(types.uint8, 1, "C", readonly=True, aligned=False)


@dataclass(frozen=True)
class WaitingGroups:
    """Groups by code and check code, in that order, each once."""

    code: Words
    check: Words

    def between(self, first: np.uint64, last: np.uint64) -> slice:
        """The groups with codes from `first` to `last`."""
        begin, end = np.searchsorted(self.code, first), np.searchsorted(self.code, last, "right")
        return slice(int(begin), int(end))


class WaitingRows(NamedTuple):
    """Per group: its waiting rows in a run, begin … end − 1."""

    begin: Integers
    end: Integers

    def rows(self, chosen: NDArray[np.bool_]) -> Integers:
        """Positions of the waiting rows of the chosen groups, ascending."""
        begin, counts = self.begin[chosen], (self.end - self.begin)[chosen]
        before = np.cumsum(counts) - counts
        positions: Integers = np.arange(counts.sum()) + np.repeat(begin - before, counts)
        return positions


def groups_with_rows(runs: Sequence[PartialRun], low: int, high: int) -> WaitingGroups:
    """The groups that have a row with `low <= time < high`."""
    merged = merge_runs(runs, low, high)
    first = np.flatnonzero(np.diff(merged.group, prepend=-1))
    rows = merged.order[first]
    code, check = (
        np.concatenate([np.zeros(0, np.uint64), *columns])[rows]
        for columns in ([run.code for run in runs], [run.check for run in runs if run.check is not None])
    )
    return WaitingGroups(code, check)


def waiting_rows(
    run: PartialRun,
    slices: Sequence[tuple[int, int]],
    consumed: NDArray[np.uint8],
    groups: WaitingGroups,
    below: int,
) -> WaitingRows:
    """The waiting rows of these groups in the slices of a run: not consumed, and of a time below `below`."""
    begin, end = np.zeros((2, groups.code.size), np.int64)
    assert run.check is not None
    for start, stop in slices:
        if start < stop:
            asked = groups.between(run.code[start], run.code[stop - 1])
            wanted = groups.code[asked], groups.check[asked]
            rows = run.code, run.check, run.at, consumed
            _find(*rows, start, stop, *wanted, below, begin[asked], end[asked])
    return WaitingRows(begin, end)


@inlined
def _is_before(code: Any, check: Any, time: Any, row: Any, at: Any) -> Any:
    if code[row] != at[0]:
        return code[row] < at[0]
    if check[row] != at[1]:
        return check[row] < at[1]
    return time[row] < at[2]


@inlined
def _first(code: Any, check: Any, time: Any, row: Any, stop: Any, at: Any) -> Any:
    """The first row from `row` on that is not before the code, check code and time `at`."""
    step = 1
    low, high = row, row
    while high < stop and _is_before(code, check, time, high, at):
        low, high = high + 1, min(stop, high + step)
        step *= 2
    while low < high:
        middle = (low + high) // 2
        if _is_before(code, check, time, middle, at):
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def _first_unset(bits: Any, low: Any, high: Any) -> Any:
    """The first row whose bit is not set, where all set bits come first."""
    while low < high:
        middle = (low + high) // 2
        if (bits[middle >> 3] >> (middle & 7)) & 1:
            low = middle + 1
        else:
            high = middle
    return low


@kernel(WORDS, WORDS, INTEGERS, _BITS, NUMBER, NUMBER, WORDS, WORDS, NUMBER, NEW_INTEGERS, NEW_INTEGERS)
def _find(
    code: Any,
    check: Any,
    time: Any,
    consumed: Any,
    start: Any,
    stop: Any,
    group_code: Any,
    group_check: Any,
    below: Any,
    begins: Any,
    ends: Any,
) -> None:
    row = start
    for group in range(group_code.size):
        key, other = group_code[group], group_check[group]
        row = _first(code, check, time, row, stop, (key, other, LOWEST))
        end = _first(code, check, time, row, stop, (key, other, below))
        begins[group], ends[group] = _first_unset(consumed, row, end), end
        row = end
