"""Decides when two sets of items match by Jaccard similarity or inner product.

Paper: selective join, motivation (similar news items by weighted keywords: a windowed inner product join).
`Overlap` and the thresholds are in `thresholds.py`.

    Jaccard         |a ∩ b| / |a ∪ b| ≥ x        empty sets match nothing
    inner product   Σ w_a · w_b ≥ x              over common items, in ascending order of items

Guarantee: the decision is exactly that of the plain computation in 64-bit floating point, for every pair
finder. For Jaccard, the quotient c / (s − c) of c common items and sizes that sum to s never decreases as c
grows, not even after rounding. So a table gives the least sufficient c for every s, and pairs are decided
by integers. For the inner product all variants add in the same order. A sum that is NaN matches nothing;
negative weights are allowed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import StateError
from tidegate.join.sets.item_sets import ItemSets
from tidegate.join.sets.thresholds import Jaccard, Overlap


def least_common(condition: Overlap | Jaccard, largest: int) -> NDArray[np.int64]:
    """For two sets whose sizes sum to s = 0 … largest: the number of common items that makes a match.

    A number above s / 2, which two sets cannot have in common, means that no pair matches.
    """
    if isinstance(condition, Overlap):
        return np.full(largest + 1, condition.at_least, np.int64)
    share, together = condition.at_least, np.arange(largest + 1)
    least: NDArray[np.int64] = np.maximum(np.floor(share * together / (1 + share)).astype(np.int64) - 2, 1)
    while True:
        short = (least < together) & (least / np.maximum(together - least, 1) < share)
        if not short.any():
            return least
        least += short


def fewest_common(condition: Overlap | Jaccard, largest: int) -> NDArray[np.int64]:
    """For a set of 0 … largest items: the least number of common items in any match of it.

    Jaccard: a match with c common items has at least c items itself, so the best case is a subset.
    """
    least = least_common(condition, 2 * largest)
    sizes = np.arange(largest + 1)
    if isinstance(condition, Overlap):
        return least[sizes]
    # c ≥ least[size + c] holds from some c on, since least grows more slowly than c.
    fewest = np.minimum(sizes, 1)
    while True:
        short = (fewest < sizes) & (fewest < least[sizes + fewest])
        if not short.any():
            return fewest
        fewest += short


def weights_of(sets: ItemSets) -> NDArray[np.float64]:
    """The weights that an inner product needs."""
    if sets.weights is None:
        raise StateError(
            "An inner product needs a weight for every item",
            code="INTERNAL_ARRAYS_INCONSISTENT",
            got="sets without weights",
        )
    return sets.weights
