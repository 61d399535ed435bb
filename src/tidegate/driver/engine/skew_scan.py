"""The initial skew scan: counts the keys of a query's first rows before any of them is stored.

`control/balance/skew_scan.py` explains why. It is one small job without a shuffle: each task reports how many
rows of each port every partition gets, and the heavy keys (`route/key_counts.py`). The batch is persisted for
the pass that follows, so that sources are read and observed once. A run with a single batch skips the scan,
because it would cost more than it saves.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame

from tidegate.control.balance import balancing
from tidegate.control.balance.balancing import BalanceSettings
from tidegate.driver.compile.compiled import Compiled
from tidegate.model.manifest import Manifest
from tidegate.route.key_counts import SideCount, SideSeen
from tidegate.worker.runtime.key_scan import KeyScan
from tidegate.worker.runtime.layout import CODE, REPORT, TAG, TIME


class SkewScan:
    """Scans the first batch with rows, for joins that sources feed on both sides."""

    def __init__(self, compiled: Compiled, settings: BalanceSettings):
        self._settings = settings
        #: By join: the tags of its two ports.
        self._ports = {
            join.name: tuple(side.port.tag for side in join.inputs)
            for join in compiled.joins
            if compiled.streaming and all(side.from_source for side in join.inputs)
        }
        self._kept: DataFrame | None = None

    def at(self, given: DataFrame, manifest: Manifest) -> dict[str, tuple[SideSeen, SideSeen]]:
        """The key counts of the batch, for joins without state whose placement can use them."""
        ports = {
            name: self._ports[name]
            for name in balancing.scans_keys_first(self._settings, manifest)
            if name in self._ports
        }
        tags = {tag for both in ports.values() for tag in both}
        if not tags:
            return {}
        self._kept = given.persist(StorageLevel.MEMORY_AND_DISK)
        counting = KeyScan(frozenset(tags), self._settings.partitions)
        reports = given.select(TAG, TIME, CODE).mapInArrow(counting, f"{REPORT} string").collect()
        seen = _added_up([json.loads(row[REPORT]) for row in reports], tags, self._settings.partitions)
        if any(side.partitions.any() for side in seen.values()):
            self._ports = {}
        sides = {name: (seen[left], seen[right]) for name, (left, right) in ports.items()}
        return {name: both for name, both in sides.items() if any(side.partitions.any() for side in both)}

    def release(self) -> None:
        """Unpersist the batch."""
        if self._kept is not None:
            self._kept.unpersist()
            self._kept = None


def _added_up(
    reports: Sequence[Mapping[str, Mapping[str, Any]]], tags: set[int], partitions: int
) -> dict[int, SideSeen]:
    """The counts of all tasks together, by tag."""
    counts = {tag: SideCount(partitions) for tag in tags}
    for one in reports:
        for tag, raw in one.items():
            counts[int(tag)].merge(SideCount.from_json(raw))
    return {tag: count.seen() for tag, count in counts.items()}
