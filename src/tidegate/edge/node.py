"""`Node`: the sifter running on this machine, its counts, and the folder that it follows.

Between two pieces of input, and while no input arrives, the node checks for a newer sifter and writes its
counts, which name the sifter that it runs. A newer sifter has its own regions, so the counters by region
restart; totals continue. A node that restarts under its old name continues from the counts it left, and says
so if they are not all; where it cannot read them, it begins another incarnation. A folder that cannot be read
or written for a while only delays both."""

from __future__ import annotations

import secrets
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from tidegate.edge.node_counts import NodeCounts
from tidegate.edge.sifter_folder import SifterFolder
from tidegate.errors import TidegateError
from tidegate.sift.filter.decision import Counters, Gate
from tidegate.sift.filter.sifter import Sifter

#: Interval at which the folder is checked and written to.
TICK_SECONDS = 0.5


class Node:
    """Decides about rows, counts them, and follows a folder if given."""

    def __init__(
        self,
        name: str,
        sifter: Sifter,
        folder: SifterFolder | None = None,
        *,
        report: Callable[[str], None] = lambda text: None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.name = name
        self._folder, self._report, self._clock = folder, report, clock
        self._checked_at = clock() - TICK_SECONDS
        #: Whether the folder could not be used the last time.
        self._in_trouble = False
        self.bad = 0
        left = None if folder is None else folder.counts_of(name)
        begun = NodeCounts(name, secrets.token_hex(8), *sifter.order)
        #: Counts under earlier sifters, without regions.
        if left is not None:
            left = replace(left, ended=False, broken=left.broken + (not left.ended))
        self._past: NodeCounts = begun if left is None else left
        counters = _left_under(sifter, self._past)
        self.gate: Gate = Gate(
            sifter, seed=zlib.crc32(name.encode()) << 32, position=self._past.offered, counters=counters
        )
        if counters is not None:
            self._past = _changed_by(self._past, counters, -1)

    @property
    def sifter(self) -> Sifter:
        return self.gate.sifter

    def decide(self, columns: Sequence[NDArray[np.float64]]) -> NDArray[np.uint8]:
        """DROP, KEEP or SAMPLE for every row, given one array per axis of the sifter."""
        return self.gate.decide(columns)

    def counts(self) -> NodeCounts:
        counted = self.gate.counters
        epoch, version = self.sifter.order
        return replace(
            _changed_by(self._past, counted, 1),
            epoch=epoch,
            version=version,
            bad=self._past.bad + self.bad,
            regions_offered=tuple(counted.offered.tolist()),
            regions_dropped=tuple(counted.dropped.tolist()),
            regions_sampled=tuple(counted.sampled.tolist()),
        )

    def tick(self) -> None:
        """Between two pieces: load a newer sifter and write the counts, if the interval has passed."""
        if self._folder is None or self._clock() - self._checked_at < TICK_SECONDS:
            return
        self._checked_at = self._clock()
        self._meet(self._folder)

    def close(self) -> NodeCounts:
        """Write and return the final counts."""
        if self._folder is not None:
            self._meet(self._folder, takes=False)
        return self.counts()

    def _meet(self, folder: SifterFolder, *, takes: bool = True) -> None:
        try:
            newer = folder.newest(self.sifter.order) if takes else None
            if newer is not None:
                self._change(newer)
            folder.write_counts(replace(self.counts(), ended=not takes))
            self._in_trouble = False
        except (OSError, TidegateError) as error:
            if not self._in_trouble:
                self._report(f"the folder of --follow cannot be used: {error}")
            self._in_trouble = True

    def _change(self, sifter: Sifter) -> None:
        self._past, self.bad = self.counts(), 0
        self.gate = Gate(sifter, seed=self.gate.seed, position=self.gate.position)
        self._report(f"sifter version {sifter.version}: {sifter.regions.count} regions, z = {sifter.z:g}")


def _left_under(sifter: Sifter, left: NodeCounts) -> Counters | None:
    """The counters by region that a node left, if it ran the same sifter."""
    same = left.order == sifter.order and len(left.regions_offered) == sifter.regions.count
    return left.counters if same else None


def _changed_by(counts: NodeCounts, counted: Counters, sign: int) -> NodeCounts:
    """The totals with the rows of these counters, or without them; no counts by region."""
    offered, dropped, sampled = (
        sign * int(c.sum()) for c in (counted.offered, counted.dropped, counted.sampled)
    )
    return replace(
        counts,
        offered=counts.offered + offered,
        kept=counts.kept + offered - dropped,
        dropped=counts.dropped + dropped,
        sampled=counts.sampled + sampled,
        regions_offered=(),
        regions_dropped=(),
        regions_sampled=(),
    )
