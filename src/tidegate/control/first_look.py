"""What the first batch is going to cost, from its keys alone: nothing is stored yet, so nothing has to move.

Balancers learn from what a batch did, and so the first batch of a skewed stream lands where hashing puts it.
What it stored then has to move. But its keys can be counted before any row is stored (`spark/first_look.py`),
and a key with l left rows and r right ones will find

    l · r · reach / span        pairs a batch, once its windows are full

where `span` is the time that the batch covers and `reach` how far apart two times may lie. Where the batch
covers very little time (or windows never end) that would be too many to be true: at most `FULL_MOST` · l · r.

Only heavy keys are told one by one (`first_count.py`, by a sketch); of all others a balancer is told their
rows, and no pairs. A key that is heavy on one side and not told on the other has some rows there as well, or
none: it is taken to have what a key of that side has in the mean (`usual`), because all rows of its heavy
side will look for them.
Guarantee: a pure function of the counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tidegate.control.first_count import SideSeen
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


def load_ahead(seen: tuple[SideSeen, SideSeen], within: Within | Tumbling | Unbounded) -> Load:
    """The load of a batch like this one, once windows are full, of both sides together."""
    pairs = _full(seen, within)
    arrived = np.stack([side.partitions for side in seen])
    codes = np.array(sorted({*seen[LEFT].keys, *seen[RIGHT].keys}), np.uint64)
    likely = np.array([[side.keys.get(code, side.usual) for code in codes.tolist()] for side in seen])
    matches = np.rint(likely[LEFT] * likely[RIGHT] * pairs).astype(np.int64)
    homes = partition_of(codes, arrived.shape[1])
    found = np.bincount(homes, matches, arrived.shape[1]).astype(np.int64)
    base, keys = _work(arrived, found, pairs), _work(likely, matches, pairs)
    return Load(0, base, codes=codes, homes=homes, keys=keys)


def _work(new: NDArray[Any], found: NDArray[np.int64], pairs: float) -> Work:
    """Of so many new rows of each side: half of the pairs are found in stored rows of either.

    Stored rows of full windows, and rows that may come: both say how far a key's work will swing, and one
    that swings is better split.
    """
    stored, rows = np.rint(new * pairs / 2).astype(np.int64), np.ceil(new).astype(np.int64)
    # Rows that look at stored rows of one side are new rows of the other.
    return Work(stored, rows[::-1], found)


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
