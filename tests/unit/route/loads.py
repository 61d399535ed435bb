"""Loads for tests of strategies: every key watched, partitions counted from them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tidegate.route.assignment import Assignment
from tidegate.route.fastjoin.imbalance import key_places
from tidegate.route.hash_routing import partition_of
from tidegate.route.load import Load, LoadWork


def mixed_codes(count: int, seed: int = 0) -> NDArray[np.uint64]:
    """So many different codes, well mixed."""
    return np.unique(np.random.default_rng(seed).integers(0, 2**64, 2 * count, dtype=np.uint64))[::2][:count]


def load_of(
    codes: NDArray[np.uint64],
    stored: NDArray[np.int64],
    probes: NDArray[np.int64],
    current: Assignment,
    batch: int = 0,
) -> Load:
    """What a batch would report under `current`; `stored` and `probes` have shape (2, keys)."""
    partitions = len(current.table)
    homes = partition_of(codes, partitions)
    keys = LoadWork(stored, probes, np.zeros(codes.size, np.int64))
    _, own = key_places(codes, homes, current)
    sums: list[NDArray[np.int64]] = [
        np.stack([np.bincount(homes[~own], counts[~own], partitions) for counts in both]).astype(np.int64)
        for both in (stored, probes)
    ]
    base = LoadWork(sums[0], sums[1], np.zeros(partitions, np.int64))
    return Load(batch, base, codes=codes, homes=homes, keys=keys)


def zipf_counts(keys: int, exponent: float, rows: int, seed: int) -> NDArray[np.int64]:
    """Rows of each key, in an order of its own for each seed."""
    shares = np.arange(1, keys + 1, dtype=np.float64) ** -exponent
    random = np.random.default_rng(seed)
    return random.permutation(random.multinomial(rows, shares / shares.sum())).astype(np.int64)


def one_sided(counts: Sequence[int]) -> NDArray[np.int64]:
    """Counts of the left side; the right has nothing."""
    return np.array([list(counts), [0] * len(counts)], np.int64)
