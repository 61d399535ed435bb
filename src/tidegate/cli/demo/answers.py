"""The exact answer of a windowed join, straight from the finished data, to judge an engine by.

Sort the right side by (key, time) and count, for every left row, the right rows of its key whose time lies
in the window, by two binary searches. No state, no batches: the order in which rows came plays no part.

    right.ts   ----[ left.ts - stays_right ......... left.ts ......... left.ts + stays_left ]----

Where keys need not be equal but close, that is done for every key that is close to that of the left row.

Guarantee of `judge`: an answer is called exact only if every pair is a true pair, none comes twice, and
there are as many as there must be; so it is the whole answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

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
