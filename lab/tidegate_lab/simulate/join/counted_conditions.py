"""Counting matches without an index: rows against ranges of stored rows, for equality and set overlap.

Paper: selective join, experiments (non-indexed overlap joins, equality joins on single values).

A row's join value is one column of an array of 64-bit words: a bitset of its items (overlap), or one code
(equality). A comparison is an AND and a population count per word. The same word of neighbouring rows lies
side by side, so the processor compares several rows in one step. Counts come back per probing row and range:
what each basic window yielded is what the adaptations learn from.

Guarantee: exactly the pairs of the ranges given; a set without items never overlaps, and items that repeat
within a set count once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numba import types
from numpy.typing import NDArray

from tidegate.errors import StateError
from tidegate.join.kernel_types import NUMBER, WORDS, inlined, kernel, population_count
from tidegate.join.sets.thresholds import Overlap
from tidegate_lab.simulate.join.basic_windows import Ranges

_PLACES = types.Array(types.int64, 2, "C", readonly=True, aligned=False)


class Condition(Protocol):
    """Decides which rows match, by their join values."""

    def count(self, probing: NDArray[np.uint64], stored: NDArray[np.uint64], ranges: Ranges) -> Any:
        """Matches per probing row and range."""


@dataclass(frozen=True)
class Equality:
    """The same code."""

    def count(
        self, probing: NDArray[np.uint64], stored: NDArray[np.uint64], ranges: Ranges
    ) -> NDArray[np.int64]:
        _check(probing, stored, ranges)
        counts: NDArray[np.int64] = _count_equal(probing, stored, *_places(ranges))
        return counts


@dataclass(frozen=True)
class CountedOverlap(Overlap):
    """At least so many common items, counted on bitsets."""

    def count(
        self, probing: NDArray[np.uint64], stored: NDArray[np.uint64], ranges: Ranges
    ) -> NDArray[np.int64]:
        _check(probing, stored, ranges)
        counts: NDArray[np.int64] = _count_overlaps(probing, stored, *_places(ranges), self.at_least)
        return counts


def codes(values: NDArray[Any]) -> NDArray[np.uint64]:
    """Single values as join values of one word."""
    return np.ascontiguousarray(values, np.int64).view(np.uint64)[None, :]


def _check(probing: NDArray[np.uint64], stored: NDArray[np.uint64], ranges: Ranges) -> None:
    """Compiled loops do not look where they read: what does not fit together must not reach them."""
    outside = ranges.starts.size and (ranges.starts.min() < 0 or ranges.ends.max() > stored.shape[1])
    if probing.shape != (stored.shape[0], ranges.starts.shape[0]) or outside:
        raise StateError(
            "Probing rows, stored rows and ranges do not fit together",
            code="LAB_ARRAYS_INCONSISTENT",
            got=f"probing {probing.shape}, stored {stored.shape}, ranges of {ranges.starts.shape}",
            why="Join values have a word per line and a row per column; ranges lie within stored rows",
        )


def _places(ranges: Ranges) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return np.ascontiguousarray(ranges.starts), np.ascontiguousarray(ranges.ends)


@inlined
def _count_two_words(first: Any, second: Any, stored: Any, start: Any, end: Any, least: Any) -> Any:
    """For 65 to 128 items: without an inner loop over words the compiler takes many rows at a time."""
    found = 0
    for place in range(np.uint64(start), np.uint64(end)):  # unsigned: no test for "counted from the end"
        common = population_count(first & stored[0, place]) + population_count(second & stored[1, place])
        found += int(common >= least)
    return found


@inlined
def _count_words(probing: Any, row: Any, stored: Any, start: Any, end: Any, least: Any) -> Any:
    found = 0
    for place in range(np.uint64(start), np.uint64(end)):
        common = np.uint64(0)
        for word in range(np.uint64(stored.shape[0])):
            common += population_count(probing[word, row] & stored[word, place])
        found += int(common >= least)
    return found


@kernel(WORDS, WORDS, _PLACES, _PLACES, NUMBER)
def _count_overlaps(probing: Any, stored: Any, starts: Any, ends: Any, at_least: Any) -> Any:
    counts = np.empty(starts.shape, np.int64)
    least = np.uint64(at_least)
    for row in range(starts.shape[0]):
        for age in range(starts.shape[1]):
            start, end = starts[row, age], ends[row, age]
            if stored.shape[0] == 2:
                first, second = probing[0, row], probing[1, row]
                counts[row, age] = _count_two_words(first, second, stored, start, end, least)
            else:
                counts[row, age] = _count_words(probing, row, stored, start, end, least)
    return counts


@kernel(WORDS, WORDS, _PLACES, _PLACES)
def _count_equal(probing: Any, stored: Any, starts: Any, ends: Any) -> Any:
    counts = np.empty(starts.shape, np.int64)
    for row in range(starts.shape[0]):
        code = probing[0, row]
        for age in range(starts.shape[1]):
            found = 0
            for place in range(np.uint64(starts[row, age]), np.uint64(ends[row, age])):
                found += int(stored[0, place] == code)
            counts[row, age] = found
    return counts
