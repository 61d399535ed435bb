"""The folder in which a server publishes sifters for its edge nodes, and the nodes write their counts.

    sifter-1790000000000000-7.json    (or .bin)  epoch and version; the newest usable one applies
    counts-NODE.json                  the counts of NODE so far, over all sifters; overwritten repeatedly

A run of a query publishes under an epoch of its own, higher than any that it finds: usually the time at which
it began in microseconds, so a newer run wins also where the folder was emptied, and also where clocks step
back. Its versions begin anew.

Both sides write by atomic rename and read what is present, so neither waits for the other. Files that cannot
be used are passed over with a warning (`folder_files.py`). Counts only grow. Offered rows are counted before
anything is dropped, so the throttler z always refers to the volume before filtering. The folder may be on any
file system that supports a checkpoint."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress

from tidegate.edge.folder_files import FolderFiles, names
from tidegate.edge.node_counts import NodeCounts
from tidegate.model.codec import decode, encode
from tidegate.sift.filter.sifter import Sifter
from tidegate.state.store.store import open_store

#: Number of sifters kept; older ones are deleted, as a slow node reads the newest anyway.
KEPT = 8
#: Epochs from here on are no times: later than the year 2250.
EPOCH_END = 2**53
_SIFTER_FILE = re.compile(r"sifter-(\d{1,16})-(\d{1,16})\.(json|bin)")
_COUNTS_FILE = re.compile(r"counts-(.+)\.json", re.DOTALL)


class SifterFolder:
    """The folder as a node or a server sees it; `report` gets a line for every file that is passed over."""

    def __init__(self, url: str, report: Callable[[str], None] = lambda text: None) -> None:
        self._store = open_store(url)
        self._sifters = FolderFiles(self._store, _sifter, report)
        self._counts = FolderFiles(self._store, _node_counts, report)

    def publish(self, sifter: Sifter, *, binary: bool = False) -> str:
        """Publish a sifter for the nodes and delete old ones; return the name of its file."""
        name = f"sifter-{sifter.epoch}-{sifter.version}.{'bin' if binary else 'json'}"
        text = json.dumps(sifter.to_json(), indent=1, ensure_ascii=False) + "\n"
        self._store.write_atomic(name, sifter.to_bytes() if binary else text.encode())
        for _, old in self._in_order()[KEPT:]:
            with suppress(OSError):  # a directory, or not ours
                self._store.delete(old)
        return name

    def newest(self, above: tuple[int, int] = (-1, -1)) -> Sifter | None:
        """The newest usable sifter, if its order is above this one."""
        for order, name in self._in_order():
            if order <= above:
                return None
            if (sifter := self._sifters.value(name)) is not None:
                return sifter
        return None

    def next_epoch(self, now_us: int) -> int:
        """An epoch above that of every sifter in the folder, and of those that nodes run."""
        newest = self.newest()
        known = [0 if newest is None else newest.epoch]
        # Counts alone cannot exhaust the numbers.
        known += [one.epoch for one in self.counts() if one.epoch < EPOCH_END // 2]
        return max(now_us, max(known) + 1)

    def write_counts(self, counts: NodeCounts) -> None:
        self._store.write_atomic(_counts_name(counts.node), encode(counts) + b"\n")

    def counts(self) -> list[NodeCounts]:
        """The counts of all nodes, by name."""
        found = map(self._counts.value, filter(_COUNTS_FILE.fullmatch, sorted(names(self._store))))
        return [counts for counts in found if counts is not None]

    def counts_of(self, node: str) -> NodeCounts | None:
        """The counts that a node has written; None if there are none, or they are damaged."""
        return self._counts.value(_counts_name(node))

    def _in_order(self) -> list[tuple[tuple[int, int], str]]:
        """Files of sifters, the newest first."""
        found = (_SIFTER_FILE.fullmatch(name) for name in names(self._store))
        numbered = (((int(name.group(1)), int(name.group(2))), name.group(0)) for name in found if name)
        return sorted((one for one in numbered if one[0][0] < EPOCH_END), reverse=True)


def _counts_name(node: str) -> str:
    return f"counts-{node}.json"


def _sifter(name: str, content: bytes) -> Sifter:
    sifter = Sifter.read(content)
    if not name.startswith(f"sifter-{sifter.epoch}-{sifter.version}."):
        raise ValueError(f"it says that it is version {sifter.version} of epoch {sifter.epoch}")
    return sifter


def _node_counts(name: str, content: bytes) -> NodeCounts:
    counts = decode(NodeCounts, content)
    if name != _counts_name(counts.node):
        raise ValueError(f"it says that it is of node {counts.node[:100]!r}")
    return counts
