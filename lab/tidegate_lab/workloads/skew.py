"""Skewed streams of the routing papers: Zipf keys, the nine groups Gxy, and a city.

Paper: FastJoin, section VI-A. Keys are numbers by popularity; key k (from 0) is drawn with a probability
proportional to (k + 1) ** -exponent, so exponent 0 is uniform. A group "Gxy" has exponent x on the left and y
on the right stream. The paper does not say whether both streams like the same keys; here they do, as in a
city, which is the harder case. It has 300 million rows over 10 million keys a stream; fewer here, and the
most popular key of fewer keys has a larger share (at exponent 1: 8 % of 100,000, 6 % of 10 million).

Rows come as arrays of key codes, a pair (left, right) per batch. Codes are well mixed, and another seed is
another hash function as well as other draws: which heavy keys meet in one instance is luck, and seeds must
differ in it.

Guarantee: the same settings give the same batches.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import FlowError

#: The paper's synthetic groups: name → Zipf exponents of the two streams.
GROUPS = {f"G{x}{y}": (float(x), float(y)) for x in (0, 1, 2) for y in (0, 1, 2)}


@dataclass(frozen=True)
class ZipfStreams:
    """Two streams over the same keys; a larger exponent is more skew."""

    exponents: tuple[float, float] = (1.0, 1.0)
    keys: int = 100_000
    #: Rows of the left and of the right stream in each batch.
    rows: tuple[int, int] = (10_000, 10_000)
    batches: int = 60
    seed: int = 0
    #: So many popular keys are about equally popular: the exponent applies to k + 1 + centre.
    centre: int = 0

    def __post_init__(self) -> None:
        good = self.keys >= 1 and min(*self.exponents, *self.rows, self.batches) >= 0
        good = good and min(self.seed, self.centre) >= 0
        if not good:
            raise FlowError(
                "Streams need at least one key, and nothing about them can be negative",
                code="LAB_WORKLOAD_INVALID",
                got=self,
                do="Give keys >= 1; exponents, rows, batches, centre and seed from 0 on",
            )


Batch = tuple["NDArray[np.uint64]", "NDArray[np.uint64]"]


def with_pairs(streams: ZipfStreams, pairs: float, batches_met: int) -> ZipfStreams:
    """The same streams, both with so many times their rows that a batch has about so many pairs.

    `batches_met`: batches of the other stream that new rows meet, those of both streams together. A hot key's
    pairs grow with the square of its rows, so more skew takes far fewer rows.
    """
    ranks = np.arange(streams.keys) + 1.0 + streams.centre
    left, right = (ranks**-exponent for exponent in streams.exponents)
    together = float((left / left.sum()) @ (right / right.sum()))
    times = math.sqrt(pairs / (batches_met * streams.rows[0] * streams.rows[1] * together))
    return replace(streams, rows=(int(times * streams.rows[0]), int(times * streams.rows[1])))


def key_codes(numbers: NDArray[Any], seed: int = 0) -> NDArray[np.uint64]:
    """Well mixed codes: SplitMix64, started at a place that the seed says. No two keys share a code."""
    code = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + _mixed(
        np.array([seed + 1], np.uint64) * np.uint64(0xD1342543DE82EF95)
    )
    return _mixed(code)


def _mixed(code: NDArray[np.uint64]) -> NDArray[np.uint64]:
    code = (code ^ (code >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    code = (code ^ (code >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return code ^ (code >> np.uint64(31))


def zipf_batches(streams: ZipfStreams) -> Iterator[Batch]:
    """The streams, batch by batch."""
    ladders = [_ladder(streams.keys, exponent, streams.centre) for exponent in streams.exponents]
    for batch in range(streams.batches):
        left, right = (
            key_codes(np.searchsorted(ladder, random.random(rows), side="right"), streams.seed)
            for ladder, rows, random in zip(
                ladders,
                streams.rows,
                (np.random.default_rng([streams.seed, side, batch]) for side in (0, 1)),
                strict=True,
            )
        )
        yield left, right


def jumping_batches(streams: ZipfStreams, every: int) -> Iterator[Batch]:
    """Every so many batches all keys are others, so what was learnt of the hot ones is worth nothing."""
    for batch, (left, right) in enumerate(zipf_batches(streams)):
        # Of another seed: a code of these keys would make one of them 0, the same key after every jump.
        mask = key_codes(np.array([batch // every]), streams.seed + 1)[0]
        yield left ^ mask, right ^ mask


@lru_cache(maxsize=2)  # two streams; 10 million keys are 80 MB
def _ladder(keys: int, exponent: float, centre: int) -> NDArray[np.float64]:
    """Cumulated shares; the last is exactly 1, so that every draw falls on a key."""
    ladder: NDArray[np.float64] = np.cumsum(
        np.arange(1 + centre, 1 + centre + keys, dtype=np.float64) ** -exponent
    )
    ladder /= ladder[-1]
    ladder.flags.writeable = False
    return ladder


def city_streams(rows: tuple[int, int] = (5_000, 45_000), batches: int = 50, seed: int = 0) -> ZipfStreams:
    """Orders (left) and tracks (right) of a city, as skewed as those of the paper's figure 1.

    About 20 % of the places have 80 % of the orders and about 24 % have 80 % of the tracks; the centre is a
    score of places that are about equally busy, as real ones are, and not one that outshines all.
    """
    return ZipfStreams((1.055, 1.013), 20_000, rows, batches, seed, centre=20)


def share_of_top_keys(rows_by_key: NDArray[Any], share_of_rows: float) -> float:
    """The smallest share of the keys that has so much of the rows."""
    ordered = np.sort(rows_by_key)[::-1]
    reached = np.searchsorted(np.cumsum(ordered), share_of_rows * ordered.sum())
    return float(reached + 1) / ordered.size
