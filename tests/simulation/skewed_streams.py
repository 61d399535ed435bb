"""Small skewed streams for tests: Zipf keys with well mixed codes, batch by batch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidegate_lab.simulate.balance.key_counts import Arrivals, count_arrivals


def mixed(keys: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Key numbers as codes that look random, as hashes do (the finaliser of SplitMix64)."""
    code = (keys.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    code = (code ^ (code >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    code = (code ^ (code >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return code ^ (code >> np.uint64(31))


def zipf(random: np.random.Generator, rows: int, keys: int, skew: float) -> NDArray[np.int64]:
    """Key numbers: rank k with probability proportional to (k + 1) ** -skew."""
    ladder: NDArray[np.float64] = np.cumsum(np.arange(1, keys + 1, dtype=np.float64) ** -skew)
    drawn = np.searchsorted(ladder, random.random(rows) * ladder[-1], side="right")
    return np.asarray(drawn, np.int64)


def zipf_stream(
    skew: float, *, batches: int, rows: int, keys: int = 10_000, seed: int = 7, jump_every: int = 0
) -> Arrivals:
    """Both sides Zipf over the same keys; every `jump_every` batches other keys become the popular ones."""
    random = np.random.default_rng(seed)
    made = []
    for batch in range(batches):
        shift = batch // jump_every * 7919 if jump_every else 0
        left, right = ((zipf(random, rows, keys, skew) + shift) % keys for _ in range(2))
        made.append((mixed(left), mixed(right)))
    return count_arrivals(made)
