"""What the first batch is going to cost, from its keys alone: nothing is stored yet, so nothing has to move.

Balancers learn from what a batch did, and so the first batch of a skewed stream lands where hashing puts it.
What it stored then has to move. But its keys can be counted before any row is stored
(`driver/engine/skew_scan.py`), and a key with l left rows and r right ones will find

    l · r · reach / span        pairs a batch, once its windows are full

where `span` is the time that the batch covers and `reach` how far apart two times may lie. Where the batch
covers very little time (or windows never end) that would be too many to be true: at most `FULL_MOST` · l · r.
So many rows are then stored, too. Where few rows of one side meet many stored ones of the other, the work of
a key swings with the luck of those few (`route/auto/work_costs.py`), and such a key is better split.

Only heavy keys are told one by one (`first_count.py`, by a sketch); of all others a balancer is told their
rows, and no pairs. A key that is heavy on one side and not told on the other has some rows there as well, or
none: it is taken to have what a key of that side has in the mean (`usual`), because all rows of its heavy
side will look for them.
Guarantee: a pure function of the counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tidegate.control.balance.loads import of_sides
from tidegate.join.within import Tumbling, Within
from tidegate.model.times import LEFT, RIGHT
from tidegate.route.hash_routing import partition_of
from tidegate.route.key_counts import SideSeen
from tidegate.route.load import Load, LoadWork

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tidegate.join.within import Unbounded

#: Windows may be this many times as long as the first batch: beyond it pairs outweigh all else anyway.
FULL_MOST = 8.0


def load_ahead(seen: tuple[SideSeen, SideSeen], within: Within | Tumbling | Unbounded) -> Load:
    """The load of a batch like this one, once windows are full, of both sides together."""
    held = _batches_held(seen, within)
    arrived = np.stack([side.partitions for side in seen])
    codes = np.array(sorted({*seen[LEFT].keys, *seen[RIGHT].keys}), np.uint64)
    likely = np.array([[side.keys.get(code, side.usual) for code in codes.tolist()] for side in seen])
    matches = np.rint(likely[LEFT] * likely[RIGHT] * held.sum()).astype(np.int64)
    homes = partition_of(codes, arrived.shape[1])
    found = np.bincount(homes, matches, arrived.shape[1]).astype(np.int64)
    # Rows that look at stored rows of one side are new rows of the other.
    base, keys = (
        LoadWork(new * held, new[::-1], pairs) for new, pairs in ((arrived, found), (likely, matches))
    )
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
    halves = (LoadWork(work.stored, work.probes, work.matches // 2) for work in (base, keys))
    return Load(load.batch, next(halves), codes=load.codes, homes=load.homes, keys=next(halves))


def _batches_held(
    seen: tuple[SideSeen, SideSeen], within: Within | Tumbling | Unbounded
) -> NDArray[np.float64]:
    """Shape (2, 1): batches like this one that either side will hold, and rows of the other will meet."""
    spans = [side.span_us for side in seen if side.span_us is not None]
    span_us = max(1, max(last for _, last in spans) - min(first for first, _ in spans)) if spans else 1
    if isinstance(within, Within):
        # Rows of the very same time meet as well.
        held = np.array([[within.left_us + 0.5], [within.right_us + 0.5]]) / span_us
    else:
        size = within.size_us / span_us if isinstance(within, Tumbling) else FULL_MOST
        held = np.full((2, 1), size / 2)
    return np.asarray(held * min(1.0, FULL_MOST / held.sum()))
