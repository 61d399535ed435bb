"""`Node`: the sifter running on this machine, its counts, and the folder that it follows.

Between two pieces of input, and while no input arrives, the node checks for a newer sifter and writes its
counts. A newer sifter has its own regions, so the counters by region restart; totals continue. A node that
restarts under its old name continues from the counts it left.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from tidegate.edge.sifter_folder import NodeCounts, counts_of, newest, write_counts
from tidegate.sift.filter.decision import Gate
from tidegate.sift.filter.sifter import Sifter

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Interval at which the folder is checked and written to.
TICK_SECONDS = 0.5


class Node:
    """Decides about rows, counts them, and follows `directory` if given."""

    def __init__(
        self,
        name: str,
        sifter: Sifter,
        directory: str | None = None,
        *,
        report: Callable[[str], None] = lambda text: None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.name = name
        self._directory, self._report, self._clock = directory, report, clock
        self._passed_over: set[str] = set()
        self._checked_at = clock() - TICK_SECONDS
        #: Counts under earlier sifters, without regions.
        self._past = NodeCounts(name, sifter.version)
        self.gate: Gate = Gate(sifter, seed=zlib.crc32(name.encode()) << 32)
        self.bad = 0
        if directory is not None:
            self._go_on(counts_of(directory, name))

    @property
    def sifter(self) -> Sifter:
        return self.gate.sifter

    def decide(self, columns: Sequence[NDArray[np.float64]]) -> NDArray[np.uint8]:
        """DROP, KEEP or SAMPLE for every row, given one array per axis of the sifter."""
        return self.gate.decide(columns)

    def counts(self) -> NodeCounts:
        counted, past = self.gate.counters, self._past
        offered, dropped, sampled = (
            int(c.sum()) for c in (counted.offered, counted.dropped, counted.sampled)
        )
        return NodeCounts(
            self.name,
            self.sifter.version,
            past.offered + offered,
            past.kept + offered - dropped,
            past.dropped + dropped,
            past.sampled + sampled,
            past.unplaced + int(counted.offered[-1]),
            past.bad + self.bad,
            *(tuple(c[:-1].tolist()) for c in (counted.offered, counted.dropped, counted.sampled)),
        )

    def tick(self) -> None:
        """Between two pieces: load a newer sifter and write the counts, if the interval has passed."""
        if self._directory is None or self._clock() - self._checked_at < TICK_SECONDS:
            return
        self._checked_at = self._clock()
        found = newest(self._directory, self.sifter.version, self._passed_over)
        for file, reason in found.damaged.items():
            self._report(f"{file} is skipped: {reason}")
        self._passed_over |= found.damaged.keys()
        if found.sifter is not None:
            self._change(found.sifter)
        write_counts(self._directory, self.counts())

    def close(self) -> NodeCounts:
        """Write and return the final counts."""
        if self._directory is not None:
            write_counts(self._directory, self.counts())
        return self.counts()

    def _change(self, sifter: Sifter) -> None:
        self._past, self.bad = self.counts(), 0
        self.gate = Gate(sifter, seed=self.gate.seed, position=self.gate.position)
        self._report(f"sifter version {sifter.version}: {sifter.regions.count} regions, z = {sifter.z:g}")

    def _go_on(self, left: NodeCounts | None) -> None:
        if left is None:
            return
        self._past = left
        self.gate.position = left.offered
        counted, regions = self.gate.counters, self.sifter.regions.count
        if left.version != self.sifter.version or len(left.regions_offered) != regions:
            return
        counted.offered[:-1] = left.regions_offered
        counted.dropped[:-1] = left.regions_dropped
        counted.sampled[:-1] = left.regions_sampled
        # Counts of the present regions are not part of the past.
        offered, dropped, sampled = (
            int(c.sum()) for c in (counted.offered, counted.dropped, counted.sampled)
        )
        self._past = replace(
            left,
            offered=left.offered - offered,
            kept=left.kept - (offered - dropped),
            dropped=left.dropped - dropped,
            sampled=left.sampled - sampled,
        )
