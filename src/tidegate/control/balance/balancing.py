"""Decides after each batch where rows are stored in the next: loads to the strategy, its assignment to
routing.

    reports of b ─▶ loads (per partition, key and instance) ─▶ strategy ─▶ assignment ─▶ manifest b
    manifest b ─▶ routing and cuts of plan b+1 (rerouting.py)
    keys of the first batch ─▶ loads (skew_scan.py) ─▶ strategy ─▶ routing of plan 0

In the biclique each side is a group of instances with its own assignment and memory. A join with a residual
condition cannot have copies of rows, so its keys move but are never split.

Guarantee: pure functions; a plan that is written is not decided again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tidegate.api.balance import BICLIQUE, Balance
from tidegate.control.balance.loads import loads_of
from tidegate.control.balance.rerouting import check_topology, first_routing, rerouted
from tidegate.errors import FlowError
from tidegate.model.codec import from_plain, to_plain
from tidegate.model.json_values import Snapshot
from tidegate.model.manifest import Manifest
from tidegate.model.plan import Plan
from tidegate.model.reports import TaskReport
from tidegate.model.routing import Cut, Routing
from tidegate.policies import ContRand, FastJoin, LsStream, Random
from tidegate.route.assignment import Assignment
from tidegate.route.auto.strategy import Auto
from tidegate.route.baselines import ContRandStrategy, HashOnly, RandomSpread
from tidegate.route.elastic import Elastic
from tidegate.route.fastjoin.strategy import FastJoinStrategy
from tidegate.route.hash_routing import first_table
from tidegate.route.load import Load
from tidegate.route.ls_stream.strategy import LsStreamStrategy
from tidegate.route.strategy import Memory, Strategy

#: Heaviest instance over an even share, in rows and pairs: below it no strategy would move anything.
UNEVEN = 1.05
#: Keys in the manifest's control state: assignments, and the number of instances.
CONTROL, SCALE = "balance", "scale"


@dataclass(frozen=True)
class Balanced:
    """What balancing may do with one join."""

    #: Rows are found by key. Otherwise they are spread over all instances anyway.
    keyed: bool = True
    #: Rows may have copies.
    scatters: bool = True


@dataclass(frozen=True)
class BalanceSettings:
    """How the joins of a query are balanced."""

    balance: Balance
    partitions: int
    joins: Mapping[str, Balanced]
    #: Time budget of a batch, for autoscaling.
    batch_seconds: float | None = None

    def strategy(self, name: str) -> Strategy:
        return strategy_of(self.balance) if self.joins[name].keyed else HashOnly()

    def groups(self, name: str) -> int:
        """Groups of instances: one, or one for each side."""
        return 2 if self.balance.topology == BICLIQUE and self.joins[name].keyed else 1

    @property
    def moves(self) -> bool:
        """Whether anything moves without the user's action."""
        return self.balance.moves


@dataclass(frozen=True)
class Remembered:
    """What is kept of one join between two batches."""

    #: One assignment for both sides, or one for each.
    wanted: tuple[Assignment, ...]
    memories: tuple[Memory, ...]
    #: The strategy that chose it: another one starts anew.
    strategy: str


def strategy_of(balance: Balance) -> Strategy:
    """The strategy by its name, with the user's parameters, or the user's own."""
    chosen = balance.named
    if isinstance(chosen, Strategy):
        return chosen
    if isinstance(chosen, FastJoin):
        return FastJoinStrategy(theta=chosen.threshold, chooser=chosen.search)
    if isinstance(chosen, LsStream):
        return LsStreamStrategy(
            gamma=chosen.memory_weight, alpha=chosen.threshold, weights=_speeds(chosen.speeds)
        )
    if isinstance(chosen, ContRand):
        return ContRandStrategy(groups=chosen.groups)
    if isinstance(chosen, Random):
        return RandomSpread()
    return Auto() if chosen is None else HashOnly()


def _speeds(given: Sequence[float] | None) -> tuple[float, ...] | None:
    return None if given is None else tuple(map(float, given))


