"""The initial skew scan: counts the keys of a query's first rows before any of them is stored.

`control/balance/skew_scan.py` explains why. It is one small job without a shuffle: each task reports how many
rows of each port every partition gets, and the heavy keys (`route/key_counts.py`). A task reads its first
rows only, so the scan of a large batch costs no more than that of a small one. What follows in a partition
usually has later times, so counts and their time span shrink alike. A run with a single batch skips the scan,
because it would cost more than it saves.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame

from tidegate.control.balance import balancing
from tidegate.control.balance.balancing import BalanceSettings
from tidegate.driver.compile import ports
from tidegate.driver.compile.compiled import Compiled
from tidegate.driver.frames.grafts import first_rows
from tidegate.driver.frames.stream_rows import StreamRows
from tidegate.model.manifest import Manifest
from tidegate.route.key_counts import SideCount, SideSeen
from tidegate.worker.runtime.key_scan import KeyScan
from tidegate.worker.runtime.layout import CODE, REPORT, TAG, TIME

#: The most rows of a port that a task reads: a key with 1 in 500 of them is counted to 10 %.
ROWS = 50_000


class SkewScan:
    """Scans the first batch with rows, for joins that sources feed on both sides."""

    def __init__(self, compiled: Compiled, settings: BalanceSettings):
        self._settings = settings
        #: By join that sources feed on both sides.
        self._joins = {
            join.name: join
            for join in compiled.joins
            if compiled.streaming and all(side.from_source for side in join.inputs)
        }

    def at(self, batch: StreamRows, manifest: Manifest) -> dict[str, tuple[SideSeen, SideSeen]]:
        """The key counts of the batch, for joins without state whose placement can use them."""
        joins = {
            name: self._joins[name]
            for name in balancing.scans_keys_first(self._settings, manifest)
            if name in self._joins
        }
        entries = [entry for join in joins.values() for entry in join.entries]
        frames = [frame for entry in entries if (frame := batch.scanned(entry)) is not None]
        if not frames:
            return {}
        ports_of = {name: tuple(side.port.tag for side in join.inputs) for name, join in joins.items()}
        tags = {tag for both in ports_of.values() for tag in both}
        seen = self._counted(frames, tags)
        if any(side.partitions.any() for side in seen.values()):
            self._joins = {}
        found = {name: (seen[left], seen[right]) for name, (left, right) in ports_of.items()}
        return {name: both for name, both in found.items() if any(side.partitions.any() for side in both)}

    def _counted(self, frames: Sequence[DataFrame], tags: set[int]) -> dict[int, SideSeen]:
        """The one job: the counts by tag."""
        counting = KeyScan(frozenset(tags), self._settings.partitions)
        scanned = ports.union([first_rows(frame.select(TAG, TIME, CODE), ROWS) for frame in frames])
        reports = scanned.mapInArrow(counting, f"{REPORT} string").collect()
        return _added_up([json.loads(row[REPORT]) for row in reports], tags, self._settings.partitions)


def _added_up(
    reports: Sequence[Mapping[str, Mapping[str, Any]]], tags: set[int], partitions: int
) -> dict[int, SideSeen]:
    """The counts of all tasks together, by tag."""
    counts = {tag: SideCount(partitions) for tag in tags}
    for one in reports:
        for tag, raw in one.items():
            counts[int(tag)].merge(SideCount.from_json(raw))
    return {tag: count.seen() for tag, count in counts.items()}
