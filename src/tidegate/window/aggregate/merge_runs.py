"""Merges several sorted runs of partials into one order: by group, then by pane.

New partials of a batch and stored ones of earlier batches are runs, each sorted by (code, check, pane).
They are merged pairwise, so that every row is touched log2(runs) times and no run is sorted again:

    run 0   a3 a4 b1      ┐
    run 1   a3 c7         ┘─┐   a3 a3 a4 a4 b1 b2 c7       equal keys stay in the order of their runs
    run 2   a4 b2         ───┘

A group is a 64-bit code of its key. Where codes of different keys may collide, a second, independent code
(`check`) separates them; a collision of both has probability 2**-128. The result is positions in the
concatenation of all runs, so that a column of any type can be brought into the order by one `take`.

Guarantee: the order of `np.lexsort((tie, at, check, code))` over the concatenated runs, for sorted runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import StateError
from tidegate.window.kernel_types import (
    INTEGERS,
    KEYS,
    NEW_INTEGERS,
    NEW_KEYS,
    NEW_WORDS,
    NUMBER,
    WORD,
    WORDS,
    kernel,
)

Words: TypeAlias = NDArray[np.uint64]
Integers: TypeAlias = NDArray[np.int64]
LOWEST, HIGHEST = -(2**63), 2**63 - 1
#: Flipping this bit gives signed integers the order of unsigned words.
SIGN = np.uint64(2**63)


@dataclass(frozen=True)
class PartialRun:
    """The keys of rows sorted by (code, check, at, tie); `check` and `tie` in all runs or in none."""

    code: Words
    #: The pane of a partial; for count windows the event time of a row.
    at: Integers
    check: Words | None = None
    #: Orders rows of equal group and time, where needed.
    tie: Integers | None = None

    def __post_init__(self) -> None:
        columns = [column for column in (self.code, self.check, self.at, self.tie) if column is not None]
        if len({column.size for column in columns}) > 1:
            raise StateError(
                "The key columns of a run differ in length",
                code="WINDOW_RUN_INVALID",
                got=[column.size for column in columns],
            )

    @property
    def codes(self) -> int:
        """The number of key columns that identify a group."""
        return 1 if self.check is None else 2

    @property
    def columns(self) -> tuple[Words, ...]:
        """The key columns in order of precedence; integers unchanged, but typed as words."""
        columns = self.code, self.check, self.at, self.tie
        return tuple(np.ascontiguousarray(one).view(np.uint64) for one in columns if one is not None)


@dataclass(frozen=True)
class Merged:
    """Rows of all runs in one order: row k is row `order[k]` of the concatenated runs."""

    order: Integers
    #: Numbered from 0 in the order of codes; rows of one group are adjacent.
    group: Integers
    at: Integers

    @property
    def groups(self) -> int:
        return int(self.group[-1]) + 1 if self.group.size else 0


def merge_runs(runs: Sequence[PartialRun], low: int = LOWEST, high: int = HIGHEST) -> Merged:
    """All rows with `low <= at < high`, in order: the rows that closing windows need."""
    _check(runs)
    if not runs:
        return Merged(*np.zeros((3, 0), np.int64))
    keys, rows, edges = _selected(runs, low, high)
    merge = _MERGE[len(keys)]
    # Two tables in alternation: allocating memory for each round would cost as much as merging.
    spare = np.empty_like(keys), np.empty_like(rows)
    while edges.size > 2:
        merge(keys, rows, edges, *spare)
        keys, rows, spare = *spare, (keys, rows)
        edges = np.append(edges[:-1:2], edges[-1])
    group = spare[1]
    _groups(keys, runs[0].codes, group)
    return Merged(rows, group, keys[runs[0].codes].view(np.int64))


def _check(runs: Sequence[PartialRun]) -> None:
    if len({(run.check is None, run.tie is None) for run in runs}) > 1:
        raise StateError(
            "Either all runs must have check codes (and ties), or none",
            code="WINDOW_RUNS_DIFFER",
            got=[f"check: {run.check is not None}, tie: {run.tie is not None}" for run in runs],
            why="Otherwise their rows have no common order",
        )


def _selected(runs: Sequence[PartialRun], low: int, high: int) -> tuple[Words, Integers, Integers]:
    """Keys and positions of the rows in range, run by run, and where each run begins and ends.

    Keys have a line per key column, as words in the order of rows.
    """
    total = sum(run.at.size for run in runs)
    rows, edges = np.empty(total, np.int64), np.zeros(len(runs) + 1, np.int64)
    offset = 0
    for k, run in enumerate(runs):
        edges[k + 1] = _inside(np.ascontiguousarray(run.at), low, high, offset, rows, edges[k])
        offset += run.at.size
    rows = rows[: edges[-1]]
    keys, offset = np.empty((len(runs[0].columns), rows.size), np.uint64), 0
    for k, run in enumerate(runs):
        part = slice(edges[k], edges[k + 1])
        for line, column in enumerate(run.columns):
            flip = SIGN if line >= run.codes else np.uint64(0)
            _fetch(column, rows[part], offset, flip, keys[line, part])
        offset += run.at.size
    return keys, rows, edges


@kernel(INTEGERS, NUMBER, NUMBER, NUMBER, NEW_INTEGERS, NUMBER)
def _inside(at: Any, low: Any, high: Any, offset: Any, rows: Any, found: Any) -> Any:
    """Write the positions of the rows in range from place `found` on; return the first place beyond."""
    for row in range(at.size):
        if low <= at[row] < high:
            rows[found] = row + offset
            found += 1
    return found


@kernel(WORDS, INTEGERS, NUMBER, WORD, NEW_WORDS)
def _fetch(column: Any, rows: Any, offset: Any, flip: Any, line: Any) -> None:
    for k in range(rows.size):
        line[k] = column[rows[k] - offset] ^ flip


def _merger(lines: int) -> Any:
    """Merges neighbouring runs pairwise; compiled per number of key columns, so loops over them unroll."""

    @kernel(KEYS, INTEGERS, INTEGERS, NEW_KEYS, NEW_INTEGERS)
    def merge(keys: Any, rows: Any, edges: Any, new_keys: Any, new_rows: Any) -> None:
        # Unsigned places: numba would check a signed index for a negative value at every access.
        k, step = np.uint64(0), np.uint64(1)
        for run in range(0, edges.size - 1, 2):
            i, j = np.uint64(edges[run]), np.uint64(edges[run + 1])
            i_end, j_end = j, np.uint64(edges[min(run + 2, edges.size - 1)])
            while i < i_end or j < j_end:
                earlier = j == j_end
                if i < i_end and j < j_end:
                    earlier = True
                    for line in range(lines - 1, -1, -1):
                        one, other = keys[line, i], keys[line, j]
                        earlier = one < other or (one == other and earlier)
                row = i if earlier else j
                for line in range(lines):
                    new_keys[line, k] = keys[line, row]
                new_rows[k] = rows[row]
                i += np.uint64(earlier)
                j += np.uint64(not earlier)
                k += step

    return merge


#: By the number of key columns.
_MERGE = {lines: _merger(lines) for lines in (2, 3, 4)}


@kernel(NEW_KEYS, NUMBER, NEW_INTEGERS)
def _groups(keys: Any, codes: Any, group: Any) -> None:
    """Number the group of each row by the first `codes` key columns; restore the sign of the next column."""
    number = 0
    for k in range(keys.shape[1]):
        if k > 0:
            new = False
            for line in range(codes):
                new |= keys[line, k] != keys[line, k - 1]
            number += int(new)
        group[k] = number
        keys[codes, k] ^= SIGN
