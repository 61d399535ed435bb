"""Finds pairs of sets with enough common items without an index: bitsets, compared a block of rows at a time.

Paper: selective join, experiments (non-indexed overlap joins).

A stored set is one column of an array of 64-bit words, so the same word of neighbouring rows is adjacent.
Only the non-empty words of a probing row matter: five items touch at most five words, whatever the
universe. A block of stored rows is compared word by word, several rows per instruction, into one flag per
row. Then eight flags are tested at a time, and most groups of eight are empty:

    words of the probing row   w₁ w₂              flags of a block   0000 0000 │ 0010 0001 │ 0000 0000 …
    stored rows of the block   AND, population count, add, ≥         skip        two pairs    skip

Guarantee: as in `pair_finders.py`; Jaccard is decided by integers (`similarity.py`).
Cost: a comparison per stored row in range.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.join.kernel_types import NEW_TIMES, NUMBER, POSITIONS, WORDS, inlined, kernel, population_count
from tidegate.join.sets.item_sets import ItemSets, bitsets
from tidegate.join.sets.pair_finders import Chunk, checked_ranges, in_chunks, range_lengths
from tidegate.join.sets.similarity import least_common
from tidegate.join.sets.thresholds import Jaccard, Overlap

#: Stored rows compared before pairs are written; their words and flags stay in the L1 cache.
_BLOCK = 1024
#: Common items are counted in 32 bits.
_MOST = 2**31 - 1


@dataclass(frozen=True)
class Bitsets:
    """Overlap or Jaccard without an index."""

    condition: Overlap | Jaccard

    def prepare(self, stored: ItemSets) -> PreparedBitsets:
        return PreparedBitsets(self.condition, stored, bitsets(stored.bounds, stored.items, stored.universe))


@dataclass(frozen=True, eq=False)
class PreparedBitsets:
    """Stored rows as bitsets."""

    condition: Overlap | Jaccard
    stored: ItemSets
    words: NDArray[np.uint64]

    @property
    def nbytes(self) -> int:
        return self.words.nbytes + self.stored.nbytes

    def find(
        self, probing: ItemSets, starts: NDArray[np.int64], ends: NDArray[np.int64], at_most: int
    ) -> Iterator[Chunk]:
        starts, ends = checked_ranges(probing, self.stored, starts, ends, at_most)
        # One entry: the threshold is the same for all sizes.
        least = np.array([min(self.condition.at_least, _MOST)], np.int64)
        if isinstance(self.condition, Jaccard):
            sizes = probing.sizes.max(initial=0) + self.stored.sizes.max(initial=0)
            least = least_common(self.condition, int(sizes))
        sets = probing.bounds, probing.items, probing.sizes, self.words, self.stored.sizes

        def step(row: int, place: int, rows: Any, places: Any) -> tuple[int, int, int]:
            found: tuple[int, int, int] = _find(*sets, starts, ends, least, row, place, rows, places)
            return found

        return in_chunks(step, len(probing), int(range_lengths(starts, ends).sum()), at_most)


@inlined
def _own_words(items: Any, begin: Any, end: Any, at: Any, masks: Any) -> Any:
    """The non-empty words of a row, padded to an even number: the loops below take two at a time."""
    used, word = 0, -1
    for place in range(begin, end):
        item = items[place]
        if item >> 6 != word:
            word = item >> 6
            at[used], masks[used] = word, np.uint64(0)
            used += 1
        masks[used - 1] |= np.uint64(1) << np.uint64(item & 63)
    if used % 2:
        at[used], masks[used] = at[used - 1], np.uint64(0)
        used += 1
    return used


@inlined
def _two_words(stored: Any, at: Any, masks: Any, pair: Any, place: Any, size: Any, common: Any) -> Any:
    """Add the items that two words have in common with a block; the first two words start the count."""
    first, second = masks[pair], masks[pair + 1]
    left = stored[at[pair], place : place + size]
    right = stored[at[pair + 1], place : place + size]
    if pair == 0:
        for one in range(size):
            common[one] = np.int32(
                population_count(first & left[one]) + population_count(second & right[one])
            )
    else:
        for one in range(size):
            common[one] += np.int32(
                population_count(first & left[one]) + population_count(second & right[one])
            )


@inlined
def _flag_two_words(stored: Any, at: Any, masks: Any, place: Any, size: Any, enough: Any, flags: Any) -> Any:
    """For rows of two words: no count needs to be kept."""
    first, second, least = masks[0], masks[1], np.uint64(enough)
    left = stored[at[0], place : place + size]
    right = stored[at[1], place : place + size]
    for one in range(size):
        common = population_count(first & left[one]) + population_count(second & right[one])
        flags[one] = np.uint8(common >= least)


@inlined
def _flag(common: Any, size: Any, own: Any, sizes: Any, place: Any, least: Any, flags: Any) -> Any:
    if least.size == 1:
        enough = np.int32(least[0])
        for one in range(size):
            flags[one] = np.uint8(common[one] >= enough)
    else:
        others = sizes[place : place + size]
        for one in range(size):
            flags[one] = np.uint8(common[one] >= least[own + others[one]])


@inlined
def _write(flags: Any, eights: Any, size: Any, place: Any, found: Any, places: Any) -> Any:
    """Write the places of the flags that are set; return their number and the place to continue from."""
    for one in range(size, (size + 7) // 8 * 8):
        flags[one] = 0
    room = places.size - found >= size
    for eight in range((size + 7) // 8):
        if eights[eight] == 0:
            continue
        if room:
            for one in range(8 * eight, min(8 * eight + 8, size)):
                if flags[one]:
                    places[found] = place + one
                    found += 1
        else:
            for one in range(8 * eight, min(8 * eight + 8, size)):
                if flags[one]:
                    if found == places.size:
                        return found, place + one
                    places[found] = place + one
                    found += 1
    return found, place + size


@kernel(
    POSITIONS,
    POSITIONS,
    POSITIONS,
    WORDS,
    POSITIONS,
    POSITIONS,
    POSITIONS,
    POSITIONS,
    NUMBER,
    NUMBER,
    NEW_TIMES,
    NEW_TIMES,
)
def _find(
    bounds: Any,
    items: Any,
    own_sizes: Any,
    stored: Any,
    sizes: Any,
    starts: Any,
    ends: Any,
    least: Any,
    row: Any,
    place: Any,
    rows: Any,
    places: Any,
) -> Any:
    """Continue at `place` of `row` until both arrays are full; return the pairs and where to continue."""
    most = min((bounds[1:] - bounds[:-1]).max(), stored.shape[0]) + 1
    at, masks = np.empty(most, np.int64), np.empty(most, np.uint64)
    common, flags = np.empty(_BLOCK, np.int32), np.empty(_BLOCK, np.uint8)
    eights = flags.view(np.uint64)
    found = 0
    while row < starts.size:
        place, end = max(place, starts[row]), ends[row]
        begin, first = bounds[row], found
        used = 0
        if place < end and (least.size > 1 or bounds[row + 1] - begin >= least[0]):
            used = _own_words(items, begin, bounds[row + 1], at, masks)
        while used and place < end:
            size = min(_BLOCK, end - place)
            if used == 2 and least.size == 1:
                _flag_two_words(stored, at, masks, place, size, least[0], flags)
            else:
                for pair in range(0, used, 2):
                    _two_words(stored, at, masks, pair, place, size, common)
                _flag(common, size, own_sizes[row], sizes, place, least, flags)
            found, reached = _write(flags, eights, size, place, found, places)
            if reached < place + size:
                rows[first:found] = row
                return found, row, reached
            place = reached
        rows[first:found] = row
        row, place = row + 1, 0
    return found, row, 0
