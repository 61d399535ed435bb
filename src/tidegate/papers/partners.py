"""The exact answer of a windowed equality join, straight from the finished data, to judge an engine by.

Sort the right side by (key, time) and count, for every left row, the right rows of its key whose time lies
in the window, by two binary searches. No state, no batches: the order in which rows came plays no part.

    right.ts   ----[ left.ts - stays_right ......... left.ts ......... left.ts + stays_left ]----

Guarantee of `judge`: an answer is called exact only if every pair is a true pair, none comes twice, and
there are as many as there must be; so it is the whole answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Side:
    """Keys and times (microseconds) of one input; a row's number is its place."""

    key: Ints
    time_us: Ints
    #: Which rows take part; the others have no partners.
    counts: NDArray[np.bool_]


@dataclass(frozen=True)
class Stay:
    """How long each side's rows stay joinable: `-left_us <= left.ts - right.ts <= right_us`."""

    left_us: int
    right_us: int


@dataclass(frozen=True)
class Verdict:
    """What a left join's output is worth."""

    pairs: int
    pairs_exact: int
    #: Pairs that are no pairs of the exact answer.
    false_pairs: int
    #: Output rows, pairs or unmatched ones, that came more than once.
    repeated: int
    #: Left rows given out as unmatched, and those that truly are.
    unmatched: int
    unmatched_exact: int
    #: Left rows given out as unmatched although they have a partner.
    false_unmatched: int

    @property
    def exact(self) -> bool:
        """Every pair is there once and nothing else; unmatched rows may still be waiting for their time."""
        wrong = self.false_pairs + self.repeated + self.false_unmatched
        return wrong == 0 and self.pairs == self.pairs_exact

    @property
    def waiting(self) -> int:
        """Left rows without a partner that were not given out, because one might still have come."""
        return self.unmatched_exact - self.unmatched


def count_partners(left: Side, right: Side, stay: Stay) -> Ints:
    """How many partners each left row has; both ends of the window are inside."""
    rows = np.flatnonzero(right.counts)
    order = rows[np.lexsort((right.time_us[rows], right.key[rows]))]
    ladder = _packed(right.key[order], right.time_us[order])
    first = np.searchsorted(ladder, _packed(left.key, left.time_us - stay.right_us), side="left")
    past = np.searchsorted(ladder, _packed(left.key, left.time_us + stay.left_us), side="right")
    return np.where(left.counts, past - first, 0).astype(np.int64)


def judge(left: Side, right: Side, stay: Stay, left_row: Ints, right_row: Ints) -> Verdict:
    """Judge output rows, given as row numbers of both sides; `right_row` is -1 in an unmatched row."""
    partners = count_partners(left, right, stay)
    alone = right_row < 0
    lonely, one, other = left_row[alone], left_row[~alone], right_row[~alone]
    apart = left.time_us[one] - right.time_us[other]
    true_pair = (
        (left.key[one] == right.key[other])
        & (-stay.left_us <= apart)
        & (apart <= stay.right_us)
        & left.counts[one]
        & right.counts[other]
    )
    pairs = one * len(right.key) + other
    return Verdict(
        pairs=len(pairs),
        pairs_exact=int(partners.sum()),
        false_pairs=int((~true_pair).sum()),
        repeated=(len(pairs) - len(np.unique(pairs))) + (len(lonely) - len(np.unique(lonely))),
        unmatched=len(lonely),
        unmatched_exact=int((partners == 0).sum()),
        false_unmatched=int((partners[lonely] > 0).sum()),
    )


def _packed(key: Ints, time_us: Ints) -> NDArray[Any]:
    """(key, time) as one sortable value: complex numbers compare by real, then by imaginary part."""
    packed = np.empty(len(key), dtype=np.complex128)
    # Times of today need 51 bits: exact in a double, as are keys below 2**53.
    packed.real, packed.imag = key, time_us
    return packed
