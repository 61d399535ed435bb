"""The folder in which a server publishes sifters for its edge nodes, and the nodes write their counts.

    sifter-000007.json    (or .bin)  version 7; the newest complete one applies
    counts-NODE.json                 the counts of NODE so far, over all versions; overwritten repeatedly

Both sides write by atomic rename and read what is present, so neither waits for the other. Counts only
grow. Offered rows are counted before anything is dropped, so the throttler z always refers to the volume
before filtering. The folder may be on any file system that supports a checkpoint.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import dataclass

from tidegate.errors import FlowError, StateError
from tidegate.model.codec import decode, encode
from tidegate.sift.filter.sifter import Sifter
from tidegate.state.store.store import open_store

#: Number of versions kept; older ones are deleted, as a slow node reads the newest anyway.
VERSIONS_KEPT = 8
_SIFTER_FILE = re.compile(r"sifter-(\d{6,})\.(json|bin)")
_COUNTS_FILE = re.compile(r"counts-(.+)\.json")


@dataclass(frozen=True)
class NodeCounts:
    """Counts of the rows offered to a node; the lists are by region of `version` only."""

    node: str
    version: int
    offered: int = 0
    kept: int = 0
    dropped: int = 0
    sampled: int = 0
    #: Kept because a sifted column had no value.
    unplaced: int = 0
    #: Lines that were not rows; not counted as offered.
    bad: int = 0
    regions_offered: tuple[int, ...] = ()
    regions_dropped: tuple[int, ...] = ()
    regions_sampled: tuple[int, ...] = ()


@dataclass(frozen=True)
class Newest:
    """The newest usable sifter, if there is one; and unusable files with the reason."""

    sifter: Sifter | None
    damaged: dict[str, str]


def publish(directory: str, sifter: Sifter, *, binary: bool = False) -> str:
    """Publish a sifter for the nodes and delete old versions; return the name of its file."""
    store = open_store(directory)
    name = f"sifter-{sifter.version:06d}.{'bin' if binary else 'json'}"
    text = json.dumps(sifter.to_json(), indent=1, ensure_ascii=False) + "\n"
    store.write_atomic(name, sifter.to_bytes() if binary else text.encode())
    for old in _versions(store.list())[VERSIONS_KEPT:]:
        store.delete(old[1])
    return name


def newest(directory: str, above: int = -1, passed_over: Collection[str] = ()) -> Newest:
    """The newest sifter with a version above `above`; files in `passed_over` are not read again."""
    store = open_store(directory)
    damaged: dict[str, str] = {}
    for version, name in _versions(store.list()):
        if version <= above:
            break
        if name in passed_over:
            continue
        try:
            sifter = Sifter.read(store.read(name))
            if sifter.version == version:
                return Newest(sifter, damaged)
            damaged[name] = f"it says that it is version {sifter.version}"
        except (FlowError, StateError) as error:
            damaged[name] = str(error)
    return Newest(None, damaged)


def write_counts(directory: str, counts: NodeCounts) -> None:
    open_store(directory).write_atomic(f"counts-{counts.node}.json", encode(counts) + b"\n")


def counts_of(directory: str, node: str) -> NodeCounts | None:
    """The counts that a node has written; None if there are none yet."""
    store, name = open_store(directory), f"counts-{node}.json"
    if not store.exists(name):
        return None
    try:
        return decode(NodeCounts, store.read(name))
    except ValueError as error:
        raise StateError(
            f"The counts of node {node} are damaged: {name}",
            code="SIFT_COUNTS_DAMAGED",
            got=error,
            why="The admit ratio cannot be computed without them",
            do="Delete the file; the node writes a new one",
        ) from error


def offered(directory: str) -> NodeCounts:
    """The sum over all nodes; the lists are by region of the newest version that any node runs."""
    found = [_COUNTS_FILE.fullmatch(name) for name in open_store(directory).list()]
    nodes = [counts_of(directory, name.group(1)) for name in found if name]
    counted = [counts for counts in nodes if counts is not None]
    version = max((counts.version for counts in counted), default=-1)
    current = [counts for counts in counted if counts.version == version]

    def by_region(name: str) -> tuple[int, ...]:
        return tuple(map(sum, zip(*(getattr(counts, name) for counts in current), strict=True)))

    totals = ("offered", "kept", "dropped", "sampled", "unplaced", "bad")
    return NodeCounts(
        "all",
        version,
        *(sum(getattr(counts, name) for counts in counted) for name in totals),
        *(by_region(f"regions_{name}") for name in ("offered", "dropped", "sampled")),
    )


def _versions(names: list[str]) -> list[tuple[int, str]]:
    """Sifter files by version, the newest first."""
    found = (_SIFTER_FILE.fullmatch(name) for name in names)
    return sorted(((int(name.group(1)), name.group(0)) for name in found if name), reverse=True)