def check(settings: BalanceSettings, instances: int) -> None:
    """Refuse impossible settings before anything runs."""
    apart = any(settings.groups(name) > 1 for name in settings.joins)
    if apart and instances < 2:
        raise FlowError(
            "The topology 'biclique' needs an instance for each side of a join",
            code="BALANCE_INSTANCES_INVALID",
            got=f"{instances} instances",
            do="Give tg.start(…, instances=2) or more, or tg.Balance(topology='together')",
        )
    if settings.balance.scale is not None:
        first_table(settings.partitions, settings.balance.scale[1])
        if settings.batch_seconds is None:
            raise FlowError(
                "Autoscaling needs a time budget",
                code="BALANCE_SCALE_WITHOUT_BUDGET",
                got=f"scale={settings.balance.scale}, no trigger and no goal",
                do="Give tg.start(…, trigger='1 second') or a goal",
            )
    whole = [name for name, join in settings.joins.items() if join.keyed and not join.scatters]
    if whole and (apart or settings.balance.copies):
        raise FlowError(
            f"Strategy {settings.balance.word!r} with topology {settings.balance.topology!r} copies "
            "rows, which some operators do not allow",
            code="BALANCE_STRATEGY_UNSUPPORTED",
            got=f"{', '.join(whole)}: a window, or a join that is not inner and has a `where`",
            why="All rows of such a key must be on one instance",
            do="Use the strategy auto, hash, fastjoin or ls_stream with topology='together'",
        )
    # Finds instances without a partition or speed now, not when the first batch is planned.
    first(settings, instances)


def first(settings: BalanceSettings, instances: int) -> dict[str, Routing]:
    """The routing of every join before the first batch."""
    return {name: first_routing(_first_wanted(settings, name, instances)) for name in settings.joins}


def partitions_of(plan: Plan) -> dict[str, int]:
    """How many base partitions the joins of a plan have."""
    return {
        name: len(plan.balance[name]["wanted"][0]["table"]) if name in plan.balance else len(one.left.table)
        for name, one in plan.routing.items()
    }


def _first_wanted(settings: BalanceSettings, name: str, instances: int) -> tuple[Assignment, ...]:
    counts = _split(instances, settings.groups(name))
    return tuple(settings.strategy(name).first(settings.partitions, count) for count in counts)


def learn(
    settings: BalanceSettings, plan: Plan, loads: Mapping[str, Sequence[Load]], after: Manifest
) -> Snapshot:
    """What the manifest should remember: where rows should lie from the next batch on."""
    learnt = {}
    for name in settings.joins:
        before = _remembered(settings, name, plan.balance.get(name), after.routing[name].instances)
        decided = [
            settings.strategy(name).decide(load, current, memory)
            for load, current, memory in zip(loads[name], before.wanted, before.memories, strict=True)
        ]
        wanted = tuple(_allowed(assignment, settings.joins[name].scatters) for assignment, _ in decided)
        memories = tuple(memory for _, memory in decided)
        learnt[name] = to_plain(Remembered(wanted, memories, before.strategy))
    return learnt


def scaled(
    settings: BalanceSettings, loads: Mapping[str, Sequence[Load]], memory: Mapping[str, Any]
) -> tuple[int | None, Snapshot]:
    """How many instances the next batch should have (None: it is not ours to say), and what is remembered."""
    if settings.balance.scale is None or settings.batch_seconds is None:
        return None, {}
    elastic = Elastic(*settings.balance.scale, settings.batch_seconds)
    wanted = {
        name: elastic.wanted(np.concatenate([load.seconds for load in groups]), memory.get(name, {}))
        for name, groups in loads.items()
    }
    most = max((count for count, _ in wanted.values()), default=None)
    return most, {name: dict(remembers) for name, (_, remembers) in wanted.items()}


def measured(
    settings: BalanceSettings, reports: Sequence[TaskReport], after: Manifest
) -> dict[str, tuple[Load, ...]]:
    """The loads of the batch that left this manifest."""
    return {name: loads_of(name, reports, after, settings.partitions) for name in settings.joins}


