"""Finds the pairs of one instance in one batch: new rows against stored ones, and new against new.

Every pair is found exactly once: by the later of its two rows when they came in different batches, and in
the batch itself by the left row. Pairs are handed on in bounded chunks, so a hot key cannot exhaust memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tidegate.join import probe as kernel
from tidegate.route.hash import partition_bounds, partition_of
from tidegate.spark.assemble import Pairs, same_keys
from tidegate.spark.join_batch import Counts, JoinBatch
from tidegate.spark.runs import NewRun, Run, StoredRun
from tidegate.values import LEFT

#: Pairs handed to Spark at once. Larger: fewer crossings; smaller: less memory when a hot key explodes.
PAIRS_PER_CHUNK = 1 << 18


class Finder:
    """The pairs of one instance; see the module docstring."""

    def __init__(
        self, work: JoinBatch, stored: Sequence[StoredRun], new: Sequence[NewRun], counts: Counts
    ) -> None:
        self._work, self._layout = work, work.layout
        self._stored, self._new, self._counts = stored, new, counts

    def chunks(self) -> Iterator[list[Pairs]]:
        """Pairs in lists of about PAIRS_PER_CHUNK, keys verified."""
        waiting: list[Pairs] = []
        size = 0
        for pairs in self._pairs():
            waiting.append(pairs)
            size += len(pairs)
            if size >= PAIRS_PER_CHUNK:
                yield waiting
                waiting, size = [], 0
        if waiting:
            yield waiting

    def _pairs(self) -> Iterator[Pairs]:
        for run in self._new:
            if run.keyless:
                continue
            low, high = self._layout.within.partner_range(run.side, run.times)
            owned, bounds = partition_bounds(run.codes, self._layout.partitions)
            self._counts.probed[owned] += np.diff(bounds)
            for other in self._opposite(run, int(low.min()), int(high.max())):
                for start, stop in other.slices:
                    ranges = kernel.probe(run.codes, low, high, other.codes, other.times, start, stop)
                    yield from self._found(run, other, ranges, owned, bounds)

    def _opposite(self, run: Run, low: int, high: int) -> Iterator[Run]:
        """Runs of the other side that may hold a partner; new against new only from the left."""
        others: list[Run] = [*self._stored, *(self._new if run.side == LEFT else [])]
        for other in others:
            if (
                other.side != run.side
                and not other.keyless
                and other.first_us <= high
                and other.last_us >= low
            ):
                yield other

    def _found(
        self,
        run: Run,
        other: Run,
        ranges: kernel.Ranges,
        owned: NDArray[np.int64],
        bounds: NDArray[np.int64],
    ) -> Iterator[Pairs]:
        if not len(ranges.rows):
            return
        per_partition = kernel.counts_per_partition(bounds, ranges)
        self._counts.comparisons[owned] += per_partition
        if not self._layout.verify:
            self._counts.matches[owned] += per_partition
        pairs = kernel.Pairs(ranges)
        for begin in range(0, pairs.total, PAIRS_PER_CHUNK):
            mine, theirs = pairs.chunk(begin, min(begin + PAIRS_PER_CHUNK, pairs.total))
            found = Pairs(run, mine, other, theirs) if run.side == LEFT else Pairs(other, theirs, run, mine)
            if self._layout.verify:
                found = found.only(same_keys(found, self._layout.verify))
                np.add.at(
                    self._counts.matches,
                    partition_of(found.left_run.codes[found.left], self._layout.partitions),
                    1,
                )
            if len(found):
                yield found
