"""Which instances get a copy of a new row, and what each does with it.

    store    one instance keeps the row: by lot one of the partitions that its place stores to
    probe    every instance that may hold partners looks for them
    meet     new left rows find new right rows where those are stored

So each pair is found once: by the later row at the one instance that stores the earlier, and in one batch by
the left row where the right one is stored. A left row of a semi join must come out once, however many
partners it has, so it looks at one instance only, and right rows meet it at every instance where it may look.

`spark/routed.py` says it in Spark's language, and is tested against a plain loop over rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.route.hash import partition_of
from tidegate.routing import Routing

#: What an instance does with its copy of a row: bits of a role.
STORE, PROBE, MEET = 1, 2, 4


@dataclass(frozen=True)
class Tables:
    """The places of one side by number: base partitions first, then keys in ascending order of code."""

    #: Codes of the keys with a place of their own, ascending.
    codes: tuple[int, ...]
    #: Per place: the instances that its partitions for new rows lie on, one for each partition.
    stores: tuple[tuple[int, ...], ...]
    #: Per place: the instances that may hold rows, ascending.
    holds: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, routing: Routing, side: int, partitions: int) -> Tables:
        placement = routing.sides[side]
        codes = tuple(sorted(placement.keys))
        places = [placement.base(p) for p in range(partitions)] + [placement.keys[c] for c in codes]
        stores = tuple(tuple(placement.table[p] for p in place.stores) for place in places)
        return cls(codes, stores, tuple(placement.on(place) for place in places))

    def place_of(self, codes: NDArray[np.uint64], partitions: int, keyless: bool) -> NDArray[np.int64]:
        """The number of each key's place. A null key has none of its own, whatever its code looks like."""
        places = partition_of(codes, partitions)
        if not self.codes or keyless:
            return places
        known = np.array(self.codes, np.uint64)
        at = np.minimum(np.searchsorted(known, codes), len(known) - 1)
        return np.where(known[at] == codes, partitions + at, places)
