"""A query that stops and starts again with other settings, run batch by batch without Spark.

The controllers, plans, clocks and manifests are those of the engine. Rows are Python values, and each batch
is run twice: with what its plan drops, and with all rows. So what should come out is known for each batch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from tidegate.control import planning
from tidegate.control.actuators import window_dropping
from tidegate.control.actuators.window_dropping import DropSettings
from tidegate.control.balance.rerouting import first_routing
from tidegate.control.outcome import manifest_after
from tidegate.control.watermarks import ClockSettings
from tidegate.join.within import Within
from tidegate.model.graph import OperatorTraits
from tidegate.model.manifest import Manifest
from tidegate.model.plan import Plan, PlanDecisions, ShedPlan
from tidegate.model.times import LEFT, RIGHT
from tidegate.route.assignment import Assignment
from tidegate.window.drop.cohorts import Cohorts
from tidegate.window.drop.group_drop import COHORTS
from tidegate.window.drop.intervals import Intervals, merged
from tidegate.window.drop.kept_arrows import Arrow
from tidegate.window.drop.network import (
    DropJoinNode,
    DropOutputNode,
    DropSourceNode,
    DropWindowNode,
    Network,
    Node,
)
from tidegate.window.lifetime import Lifetime
from tidegate.window.spec import WindowSpec

#: Where rows of a network come from and what reads them; outputs may change, operators may not.
Operators = Sequence[Node]


class Row(NamedTuple):
    """A row of a stream, a pair, or a window: its start and the sum of its values."""

    time: int
    value: int
    cell: int = 0


def cell_of(row: Row, by: str | None) -> int:
    """The number of a row's group, by its cell, by halves of the cells, or of all rows together."""
    return {"cell": row.cell, "half": row.cell % 2}.get(by or "", 0)


def traits_of(nodes: Operators) -> dict[str, OperatorTraits]:
    """What planning knows of these windows and joins, which are judged by all streams."""
    streams = tuple(node.name for node in nodes if isinstance(node, DropSourceNode))
    found = {}
    for node in nodes:
        if isinstance(node, DropWindowNode):
            assert isinstance(node.spec, WindowSpec)
            inputs, within = (node.parent, node.parent), Lifetime(node.spec)
            one = OperatorTraits(node.name, inputs, within, (True, False), (True, False))
        elif isinstance(node, DropJoinNode):
            outer = (not node.inner, not node.inner)
            bounds = Within(node.lower_us, node.upper_us)
            one = OperatorTraits(node.name, (node.left, node.right), bounds, outer, outer)
        else:
            continue
        found[node.name] = replace(one, group=streams)
    return found


