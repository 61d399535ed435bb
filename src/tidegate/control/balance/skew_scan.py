"""Load of the first batch, estimated from its keys before any row is stored, so that nothing has to move.

Balancers learn from finished batches, so the first batch of a skewed stream would be placed by hashing and
its rows moved later. Instead its keys are counted first (`driver/engine/skew_scan.py`). A key with l left
rows and r right ones is expected to find

    l · r · reach / span        pairs a batch, once its windows are full

where `span` is the time that the batch covers and `reach` the length of time in which partners of a row lie;
at most `FULL_MOST` · l · r, because the formula is too high for a very short span or windows without an end.
The stored rows are estimated likewise, from how long a row is kept. If few rows of one side probe many stored
ones of the other, the work of a key varies with those few (`route/auto/work_costs.py`), and such a key is
better split.

Only heavy keys are counted one by one, by a sketch (`route/frequent_keys.py`); for all others the balancer
gets row counts without pairs. A key that is heavy on one side and not counted on the other is assumed to have
the mean number of rows there (`usual`), because all rows of its heavy side will probe them.

Guarantee: a pure function of the counts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tidegate.control.balance.loads import of_sides
from tidegate.join.within import Tumbling, Unbounded, Within
from tidegate.model.times import LEFT, RIGHT
from tidegate.route.hash_routing import partition_of
from tidegate.route.key_counts import SideSeen
from tidegate.route.load import Load, LoadWork

#: Largest length of windows relative to the first batch: beyond it pairs dominate anyway.
FULL_MOST = 8.0


def load_ahead(seen: tuple[SideSeen, SideSeen], within: Within | Tumbling | Unbounded) -> Load:
    """The expected load of a batch like this one with full windows, of both sides together."""
    held, probed = _batches_held(seen, within)
    arrived = np.stack([side.partitions for side in seen])
    codes = np.array(sorted({*seen[LEFT].keys, *seen[RIGHT].keys}), np.uint64)
    likely = np.array([[side.keys.get(code, side.usual) for code in codes.tolist()] for side in seen])
    matches = np.rint(likely[LEFT] * likely[RIGHT] * probed).astype(np.int64)
    homes = partition_of(codes, arrived.shape[1])
    found = np.bincount(homes, matches, arrived.shape[1]).astype(np.int64)
    # Rows that probe stored rows of one side are new rows of the other.
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
    """The load of instances that store these sides: half of the pairs, those that are found here."""
    base, keys = (of_sides(work, sides) for work in (load.partitions, load.keys))
    halves = (LoadWork(work.stored, work.probes, work.matches // 2) for work in (base, keys))
    return Load(load.batch, next(halves), codes=load.codes, homes=load.homes, keys=next(halves))


def _batches_held(
    seen: tuple[SideSeen, SideSeen], within: Within | Tumbling | Unbounded
) -> tuple[NDArray[np.float64], float]:
    """Batches like this one that either side stores, of shape (2, 1), and that rows of both probe."""
    spans = [side.span_us for side in seen if side.span_us is not None]
    span_us = max(1, max(last for _, last in spans) - min(first for first, _ in spans)) if spans else 1
    if isinstance(within, Within):
        # Rows of equal time match as well.
        kept, probed = (np.array(one)[:, None] + 0.5 for one in (within.kept_us, within.probed_us))
        held, met = kept / span_us, float(probed.sum()) / span_us
    else:
        size = within.size_us / span_us if isinstance(within, Tumbling) else FULL_MOST
        held, met = np.full((2, 1), size / 2), size
    return np.asarray(held * min(1.0, FULL_MOST / held.sum())), min(met, FULL_MOST)
