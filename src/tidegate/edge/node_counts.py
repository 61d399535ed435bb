"""`NodeCounts`: what a node has counted; and what a server makes of it, which sees files that come and go.

A node that begins anew without the counts it left is another *incarnation* of itself. The server remembers
the counts of each incarnation and uses differences, so that no restart, of a node or of the server, makes
counted rows count again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

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

    def __post_init__(self) -> None:
        """ValueError for counts that cannot be."""
        regions = (self.regions_offered, self.regions_dropped, self.regions_sampled)
        numbers = (self.offered, self.kept, self.dropped, self.sampled, self.bad, self.epoch, self.version)
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

    offered: int = 0
    dropped: int = 0
    #: Whether a node began anew, so that rows that it had counted are missing.
    incomplete: bool = False


def since(known: Snapshot | None, nodes: Iterable[NodeCounts]) -> tuple[NodeRows, Snapshot]:
    """What was counted since `known` was remembered, and what to remember.

    `known`: by node and incarnation, offered and dropped rows; None: these counts are the first that a query
    sees, and were made before it.
    """
    found: dict[str, dict[str, list[int]]] = {node: dict(one) for node, one in (known or {}).items()}
    offered = dropped = 0
    incomplete = False
    present = set()
    for counts in nodes:
        present.add(counts.node)
        incarnations = found.setdefault(counts.node, {})
        incomplete |= bool(incarnations) and counts.incarnation not in incarnations
        before = incarnations.pop(counts.incarnation, [0, 0])
        # An older copy of a file has smaller counts.
        now = [max(before[0], counts.offered), max(before[1], counts.dropped)]
        offered, dropped = offered + now[0] - before[0], dropped + now[1] - before[1]
        found[counts.node] = dict([*incarnations.items(), (counts.incarnation, now)][-_REMEMBERED:])
    if len(found) > _NODES_MAX:
        found = {node: one for node, one in found.items() if node in present}
    return NodeRows() if known is None else NodeRows(offered, dropped, incomplete), found


def by_region(nodes: Iterable[NodeCounts], order: tuple[int, int], regions: int) -> Counters:
    """The rows in each region since the sifter of this order was published, over all nodes that run it."""
    total = Counters.zero(regions)
    for counts in nodes:
        if counts.order == order and len(counts.regions_offered) == regions:
            for counted, more in zip(vars(total).values(), vars(counts.counters).values(), strict=True):
                counted += more
    return total