@dataclass
class Rows:
    """What the operators of one run of a flow store, and what they emit."""

    #: By operator and side: rows with whether they have met another one.
    stored: dict[tuple[str, int], list[list[Row | bool]]] = field(default_factory=dict)

    def batch(
        self,
        nodes: Operators,
        rows: Mapping[str, Sequence[Row]],
        plan: Plan,
        before: Manifest,
        gaps: Mapping[Arrow, Intervals],
        kept: Mapping[str, Intervals | None],
        network: Network,
    ) -> dict[str, list[Row]]:
        """What each stream and operator emits; rows in a gap of their arrow are dropped."""
        emitted = {name: list(some) for name, some in rows.items()}
        for node in nodes:
            if isinstance(node, DropSourceNode):
                continue
            for side, parent in enumerate(node.parents):
                edge = plan.late.inputs[node.name][side] if parent in rows else None
                mine = [row for row in emitted[parent] if edge is None or row.time >= edge]
                mine = outside(mine, gaps.get((parent, node.name)), network, (parent, node.name))
                stored = self.stored.setdefault((node.name, side), [])
                emitted.setdefault(node.name, [])
                if isinstance(node, DropJoinNode):
                    emitted[node.name] += self._pairs(node, side, mine)
                stored += [[row, False] for row in mine] if not isinstance(node, DropJoinNode) else []
            settles = before.settled_us[node.name], plan.settle_us[node.name]
            if isinstance(node, DropWindowNode):
                closed = self._windows(node, *settles)
                intervals = kept.get(node.name)
                if intervals is not None:
                    gone, groups = intervals.others(), network.groups_of(node.name)
                    closed = _without(closed, gone, groups, network.cohorts_of(node.name))
                emitted[node.name] += closed
            elif isinstance(node, DropJoinNode):
                emitted[node.name] += self._alone(node, settles[1])
        return emitted

    def _pairs(self, node: DropJoinNode, side: int, new: Sequence[Row]) -> list[Row]:
        pairs = []
        for row in new:
            mine: list[Row | bool] = [row, False]
            self.stored.setdefault((node.name, side), []).append(mine)
            for other in self.stored.get((node.name, 1 - side), ()):
                found = other[0]
                assert isinstance(found, Row)
                left, right = (row, found) if side == LEFT else (found, row)
                if node.lower_us <= right.time - left.time <= node.upper_us:
                    mine[1] = other[1] = True
                    pairs.append(Row(max(row.time, found.time), row.value * found.value, left.cell))
        return pairs

    def _alone(self, node: DropJoinNode, settle_us: int) -> list[Row]:
        """Rows of an outer join that no partner can come for any more; of every join they are forgotten."""
        alone = []
        for side in (LEFT, RIGHT):
            dead = Within(node.lower_us, node.upper_us).dead_before(side, settle_us)
            mine = self.stored.get((node.name, side), [])
            gone = [one for one in mine if one[0].time < dead]  # type: ignore[union-attr]
            self.stored[node.name, side] = [one for one in mine if one not in gone]
            alone += [one[0] for one in gone if not one[1] and not node.inner]
        return alone  # type: ignore[return-value]

    def _windows(self, node: DropWindowNode, settled_us: int, settle_us: int) -> list[Row]:
        spec = node.spec
        assert isinstance(spec, WindowSpec)
        mine = [one[0] for one in self.stored[node.name, LEFT]]
        sums: dict[tuple[int, int], int] = {}
        by = node.by[0] if node.by else None
        rows = [row for row in mine if isinstance(row, Row)]
        bounds = spec.holding(np.array([row.time for row in rows], np.int64))
        for row, first, last in zip(rows, *(one.tolist() for one in bounds), strict=True):
            for window in range(first, last + 1):
                key = window, cell_of(row, by)
                sums[key] = sums.get(key, 0) + row.value
        closing = range(spec.first_open(settled_us), spec.first_open(settle_us))
        return [
            Row(spec.start(window), total, cell)
            for (window, cell), total in sorted(sums.items())
            if window in closing
        ]


def outside(rows: Sequence[Row], gaps: Intervals | None, network: Network, arrow: Arrow) -> list[Row]:
    """The rows that pass an arrow with these gaps."""
    if gaps is None:
        return list(rows)
    return _without(rows, gaps, network.groups_on(*arrow), network.cohorts_on(*arrow))


def _without(rows: Sequence[Row], gaps: Intervals, groups: str | None, cohorts: Cohorts | None) -> list[Row]:
    times = np.array([row.time for row in rows], np.int64)
    if cohorts is not None:
        times = cohorts.of(np.array([cell_of(row, groups) for row in rows], np.uint64), times)
    inside = gaps.contain(times).tolist()
    return [row for row, gone in zip(rows, inside, strict=True) if not gone]


