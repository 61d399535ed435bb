"""What the first batch is going to cost, from its keys alone: nothing is stored yet, so nothing has to move.

Balancers learn from what a batch did, and so the first batch of a skewed stream lands where hashing puts it.
What it stored then has to move. But its keys can be counted before any row is stored (`spark/first_look.py`),
and a key with l left rows and r right ones will find

    l · r · reach / span        pairs a batch, once its windows are full

where `span` is the time that the batch covers and `reach` how far apart two times may lie. Where the batch
covers very little time (or windows never end) that would be too many to be true: at most `FULL_MOST` · l · r.

Only heavy keys are counted one by one; of all others a balancer is told their rows, and no pairs. A key that
is heavy on one side and not told on the other has some rows there as well, or none: it is taken to have what
a key of that side has in the mean (`rows_of_others`), because all rows of its heavy side will look for them.
Guarantee: a pure function of the counts, which do not depend on the order of rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tidegate.control.loads import of_sides
from tidegate.join.within import Tumbling, Within
from tidegate.route.hash import partition_of
from tidegate.route.load import Load, Work
from tidegate.values import LEFT, RIGHT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tidegate.join.within import Unbounded

#: Windows may be this many times as long as the first batch: beyond it pairs outweigh all else anyway.
FULL_MOST = 8.0
#: A key with less than this part of the rows that are counted together, or with fewer rows, is not worth a
#: word; and at most so many are told. Pairs grow with the square of rows: where keys are a little uneven
#: (Zipf 0.5), those with a few ten-thousandths of the rows make the heaviest instance a fifth heavier than an
#: even share.
SHARE, ROWS_LEAST, KEYS_MAX = 2e-4, 8, 1024
#: Newton's steps until a mean is known well enough, wherever it lies.
_STEPS = 16


def heavy_keys(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Which of the keys with so many rows are told one by one."""
    heavy = np.flatnonzero(rows >= max(SHARE * float(rows.sum()), ROWS_LEAST))
    return heavy[np.argsort(-rows[heavy], kind="stable")[:KEYS_MAX]]


def rows_of_others(rows: NDArray[np.int64], heavy: NDArray[np.int64]) -> float:
    """Rows of a key in the mean, without the heavy ones.

    Keys that have no row were not counted. Were rows by chance one key's or another's, λ to a key, those with
    rows would have λ / (1 - e^-λ) of them each, which is known.
    """
    count = rows.size - heavy.size
    if not count:
        return 0.0
    each = (float(rows.sum()) - float(rows[heavy].sum())) / count
    if each <= 1:
        return 0.0
    mean = each
    for _ in range(_STEPS):
        mean -= (mean - each * (1 - math.exp(-mean))) / (1 - each * math.exp(-mean))
    return mean


@dataclass(frozen=True)
class SideSeen:
    """The rows that the first batch has for one side of a join."""

    #: Rows of each base partition; rows without a key count for nothing.
    partitions: NDArray[np.int64]
    #: Heavy keys and their rows.
    keys: dict[int, int]
    #: The time that the rows cover; None where there are none.
    span_us: tuple[int, int] | None
    #: Rows that a key which is not among the heavy ones has in the mean.
    usual: float = 0.0


def load_ahead(seen: tuple[SideSeen, SideSeen], within: Within | Tumbling | Unbounded) -> Load:
    """The load of a batch like this one, once windows are full, of both sides together."""
    pairs = _full(seen, within)
    arrived = np.stack([side.partitions for side in seen])
    codes = np.array(sorted({*seen[LEFT].keys, *seen[RIGHT].keys}), np.uint64)
    of_keys = np.array([[side.keys.get(code, 0) for code in codes.tolist()] for side in seen], np.int64)
    likely = [np.where(rows > 0, rows, side.usual) for rows, side in zip(of_keys, seen, strict=True)]
    matches = np.rint(likely[LEFT] * likely[RIGHT] * pairs).astype(np.int64)
    homes = partition_of(codes, arrived.shape[1])
    found = np.bincount(homes, matches, arrived.shape[1]).astype(np.int64)
    # Rows that look at stored rows of one side are new rows of the other.
    base, keys = Work(arrived, arrived[::-1], found), Work(of_keys, of_keys[::-1], matches)
    return Load(0, base, codes=codes, homes=homes, keys=keys)


def loads_ahead(
    seen: tuple[SideSeen, SideSeen], within: Within | Tumbling | Unbounded, groups: int
) -> tuple[Load, ...]:
    """The same for each group of instances: one that stores both sides, or one for each."""
    both = load_ahead(seen, within)
    if groups == 1:
        return (both,)
    return tuple(_group(both, (side,)) for side in (LEFT, RIGHT))


def _group(load: Load, sides: Sequence[int]) -> Load:
    """What the instances that store these sides do: half of the pairs, those that are found here."""
    base, keys = (of_sides(work, sides) for work in (load.partitions, load.keys))
    halves = (Work(work.stored, work.probes, work.matches // 2) for work in (base, keys))
    return Load(load.batch, next(halves), codes=load.codes, homes=load.homes, keys=next(halves))


def _full(seen: tuple[SideSeen, SideSeen], within: Within | Tumbling | Unbounded) -> float:
    """Pairs that a batch finds in full windows, over left rows times right rows of a key."""
    spans = [side.span_us for side in seen if side.span_us is not None]
    span_us = max(1, max(last for _, last in spans) - min(first for first, _ in spans)) if spans else 1
    if isinstance(within, Within):
        return min(FULL_MOST, (within.left_us + within.right_us + 1) / span_us)
    return min(FULL_MOST, within.size_us / span_us) if isinstance(within, Tumbling) else FULL_MOST
