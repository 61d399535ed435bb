"""Chooses between index and no index: the pair finder that does less work on these stored rows.

Beyond the selective join paper, which runs indexed and non-indexed joins as separate experiments.

The cost of probing the whole run is estimated from the stored rows alone, in words of bitsets compared:

    bitsets   rows × words that a set touches          at most its items, at most the words of the universe
    lists     4 × items of a set × entries of a list   an entry is read and written twice, and not in order

A probing row is assumed to have items like the stored ones, so popular items are looked up more often: the
mean length of a list is Σ n² / Σ n over lists of n entries, not Σ n / items. Both costs grow alike with the
part of the run that is probed, so the choice does not depend on the probe ratio.

Guarantee: the choice affects speed only; every pair finder returns the same pairs. Measured on sets of
about five items with popularity Zipf(0.8), bitsets win up to 128 items (two words hold a set) and lists
from 200 on. The inner product has no bitsets and always uses lists. A run too wide for bitsets (many items,
small sets) gets lists too.
"""

from __future__ import annotations

import numpy as np

from tidegate.join.sets.bitset_pairs import Bitsets
from tidegate.join.sets.inverted_lists import InvertedLists
from tidegate.join.sets.item_sets import ItemSets
from tidegate.join.sets.pair_finders import PairFinder
from tidegate.join.sets.thresholds import InnerProduct, SetCondition

#: Words of bitsets compared in the time of reading one list entry.
ENTRY_WORDS = 4.0
#: Bitsets may take at most this many times the memory of the sets themselves.
WIDEST = 16


def choose(condition: SetCondition, stored: ItemSets) -> PairFinder:
    """The cheaper pair finder for these rows."""
    if isinstance(condition, InnerProduct) or not stored.items.size:
        return InvertedLists(condition)
    words = -(-stored.universe // 64)
    if len(stored) * words * 8 > WIDEST * stored.items.nbytes:
        return InvertedLists(condition)
    lists, bitsets = probe_costs(stored)
    return InvertedLists(condition) if lists < bitsets else Bitsets(condition)


def probe_costs(stored: ItemSets) -> tuple[float, float]:
    """The cost of one probe of all rows with lists and with bitsets, in words compared."""
    lengths = np.bincount(stored.items, minlength=1).astype(np.float64)
    list_length = float(lengths @ lengths) / max(1.0, float(lengths.sum()))
    size = stored.items.size / max(1, len(stored))
    touched = min(size, -(-stored.universe // 64))
    return ENTRY_WORDS * size * list_length, len(stored) * touched