class Restarting:
    """One checkpoint: batches run under settings that may change between them."""

    def __init__(self, nodes: Operators, seed: int = 0):
        self.nodes, self.operators = nodes, traits_of(nodes)
        streams = [node.name for node in nodes if isinstance(node, DropSourceNode)]
        routing = dict.fromkeys(self.operators, first_routing([Assignment(1, (0,))]))
        self.manifest = planning.first_manifest({}, streams, routing, 0)
        self.shed, self.exact = Rows(), Rows()
        self.now_us = 0

    def plan(self, settings: DropSettings) -> Plan:
        """The plan of the next batch, as a file has it."""
        decided = json.loads(json.dumps(window_dropping.decide(settings, self.manifest)))
        shed = PlanDecisions(shed=ShedPlan(dropping=decided))
        return planning.next_plan(self.manifest.batch + 1, self.manifest, self.operators, self.now_us, shed)

    def run(
        self,
        settings: DropSettings,
        rows: Mapping[str, Sequence[Row]],
        clocks: Mapping[str, ClockSettings],
        levels: Mapping[str, float],
        plan: Plan | None = None,
    ) -> dict[str, tuple[list[Row], list[Row], set[tuple[int, int]]]]:
        """Run a batch. By output: what it wrote, what it should have written, and what is missing: windows by
        their start and cohort.

        `plan`: that of an earlier run which did not finish the batch.
        """
        plan, before, network = plan or self.plan(settings), self.manifest, settings.network
        gaps = window_dropping.arrows(settings, plan)
        kept = {node.name: self._kept(settings, gaps, node.name) for node in self.nodes}
        came = self.shed.batch(self.nodes, rows, plan, before, gaps, kept, network)
        should = self.exact.batch(self.nodes, rows, plan, before, {}, {}, network)
        seen = {name: max((row.time for row in some), default=None) for name, some in rows.items()}
        after = manifest_after(before, plan, (), seen, clocks, self.operators)
        missing = self._missing(settings, plan, before, after)
        learnt = dict(window_dropping.remembered(plan))
        if settings.shed is not None:
            learnt[window_dropping.CONTROL] = window_dropping.learn(settings, before, plan, after, levels)
        control = json.loads(json.dumps({**before.control, **learnt}))
        self.manifest, self.now_us = replace(after, control=control), self.now_us + 1
        return {
            one.name: (
                sorted(self._written(came[one.parent], gaps, network, one)),
                sorted(should[one.parent]),
                missing.get(one.name, set()),
            )
            for one in settings.network.outputs
        }

    @staticmethod
    def _written(
        rows: Sequence[Row], gaps: Mapping[Arrow, Intervals], network: Network, output: DropOutputNode
    ) -> list[Row]:
        arrow = output.parent, output.name
        return outside(rows, gaps.get(arrow), network, arrow)

    def _missing(
        self, settings: DropSettings, plan: Plan, before: Manifest, after: Manifest
    ) -> dict[str, set[tuple[int, int]]]:
        """By output: windows that are missing, and of which cohort; what receipts say of them must fit."""
        network, found = settings.network, {}
        counts = window_dropping.missing_count(settings, plan, before, after)
        gaps = window_dropping.arrows(settings, plan)
        for name, runs in window_dropping.missing(settings, plan, before, after).items():
            starts = {at for first, last, slide in runs for at in range(first, last + 1, slide)}
            gone, cohorts = {(start, 0) for start in starts}, network.cohorts_of(name)
            if cohorts is not None:
                (parent,) = network.by_name[name].parents
                every = [(start, cohort) for start in starts for cohort in range(COHORTS)]
                at = cohorts.of(*(np.array(one) for one in zip(*((c, s) for s, c in every), strict=True)))
                lacks = gaps[parent, name].contain(at).tolist()
                gone = {one for one, lacking in zip(every, lacks, strict=True) if lacking}
                assert {start for start, _ in gone} == starts
            assert counts[name] == len(gone)
            found[name] = gone
        return found

    def _kept(self, settings: DropSettings, gaps: Mapping[Arrow, Intervals], name: str) -> Intervals | None:
        """Windows that some child needs, as `Passing.out_of` has them; None: all."""
        network = settings.network
        names = [child.name for child in network.children.get(name, ())]
        children = [
            gaps.get((name, child)) if network.groups_on(name, child) == network.groups_of(name) else None
            for child in names
        ]
        if not children or any(one is None for one in children):
            return None
        low, high = (np.concatenate([getattr(one.others(), end) for one in children if one]) for end in _ENDS)
        return merged(low, high)


_ENDS = ("low", "high")
