"""Exact answers of the demo's join and windows, computed from the finished data, to verify the outputs.

Join: sort the right side by (key, time) and count, for every left row, the right rows of its key whose time
is in the window, by two binary searches. If keys need only be close, do so for every key close to that of the
left row. The order of arrival does not matter.

    right.ts   ----[ left.ts - stays_right ......... left.ts ......... left.ts + stays_left ]----

Guarantee of `judge`: an answer is exact only if every pair is a true pair, none occurs twice, and their
number is right.

Windows: whole windows may be missing, up to the allowed gap; a window that was written must be right.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class WindowAnswers:
    """Rows of windows: start, district, number of orders, sum of fares."""

    start_us: Ints
    district: Ints
    orders: Ints
    fares: NDArray[np.float64]


@dataclass(frozen=True)
class WindowVerdict:
    """The comparison of the windows of an output with the exact answer."""

    #: Windows that were written, and those that are missing before a later one.
    windows: int
    missing: int
    #: The longest run of missing windows.
    longest_gap: int
    #: Rows that differ from the exact answer, are not in it, or are missing in a written window.
    wrong: int
    #: The starts of the missing windows.
    missing_us: tuple[int, ...] = ()

    def missing_before(self, moment_us: int, size_us: int) -> int:
        """Missing windows that were over before this moment."""
        return sum(start + size_us <= moment_us for start in self.missing_us)


def summed_up(time_us: Ints, district: Ints, fare: NDArray[np.float64], size_us: int) -> WindowAnswers:
    """The exact windows of these orders."""
    start = time_us - time_us % size_us
    keys, group = np.unique(np.stack([start, district]), axis=1, return_inverse=True)
    sums = np.bincount(group, weights=fare, minlength=keys.shape[1]).astype(np.float64)
    return WindowAnswers(keys[0], keys[1], np.bincount(group, minlength=keys.shape[1]), sums)


def judge_windows(exact: WindowAnswers, found: WindowAnswers, size_us: int) -> WindowVerdict:
    """Compare the windows that were found with the exact ones."""
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
        # A duplicate row finds nothing the second time.
        count, paid = right.pop((start, district), (-1, 0.0))
        wrong += not (count == orders and np.isclose(paid, fares))
    over = np.unique(exact.start_us[exact.start_us <= there.max(initial=0)])
    missing = np.setdiff1d(over, there)
    # Places of the windows that are there, with one before the first: what lies between two is a gap.
    places = np.append(-1, np.flatnonzero(np.isin(over, there)))
    longest = int((np.diff(places) - 1).max(initial=0))
    return WindowVerdict(there.size, missing.size, longest, wrong + len(right), tuple(missing.tolist()))


@dataclass(frozen=True)
class Side:
    """Keys and times (microseconds) of one input, by row number."""

    key: Ints
    time_us: Ints
    #: Which rows take part in the join.
    counts: NDArray[np.bool_]


@dataclass(frozen=True)
class Stay:
    """How long each side's rows stay joinable: `-left_us <= left.ts - right.ts <= right_us`."""

    left_us: int
    right_us: int


class Nearness(Protocol):
    """Which keys match."""

    def close(self, left: Ints, right: Ints) -> NDArray[np.bool_]: ...

    def around(self, key: Ints) -> Iterable[Ints]:
        """Arrays of the keys that match these; -1 if there is none."""


class Equal:
    """Equal keys match."""

    def close(self, left: Ints, right: Ints) -> NDArray[np.bool_]:
        return np.asarray(left == right)

    def around(self, key: Ints) -> Iterable[Ints]:
        return [key]


@dataclass(frozen=True)
class Verdict:
    """The comparison of an inner join's output with the exact answer."""

    pairs: int
    pairs_exact: int
    #: Pairs that are not in the exact answer.
    false_pairs: int
    #: Pairs that occur more than once.
    repeated: int

    @property
    def right(self) -> bool:
        """Whether every pair is a true pair and occurs once."""
        return self.false_pairs + self.repeated == 0

    @property
    def exact(self) -> bool:
        """Whether the output is right and complete."""
        return self.right and self.pairs == self.pairs_exact


def count_partners(left: Side, right: Side, stay: Stay) -> Ints:
    """The number of matches of each left row; both ends of the window are inclusive."""
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
    # Present times need 51 bits, so they are exact in a double, as are keys below 2**53.
    packed.real, packed.imag = key, time_us
    return packed
