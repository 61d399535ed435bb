"""`NodeCounts`: what a node has counted; and what a server makes of it, which sees files that come and go.

A node that begins anew without the counts it left is another *incarnation* of itself. The server remembers
the counts of each incarnation and uses differences, so that no restart, of a node or of the server, makes
counted rows count again.

Counts that were lost, with a file or because a node was killed, cannot come back. Within a node, what is left
shows rightly how its rows lie in the regions; over all nodes it would lean towards the others. So a node that
lost some weighs as much beside them as it did in the last interval in which all counts were complete."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from tidegate.model.json_values import Snapshot
from tidegate.sift.filter.decision import Counters

#: A node that claims more rows, which are thirty years at a million a second, is not believed.
ROWS_MAX = 10**15
#: Incarnations of a node that are remembered: an old one comes back with a copy of a file.
_REMEMBERED = 4
#: Of more nodes, those whose files have gone are forgotten.
_NODES_MAX = 1000


@dataclass(frozen=True)
class NodeCounts:
    """Counts of the rows offered to a node; the lists are by region of its present sifter only."""

    node: str
    incarnation: str
    #: The sifter that the node runs.
    epoch: int
    version: int
    offered: int = 0
    kept: int = 0
    dropped: int = 0
    sampled: int = 0
    #: Lines that were not rows; not counted as offered.
    bad: int = 0
    regions_offered: tuple[int, ...] = ()
    regions_dropped: tuple[int, ...] = ()
    regions_sampled: tuple[int, ...] = ()
    #: The node ended and wrote all that it counted; and how often it continued without that.
    ended: bool = False
    broken: int = 0

    def __post_init__(self) -> None:
        """ValueError for counts that cannot be."""
        regions = (self.regions_offered, self.regions_dropped, self.regions_sampled)
        rows = (self.offered, self.kept, self.dropped, self.sampled, self.bad)
        numbers = (*rows, self.broken, self.epoch, self.version)
        if not all(0 <= number <= 2**63 - 1 for number in numbers) or self.offered + self.bad > ROWS_MAX:
            raise ValueError("a count is negative, or too large for rows")
        if self.kept + self.dropped != self.offered or self.sampled > self.kept:
            raise ValueError("kept and dropped rows do not add up to those offered")
        if len(set(map(len, regions))) > 1 or min(map(min, filter(None, regions)), default=0) < 0:
            raise ValueError("the counts of regions do not fit together")
        if any(offered < dropped + sampled for offered, dropped, sampled in zip(*regions, strict=True)):
            raise ValueError("a region dropped more rows than it was offered")
        offered, dropped, sampled = map(sum, regions)
        rest = (self.offered - offered, self.dropped - dropped, self.kept - (offered - dropped))
        if min(*rest, self.sampled - sampled) < 0:
            raise ValueError("the regions count more rows than the node")

    @property
    def order(self) -> tuple[int, int]:
        """Of the sifter that the node runs; see `Sifter.order`."""
        return self.epoch, self.version

    @property
    def counters(self) -> Counters:
        """The counts by region."""
        lists = (self.regions_offered, self.regions_dropped, self.regions_sampled)
        return Counters(*(np.array(counts, np.int64) for counts in lists))


@dataclass(frozen=True)
class NodeRows:
    """Rows that nodes were offered, and dropped."""

    #: By node.
    offered: Mapping[str, int] = field(default_factory=dict)
    dropped: int = 0
    #: Nodes that lost counts of rows.
    lacking: frozenset[str] = frozenset()

    @property
    def total(self) -> int:
        """The rows that all nodes were offered."""
        return sum(self.offered.values())


def since(known: Snapshot | None, nodes: Iterable[NodeCounts]) -> tuple[NodeRows, Snapshot]:
    """What was counted since `known` was remembered, and what to remember.

    `known`: by node and incarnation, offered and dropped rows, and how often it was broken off; None: these
    counts are the first that a query sees, and were made before it.
    """
    found: dict[str, dict[str, list[int]]] = {node: dict(one) for node, one in (known or {}).items()}
    offered: dict[str, int] = {}
    dropped, lacking = 0, set()
    for counts in nodes:
        incarnations = found.setdefault(counts.node, {})
        begun_anew = bool(incarnations) and counts.incarnation not in incarnations
        before = incarnations.pop(counts.incarnation, [0, 0, 0 if incarnations else counts.broken])
        # An older copy of a file has smaller counts.
        counted = counts.offered, counts.dropped, counts.broken
        now = [max(both) for both in zip(before, counted, strict=True)]
        lacking |= {counts.node} if begun_anew or now[2] > before[2] else set()
        offered[counts.node], dropped = now[0] - before[0], dropped + now[1] - before[1]
        found[counts.node] = dict([*incarnations.items(), (counts.incarnation, now)][-_REMEMBERED:])
    if len(found) > _NODES_MAX:
        found = {node: one for node, one in found.items() if node in offered}
    return NodeRows() if known is None else NodeRows(offered, dropped, frozenset(lacking)), found


def by_region(
    nodes: Iterable[NodeCounts],
    order: tuple[int, int],
    regions: int,
    lacking: Collection[str] = (),
    usual: Mapping[str, int] | None = None,
) -> Counters:
    """The rows in each region since the sifter of this order was published, over all nodes that run it.

    `lacking`: nodes that lost counts since; `usual`: by node, the rows of an interval in which none did. None
    at all while the weight of a node is not known.
    """
    mine = {one.node: one for one in nodes if one.order == order and len(one.regions_offered) == regions}
    scales = _scales({node: sum(one.regions_offered) for node, one in mine.items()}, lacking, usual or {})
    total = Counters.zero(regions)
    for node, scale in scales.items():
        for counted, more in zip(vars(total).values(), vars(mine[node].counters).values(), strict=True):
            counted += more if scale == 1 else np.rint(more * scale).astype(np.int64)
    return total


def _scales(
    counted: Mapping[str, int], lacking: Collection[str], usual: Mapping[str, int]
) -> dict[str, float]:
    """By node: what its counts are multiplied by; empty while that is not known."""
    short = [node for node in counted if node in lacking]
    if not short:
        return dict.fromkeys(counted, 1.0)
    if any(not counted[node] or not usual.get(node) for node in short):
        return {}
    whole = [node for node in counted if node not in lacking and usual.get(node)]
    # Where all lost some, the one that lost least says for how long they count.
    intervals = (
        sum(counted[node] for node in whole) / sum(usual[node] for node in whole)
        if whole
        else max(counted[node] / usual[node] for node in short)
    )
    return dict.fromkeys(counted, 1.0) | {node: intervals * usual[node] / counted[node] for node in short}
