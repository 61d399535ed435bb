"""The exact answer of a windowed join, straight from the finished data, to judge an engine by.

Sort the right side by (key, time) and count, for every left row, the right rows of its key whose time lies
in the window, by two binary searches. No state, no batches: the order in which rows came plays no part.

    right.ts   ----[ left.ts - stays_right ......... left.ts ......... left.ts + stays_left ]----

Where keys need not be equal but close, that is done for every key that is close to that of the left row.

Guarantee of `judge`: an answer is called exact only if every pair is a true pair, none comes twice, and
there are as many as there must be; so it is the whole answer.

The exact answer of the city's windows, straight from the finished data, to judge an engine by.

A window may be missing, as a whole and only so many in a row; one that is there must be right.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class WindowAnswers:
    """Rows of windows: start, district, how many orders and what they paid."""

    start_us: Ints
    district: Ints
    orders: Ints
    fares: NDArray[np.float64]


@dataclass(frozen=True)
class WindowVerdict:
    """What the windows of an output are worth."""

    #: Windows that came out, and those that did not although later ones did.
    windows: int
    missing: int
    #: Most of them in a row.
    longest_gap: int
    #: Rows that differ from the exact answer, are not in it, or are missing in a window that is there.
    wrong: int


def summed_up(time_us: Ints, district: Ints, fare: NDArray[np.float64], size_us: int) -> WindowAnswers:
    """All windows of these orders."""
    start = time_us - time_us % size_us
    keys, group = np.unique(np.stack([start, district]), axis=1, return_inverse=True)
    sums = np.bincount(group, weights=fare, minlength=keys.shape[1]).astype(np.float64)
    return WindowAnswers(keys[0], keys[1], np.bincount(group, minlength=keys.shape[1]), sums)


def judge_windows(exact: WindowAnswers, found: WindowAnswers, size_us: int) -> WindowVerdict:
    """What came out, against all there are."""
    there = np.unique(found.start_us)
    expected = np.isin(exact.start_us, there)
    right = {
        (start, district): (orders, fares)
        for start, district, orders, fares in zip(
            *(column[expected] for column in (exact.start_us, exact.district, exact.orders, exact.fares)),
            strict=True,
        )
    }
    wrong = 0
    for start, district, orders, fares in zip(
        found.start_us, found.district, found.orders, found.fares, strict=True
    ):
        # A row that comes twice finds nothing the second time.
        count, paid = right.pop((start, district), (-1, 0.0))
        wrong += not (count == orders and np.isclose(paid, fares))
    gaps = np.diff(there) // size_us - 1
    return WindowVerdict(there.size, int(gaps.sum()), int(gaps.max(initial=0)), wrong + len(right))


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


class Nearness(Protocol):
    """Which keys go together; equal ones, where nothing else is said."""

    def close(self, left: Ints, right: Ints) -> NDArray[np.bool_]: ...

    def around(self, key: Ints) -> Iterable[Ints]:
        """All keys that go with these, one array after the other; -1 where there is none."""
        ...


class Equal:
    """A key goes with itself."""

    def close(self, left: Ints, right: Ints) -> NDArray[np.bool_]:
        return np.asarray(left == right)

    def around(self, key: Ints) -> Iterable[Ints]:
        return [key]


@dataclass(frozen=True)
class Verdict:
    """What an inner join's output is worth."""

    pairs: int
    pairs_exact: int
    #: Pairs that are no pairs of the exact answer.
    false_pairs: int
    #: Pairs that came more than once.
    repeated: int

    @property
    def right(self) -> bool:
        """Every pair that is there belongs there, once."""
        return self.false_pairs + self.repeated == 0

    @property
    def exact(self) -> bool:
        """And none is missing."""
        return self.right and self.pairs == self.pairs_exact


def count_partners(left: Side, right: Side, stay: Stay) -> Ints:
    """How many partners each left row has; both ends of the window are inside."""
    rows = np.flatnonzero(right.counts)
    order = rows[np.lexsort((right.time_us[rows], right.key[rows]))]
    ladder = _packed(right.key[order], right.time_us[order])
    first = np.searchsorted(ladder, _packed(left.key, left.time_us - stay.right_us), side="left")
    past = np.searchsorted(ladder, _packed(left.key, left.time_us + stay.left_us), side="right")
    return np.where(left.counts, past - first, 0).astype(np.int64)


def judge(
    left: Side, right: Side, stay: Stay, left_row: Ints, right_row: Ints, near: Nearness | None = None
) -> Verdict:
    """Judge pairs, given as row numbers of both sides."""
    near = near or Equal()
    exact = 0
    for key in near.around(left.key):
        exact += int(count_partners(Side(key, left.time_us, left.counts & (key >= 0)), right, stay).sum())
    apart = left.time_us[left_row] - right.time_us[right_row]
    true_pair = (
        near.close(left.key[left_row], right.key[right_row])
        & (-stay.left_us <= apart)
        & (apart <= stay.right_us)
        & left.counts[left_row]
        & right.counts[right_row]
    )
    pairs = left_row * len(right.key) + right_row
    return Verdict(
        pairs=len(pairs),
        pairs_exact=exact,
        false_pairs=int((~true_pair).sum()),
        repeated=len(pairs) - len(np.unique(pairs)),
    )


def _packed(key: Ints, time_us: Ints) -> NDArray[Any]:
    """(key, time) as one sortable value: complex numbers compare by real, then by imaginary part."""
    packed = np.empty(len(key), dtype=np.complex128)
    # Times of today need 51 bits: exact in a double, as are keys below 2**53.
    packed.real, packed.imag = key, time_us
    return packed