def watches_keys(settings: BalanceSettings, manifest: Manifest, loads: Mapping[str, Sequence[Load]]) -> bool:
    """Whether the tasks of the next batch must report which keys make their work.

    Counting costs a few per cent, so it is done only if something could move: if rows and pairs were uneven
    over instances, or a key has its own place.
    """
    if not settings.moves:
        return False
    placed = any(one.keys for routing in manifest.routing.values() for one in routing.sides)
    return placed or any(load.unevenness > UNEVEN for groups in loads.values() for load in groups)


def scans_keys_first(settings: BalanceSettings, manifest: Manifest) -> tuple[str, ...]:
    """Joins whose strategy needs the keys of the next batch before any row is stored."""
    holds = {piece.operator for piece in manifest.pieces}
    return tuple(
        name
        for name in settings.joins
        if isinstance(settings.strategy(name), Auto)
        and manifest.routing[name].instances > 1
        and name not in holds
    )


def begun(settings: BalanceSettings, manifest: Manifest, ahead: Mapping[str, Sequence[Load]]) -> Manifest:
    """The manifest with rows placed by the loads of a first batch; `ahead`: of joins without rows."""
    routing, known = dict(manifest.routing), dict(manifest.control.get(CONTROL, {}))
    for name, loads in ahead.items():
        auto = settings.strategy(name)
        assert isinstance(auto, Auto)
        before = _remembered(settings, name, known.get(name), routing[name].instances)
        wanted = tuple(
            _allowed(auto.begin(load, first), settings.joins[name].scatters)
            for load, first in zip(loads, before.wanted, strict=True)
        )
        routing[name] = replace(first_routing(wanted), version=routing[name].version)
        known[name] = to_plain(replace(before, wanted=wanted))
    return replace(manifest, routing=routing, control={**manifest.control, CONTROL: known})


def refuse_topology(settings: BalanceSettings, routing: Mapping[str, Routing]) -> None:
    """Refuse settings of another topology than joins began with."""
    for name, current in routing.items():
        check_topology(current, settings.groups(name))


def _remembered(
    settings: BalanceSettings, name: str, known: Mapping[str, Any] | None, instances: int
) -> Remembered:
    """What is kept of a join, unless another strategy wrote it."""
    strategy = settings.strategy(name).name
    if known is not None and known["strategy"] == strategy:
        return from_plain(Remembered, known)
    wanted = _first_wanted(settings, name, instances)
    return Remembered(wanted, tuple({} for _ in wanted), strategy)


def reroute(
    settings: BalanceSettings, manifest: Manifest, instances: int | None, loads: Mapping[str, Sequence[Load]]
) -> tuple[dict[str, Routing], dict[str, tuple[Cut, ...]], Snapshot]:
    """Routing and cuts of the next batch, and what is remembered from now on.

    `instances`: a new number of them, or None. `loads`: those of the last batch, for strategies that choose
    what goes where.
    """
    routing, cuts, known = {}, {}, {}
    for name, current in manifest.routing.items():
        check_topology(current, settings.groups(name))
        before = _remembered(settings, name, manifest.control.get(CONTROL, {}).get(name), current.instances)
        if instances is not None and instances != current.instances:
            counts = _split(instances, settings.groups(name))
            before = replace(
                before,
                wanted=tuple(
                    settings.strategy(name).resize(load, assignment, count)
                    for load, assignment, count in zip(loads[name], before.wanted, counts, strict=True)
                ),
            )
        routing[name], cuts[name] = rerouted(current, before.wanted, name, manifest.pieces)
        known[name] = to_plain(before)
    return routing, {name: some for name, some in cuts.items() if some}, known


def _allowed(assignment: Assignment, scatters: bool) -> Assignment:
    if scatters or all(len(places) == 1 for places in assignment.keys.values()):
        return assignment
    return replace(assignment, keys={code: at[:1] for code, at in assignment.keys.items()}, columns={})


def _split(instances: int, groups: int) -> list[int]:
    """Number of instances of each group."""
    if instances < groups:
        raise FlowError(
            "There are fewer instances than groups of instances",
            code="BALANCE_INSTANCES_INVALID",
            got=f"{instances} instances, {groups} groups",
            do=f"Give tg.start(…, instances={groups}) or more",
        )
    left = instances // groups
    return [instances] if groups == 1 else [left, instances - left]
