"""The goal loop of the installed Tidegate as a controller of simulated batches.

    counts of a simulated batch ─▶ task and match reports, manifest ─▶ goal_loop.learn
    shed plan of the actuators  ─▶ what simulated operators shed

The one module of the judge that knows the API of the goal loop.

Guarantee: the controller sees counts and times as tasks report them, never true costs or values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from tidegate.api.goal import Shed as ShedSettings
from tidegate.control import planning
from tidegate.control.actuators import join_shedding, sifting, stale_rows, window_dropping
from tidegate.control.actuators.join_shedding import OverloadSettings
from tidegate.control.actuators.sifting import SiftSettings
from tidegate.control.actuators.window_dropping import DropSettings
from tidegate.control.goal import goal_loop
from tidegate.control.goal.backpressure import TakenRows
from tidegate.control.goal.goal_step import KeepSettings, Ran
from tidegate.control.goal.goal_values import GoalSettings
from tidegate.control.goal.warm_up import WarmUp
from tidegate.model.graph import OperatorTraits
from tidegate.model.manifest import StreamClock
from tidegate.model.pieces import ByteRange, Piece
from tidegate.model.plan import LateRows, Plan, ShedPlan
from tidegate.model.reports import (
    MatchReport,
    ProbeCounts,
    SideRows,
    StateChange,
    TaskReport,
    TaskSeconds,
    WorkCounts,
)
from tidegate.model.samples import Sampled
from tidegate.model.times import LEFT, RIGHT
from tidegate.sift.filter.lookup import Lookup
from tidegate.sift.filter.sifter import Sifter
from tidegate.window.drop.intervals import NOTHING
from tidegate.window.drop.network import (
    DropJoinNode,
    DropOutputNode,
    DropSourceNode,
    DropStepNode,
    DropWindowNode,
    Network,
)
from tidegate.window.drop.network import Node as DropNode
from tidegate.window.spec import WindowSpec
from tidegate_lab.simulate.goal.arrivals import CELLS, GRAIN
from tidegate_lab.simulate.goal.operators import (
    US,
    Did,
    JoinShed,
    MatchShed,
    Shed,
    Simulated,
    SimulatedJoin,
    SimulatedMatch,
    SimulatedWindow,
    WindowShed,
)
from tidegate_lab.simulate.goal.played import Batch
from tidegate_lab.simulate.goal.scenario import SAYS_WAITING, UNLIMITED, Scenario, workload_of
from tidegate_lab.workloads.sifters import draw_queries

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: The wall clock when a scenario begins; a multiple of every window and slot.
EPOCH_US = 1_700_000_000 * US
#: Bytes of a stored row; the most points that a match reports as samples of one batch.
_ROW_BYTES, _SAMPLES_MOST = 40, 400


class GoalLoop:
    """The goal loop around one scenario."""

    def __init__(
        self, scenario: Scenario, change: Callable[[KeepSettings], KeepSettings] | None = None
    ) -> None:
        """`change`: what is done to the settings that the driver would make."""
        self._scenario = scenario
        self._joins = {one.name: one for one in scenario.operators if isinstance(one, SimulatedJoin)}
        self._traits = {
            name: OperatorTraits(name, one.streams, one.within, (False, False), (False, False))
            for name, one in self._joins.items()
        }
        settings = _settings(scenario)
        self.settings: KeepSettings = settings if change is None else change(settings)
        names = tuple(one.name for one in scenario.operators)
        first = planning.first_manifest({}, sorted(scenario.rows), {}, EPOCH_US)
        self.manifest = replace(first, settled_us=dict.fromkeys(names, first.clocks["a"].watermark_us))
        self._warm_up = WarmUp()
        self._plan: Plan | None = None
        self._random = np.random.default_rng([scenario.seed, 211])
        #: Rows stored per join, side and basic window.
        self._slots: dict[tuple[str, int], dict[int, tuple[int, int, int, int, int]]] = {}

    def plan(self, now: float) -> Mapping[str, Shed]:
        settings, manifest, now_us = self.settings, self.manifest, _us(now)
        skipping, sifters, dropping = {}, {}, {}
        if settings.overload is not None:
            skipping = join_shedding.decide(settings.overload, manifest, self._traits)
            fresh = {} if self._warm_up.is_cold else stale_rows.decide(manifest, now_us)
            skipping = stale_rows.applied(skipping, fresh, self._traits, settings.freshest)
        if settings.sifting is not None:
            sifters = sifting.decide(settings.sifting, manifest)
        if settings.dropping is not None:
            dropping = window_dropping.decide(settings.dropping, manifest)
        shed = ShedPlan(skipping, sifters, dropping)
        late = {name: clock.watermark_us for name, clock in manifest.clocks.items()}
        self._plan = Plan(manifest.batch + 1, now_us, LateRows(late), manifest.settled_us, {}, shed=shed)
        return {one.name: self._shed(one) for one in self._scenario.operators}

    def limits(self) -> Mapping[str, int]:
        return goal_loop.limits(self.manifest)

    def learn(self, batch: Batch, waiting: Mapping[str, int]) -> None:
        plan, before = self._plan, self.manifest
        assert plan is not None, "a batch is planned before it runs"
        reports, matched, entered = self._reports(batch, plan)
        taken = {name: self._taken(name, batch, waiting[name]) for name in self._scenario.rows}
        # As in the driver.
        self._warm_up.observe(sum(one.rows for one in taken.values()), batch.busy)
        ran = Ran(reports, matched, entered, batch.busy, self._warm_up.is_cold, taken=taken)
        clocks = {
            name: StreamClock(
                seen, seen, plan.now_us if batch.spans[name][1] > batch.spans[name][0] else one.heard_us
            )
            for name, one in before.clocks.items()
            for seen in [self._seen_us(name, batch)]
        }
        oldest = min(clock.watermark_us for clock in clocks.values())
        after = replace(
            before,
            batch=plan.batch,
            clocks=clocks,
            settled_us=dict.fromkeys(before.settled_us, oldest),
            pieces=tuple(self._pieces(oldest)),
        )
        learnt = goal_loop.learn(self.settings, before, plan, ran, after, self._traits)
        self.manifest = replace(
            after, control={**learnt, **window_dropping.remembered(self.settings.dropping, plan)}
        )

    def _shed(self, operator: Simulated) -> Shed:
        """The decision of the plan about one operator."""
        assert self._plan is not None
        shed, name = self._plan.shed, operator.name
        if isinstance(operator, SimulatedJoin):
            one = shed.skipping.get(name)
            if one is None:
                return JoinShed()
            left, right = (np.array(some) for some in one.shares)
            fresh = tuple(int(np.clip((at - EPOCH_US) / US / GRAIN, 0, CELLS)) for at in one.fresh_us)
            return JoinShed(
                (left, right),
                one.explore_share,
                one.explore_depth,
                one.keep_share,
                (fresh[0], fresh[1]),
                one.fraction,
            )
        if isinstance(operator, SimulatedMatch):
            raw = shed.sifters.get(name)
            if raw is None:
                return MatchShed()
            sifter = Sifter.from_json(raw)
            regions = Lookup.of(sifter.regions).regions(list(operator.points.T))
            return MatchShed(sifter.thresholds[regions], sifter.sample_share, sifter.z)
        return self._window_shed(operator)

    def _window_shed(self, window: SimulatedWindow) -> WindowShed:
        settings = self.settings.dropping
        assert self._plan is not None
        if settings is None or not self._plan.shed.dropping:
            return WindowShed()
        gaps = window_dropping.arrows(settings, self._plan)
        rows, starts = (
            tuple(
                ((low - EPOCH_US) / US, (high - EPOCH_US) / US)
                for low, high in zip(gap.low, gap.high, strict=True)
            )
            for gap in (
                gaps.get((window.stream, window.name), NOTHING),
                gaps.get((window.name, _output(window.name)), NOTHING),
            )
        )
        drops = self._plan.shed.dropping.get("drops", {})
        level = max(
            (one["p"] for name, one in drops.items() if _output(window.name) in name.split(" + ")),
            default=0.0,
        )
        return WindowShed(rows, starts, float(level))

    def _reports(
        self, batch: Batch, plan: Plan
    ) -> tuple[list[TaskReport], list[MatchReport], dict[str, int]]:
        reports: list[TaskReport] = []
        matched: list[MatchReport] = []
        entered: dict[str, int] = {}
        for operator in self._scenario.operators:
            did = batch.did[operator.name]
            if isinstance(operator, SimulatedJoin):
                reports += self._join_reports(operator, did, batch, plan)
            elif isinstance(operator, SimulatedWindow):
                came, gone, _ = did.sides[0]
                rows = SideRows(offered=(round(came), 0), dropped=(round(gone), 0))
                seconds = TaskSeconds(0.1 * batch.seconds[operator.name])
                reports.append(TaskReport(operator.name, 0, rows, seconds=seconds, emitted=round(did.found)))
            else:
                shed = batch.shed[operator.name]
                assert isinstance(shed, MatchShed)
                matched.append(self._match_report(operator, did, shed, plan))
                entered[operator.name] = round(did.rows)
        return reports, matched, entered

    def _join_reports(self, join: SimulatedJoin, did: Did, batch: Batch, plan: Plan) -> list[TaskReport]:
        """One report per instance: counts at the first, processor time at each."""
        assert did.candidates is not None
        assert did.chosen is not None
        assert did.explored is not None
        added = self._store(join, did, batch)
        values = join.values(batch.begin)
        found = [self._random.poisson(values * pairs) for pairs in (did.chosen, did.explored)]
        probes = tuple(
            ProbeCounts(
                _ints(did.candidates[side]),
                _ints(did.chosen[side]),
                tuple(found[0][side].astype(float).tolist()),
                _ints(did.explored[side]),
                tuple(found[1][side].astype(float).tolist()),
            )
            for side in (LEFT, RIGHT)
        )
        offered, dropped, stale = (
            (round(did.sides[LEFT][part]), round(did.sides[RIGHT][part])) for part in range(3)
        )
        matches = int(found[0].sum() + found[1].sum())
        parts = join.parts(batch.begin)
        cores = self._scenario.machine.cores
        cpu = batch.seconds[join.name] / max(max(parts), 1 / cores)
        first = TaskReport(
            join.name,
            0,
            SideRows(offered, dropped=dropped, stale=stale),
            WorkCounts(matches=matches),
            TaskSeconds(parts[0] * cpu, did.probing * parts[0] * cpu),
            StateChange(bytes_read=round(_ROW_BYTES * did.stored), added=tuple(added)),
            emitted=matches,
            probes=probes,
        )
        others = [
            TaskReport(join.name, number, seconds=TaskSeconds(part * cpu, did.probing * part * cpu))
            for number, part in enumerate(parts[1:], 1)
        ]
        return [first, *others]

    def _store(self, join: SimulatedJoin, did: Did, batch: Batch) -> list[Piece]:
        """Remember what a batch stored, by basic window; its own pieces."""
        added = []
        for side in (LEFT, RIGHT):
            rows, dropped, stale = did.sides[side]
            first, end = batch.spans[join.streams[side]]
            shed = batch.shed[join.name]
            assert isinstance(shed, JoinShed)
            first = min(max(first, shed.fresh_from[side]), end)
            arrived = self._scenario.rows[join.streams[side]]
            part = (rows - dropped - stale) / max(1.0, float(arrived[end] - arrived[first]))
            slot = join.ages[side].slot_us
            known = self._slots.setdefault((join.name, side), {})
            edges = _edges(first, end, slot)
            for low, high in pairwise(edges):
                count = round(part * float(arrived[high] - arrived[low]))
                if count:
                    at = (_us(low * GRAIN), _us(high * GRAIN) - 1)
                    own = (count, *at, batch.number, batch.number)
                    before = known.get(at[0] // slot)
                    known[at[0] // slot] = (
                        own
                        if before is None
                        else (before[0] + count, before[1], at[1], before[3], batch.number)
                    )
                    added.append(_piece(join.name, side, at[0] // slot, own))
        return added

    def _pieces(self, oldest_us: int) -> list[Piece]:
        """All that is stored, one piece per basic window; what no row can reach any more goes."""
        pieces = []
        for (name, side), slots in self._slots.items():
            dead = self._joins[name].within.dead_before(side, oldest_us)
            for slot in [slot for slot, one in slots.items() if one[2] < dead]:
                del slots[slot]
            pieces += [_piece(name, side, slot, one) for slot, one in slots.items()]
        return pieces

    def _match_report(self, match: SimulatedMatch, did: Did, shed: MatchShed, plan: Plan) -> MatchReport:
        sifter = Sifter.from_json(plan.shed.sifters[match.name]) if plan.shed.sifters else None
        count, sampled = round(did.rows), round(did.rows * shed.sampled)
        kept: tuple[int, ...] = ()
        if sifter is not None:
            regions = Lookup.of(sifter.regions).regions(list(match.points.T))
            there = np.bincount(regions, minlength=sifter.regions.count) / regions.size
            kept = _ints(self._random.poisson((count - sampled) * there * (1 - sifter.thresholds)))
        drawn = self._random.integers(len(match.points), size=min(sampled, _SAMPLES_MOST))
        tried = sum(kept) + sampled if kept else count
        return MatchReport(
            match.name,
            tried,
            0,
            0,
            None,
            round(did.found),
            round(did.found),
            0.0,
            kept,
            sampled,
            tried,
            Sampled(match.points[drawn], match.hits[drawn]),
        )

    def _taken(self, name: str, batch: Batch, waiting: int) -> TakenRows:
        sources, arrived = self._scenario.sources, self._scenario.rows[name]
        first, end = batch.spans[name]
        rows = int(arrived[end] - arrived[first])
        newest = self._seen_us(name, batch) if arrived[end] else None
        if sources.kind == UNLIMITED:
            return TakenRows(rows, newest)
        units = -(-rows // sources.unit)
        known = -(-waiting // sources.unit) if sources.kind == SAYS_WAITING else None
        return TakenRows(rows, newest, units, known, self.limits().get(name))

    def _seen_us(self, name: str, batch: Batch) -> int:
        end = batch.spans[name][1]
        return _us(end * GRAIN) - 1 if self._scenario.rows[name][end] else self.manifest.clocks[name].seen_us


def _settings(scenario: Scenario) -> KeepSettings:
    """As the driver makes them of a goal, a flow and a trigger."""
    network, shed = _network(scenario), ShedSettings()
    seconds = scenario.batch_seconds, scenario.trigger_seconds
    joins = tuple(one.name for one in scenario.operators if isinstance(one, SimulatedJoin))
    goal = GoalSettings(
        scenario.batch_seconds,
        scenario.latency_seconds,
        {_output(name): weight for name, weight in scenario.weights.items()},
        trigger_seconds=scenario.trigger_seconds,
        freshest=frozenset() if scenario.repair else frozenset(joins),
    )
    matches = {
        one.name: draw_queries(workload_of(one.seed))
        for one in scenario.operators
        if isinstance(one, SimulatedMatch)
    }
    windows = any(isinstance(one, SimulatedWindow) for one in scenario.operators)
    cores = scenario.machine.cores
    return KeepSettings(
        goal,
        scenario.trigger_seconds,
        network,
        cores,
        OverloadSettings(shed, joins, *seconds, cores) if joins else None,
        SiftSettings(shed, matches, *seconds) if matches else None,
        DropSettings(shed, network, scenario.seed) if windows else None,
    )


def _network(scenario: Scenario) -> Network:
    nodes: list[DropNode] = [DropSourceNode(name) for name in sorted(scenario.rows)]
    for one in scenario.operators:
        if isinstance(one, SimulatedJoin):
            nodes.append(DropJoinNode(one.name, *one.streams, *one.within.bounds_us))
        elif isinstance(one, SimulatedWindow):
            spec = WindowSpec(round(one.size_seconds * US), round(one.slide_seconds * US))
            nodes.append(DropWindowNode(one.name, one.stream, spec))
        else:
            nodes.append(DropStepNode(one.name, one.stream))
    for one in scenario.operators:
        gap = one.max_gap if isinstance(one, SimulatedWindow) else None
        nodes.append(DropOutputNode(_output(one.name), one.name, gap))
    return Network(tuple(nodes))


def _output(operator: str) -> str:
    return f"{operator} out"


def _us(seconds: float) -> int:
    return EPOCH_US + round(seconds * US)


def _ints(values: NDArray[np.generic]) -> tuple[int, ...]:
    return tuple(np.rint(values).astype(np.int64).tolist())


def _edges(first: int, end: int, slot_us: int) -> list[int]:
    """Cells of a span, cut at the borders of basic windows."""
    slot = max(1, round(slot_us / US / GRAIN))
    return [first, *range((first // slot + 1) * slot, end, slot), end] if end > first else [first]


def _piece(name: str, side: int, slot: int, stored: tuple[int, int, int, int, int]) -> Piece:
    rows, first_us, last_us, *batches = stored
    data = ByteRange(f"{name}-{side}-{slot}", 0, _ROW_BYTES * rows, "")
    return Piece(
        name, side, slot, 0, rows, first_us, last_us, (batches[0], batches[1]), False, (0,), (0, rows), data
    )
