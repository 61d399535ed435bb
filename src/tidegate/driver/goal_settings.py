"""Turns the user's policies (`tg.Goal`, `tg.Shed`, `tg.Balance`) into settings for the controllers of a flow.

Shedding that would make results wrong is refused here, with the reason, before anything runs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tidegate.api.balance import Balance
from tidegate.api.goal import Goal, Shed
from tidegate.api.nodes import Output
from tidegate.control.actuators.join_shedding import OverloadSettings
from tidegate.control.actuators.sampling import EstimateSettings, fixed_share
from tidegate.control.actuators.sifting import SiftSettings
from tidegate.control.actuators.window_dropping import DropSettings
from tidegate.control.balance.balancing import BalanceSettings, check
from tidegate.control.goal.goal_step import KeepSettings
from tidegate.control.goal.goal_values import GoalSettings
from tidegate.control.repair.repair import AT_ONCE, RepairSettings
from tidegate.driver.compile.compiled import Compiled
from tidegate.driver.compile.condition_checks import check_utility
from tidegate.driver.compile.graph_checks import joins_by_content
from tidegate.driver.compile.lineage import network_of
from tidegate.driver.frames.drop_frames import output_name
from tidegate.driver.operators.protocol import RunNeeds
from tidegate.errors import FlowError
from tidegate.model.graph import PAIRS
from tidegate.model.times import LEFT
from tidegate.policies import Adaptive
from tidegate.quantities import duration_us
from tidegate.sift.queries.query_set import QuerySet
from tidegate.window.drop.network import Network


def balance_settings(
    compiled: Compiled,
    balance: Balance,
    partitions: int,
    instances: int,
    batch_seconds: float | None = None,
) -> BalanceSettings:
    found = {operator.name: operator.balanced() for operator in compiled.operators}
    balanced = {name: one for name, one in found.items() if one is not None}
    settings = BalanceSettings(balance, partitions, balanced, batch_seconds)
    check(settings, instances)
    return settings


def batch_seconds(goal: Goal | None, trigger_us: int | None) -> float | None:
    """The time budget of a batch; None if neither a goal nor a trigger sets one."""
    if goal is not None:
        return goal.batch_seconds(trigger_us or 0)
    return None if trigger_us is None else trigger_us / 1e6


def needs_of(shed: Shed) -> RunNeeds:
    """What shedding needs of the operators of a run with a goal."""
    policy = shed.policy
    basic = policy.basic_window if isinstance(policy, Adaptive) else None
    return RunNeeds(
        cells=shed.utility is not None,
        sifts=shed.sift != "none",
        repairs=shed.repair is not None,
        basic_us=None if basic is None else duration_us(basic, "basic_window of Adaptive"),
    )


def goal_settings(
    compiled: Compiled, goal: Goal | None, shed: Shed, trigger_us: int | None, seed: int
) -> KeepSettings | None:
    """What may be shed to meet the goal."""
    if goal is None:
        return None
    network = network_of(compiled)
    weights = {output.name: output.priority for output in compiled.outputs}
    bounds = loss_bounds(goal, compiled.outputs)
    may_skip, matches = joins_that_may_skip(compiled, shed), matches_that_may_sift(compiled)
    joins = () if shed.join == "none" else may_skip
    windows = any(output.max_gap is not None for output in compiled.outputs)
    estimating = estimate_settings(compiled, goal, shed)
    _refuse_nothing_to_shed(compiled, bool(may_skip or matches or windows or estimating))
    if shed.utility is not None:
        check_utility(compiled.spark, compiled.joins, shed.utility)
    each_us = trigger_us or 0
    seconds = goal.batch_seconds(each_us), each_us / 1e6
    cores = compiled.spark.sparkContext.defaultParallelism
    may_lose = joins_that_may_lose_rows(network, joins, _in_network(bounds), shed)
    by_content, by_rows = _by_content(compiled, shed), _by_rows(compiled, shed, may_lose)
    return KeepSettings(
        GoalSettings(
            seconds[0],
            goal.latency_us / 1e6,
            _in_network(weights),
            _in_network(bounds),
            trigger_seconds=seconds[1],
            freshest=may_lose,
        ),
        seconds[1],
        network,
        cores,
        OverloadSettings(shed, joins, *seconds, cores, goal.state_bytes, by_content, by_rows)
        if joins
        else None,
        SiftSettings(shed, matches, *seconds) if matches and shed.sift != "none" else None,
        DropSettings(shed, network, seed) if windows and shed.window != "none" else None,
        estimating,
        goal.observe,
    )


def drop_settings(compiled: Compiled, keep: KeepSettings | None, seed: int) -> DropSettings:
    """The windows that may be dropped; without a goal none is, beyond those that an earlier run dropped."""
    if keep is not None and keep.dropping is not None:
        return keep.dropping
    return DropSettings(None, network_of(compiled), seed)


def loss_bounds(goal: Goal, outputs: Sequence[Output]) -> dict[str, float]:
    """The largest loss of each output that has a bound: its own, or that of the goal."""
    given = {one.name: goal.max_loss if one.max_loss is None else one.max_loss for one in outputs}
    bounds = {name: float(bound) for name, bound in given.items() if bound is not None}
    if outputs and all(bounds.get(output.name) == 0 for output in outputs):
        raise FlowError(
            "A goal with max_loss=0 for every output leaves nothing to shed",
            code="GOAL_MAX_LOSS_ZERO",
            got=", ".join(f"{name}: 0" for name in bounds),
            why="Without shedding, a goal changes nothing",
            do="Allow some output a loss, or use goal=None",
        )
    return bounds


def _in_network(by_output: Mapping[str, float]) -> dict[str, float]:
    """By the name that an output has in the network of windows."""
    return {output_name(name): value for name, value in by_output.items()}


def matches_that_may_sift(compiled: Compiled) -> dict[str, QuerySet]:
    """Matches in front of which rows of a source may be dropped, with their queries."""
    allowed = compiled.graph.may_sift()
    return {match.name: match.queries for match in compiled.matches if match.name in allowed}


def _by_content(compiled: Compiled, shed: Shed) -> tuple[str, ...]:
    return joins_by_content([join.layout for join in compiled.joins], shed)


def _by_rows(compiled: Compiled, shed: Shed, may_lose: Collection[str]) -> tuple[str, ...]:
    """Names of the joins in front of which `auto` drops rows: those that equal keys alone decide.

    A probe for equal keys costs only what it finds, so no choice of parts of windows finds more per cost, and
    rows that are not let in save their own cost, too. Not over the full history, where a dropped row would be
    missing for ever, nor with a utility or where rows may not be lost (`may_lose`).
    """
    if shed.join != "auto" or shed.utility is not None:
        return ()
    return tuple(
        one.name
        for one in compiled.joins
        if one.name in may_lose
        and one.node.keys
        and one.layout.condition is None
        and one.where is None
        and one.layout.within.slot_us(LEFT)
    )


def joins_that_may_skip(compiled: Compiled, shed: Shed) -> tuple[str, ...]:
    """Joins that may skip pairs; with repair, only those that can repair."""
    allowed = compiled.graph.may_lose(PAIRS)
    if shed.repair is not None and allowed and shed.join != "none":
        allowed = _that_may_repair(compiled)
    return tuple(join.name for join in compiled.joins if join.name in allowed)


def _refuse_nothing_to_shed(compiled: Compiled, sheds: bool) -> None:
    if sheds:
        return
    raise FlowError(
        "goal needs an operator that can shed",
        code="GOAL_NOTHING_TO_SHED",
        got=", ".join(f"{join.node.how} join" for join in compiled.joins) or "no join and no match",
        why="Skipping a match in an outer join would emit a false unmatched row, and skipping a row would "
        "change the window it belongs to",
        do="Use inner or left_semi, write_to(…, max_gap=10), window(…, approximate=True), or no goal",
    )


def joins_that_may_lose_rows(
    network: Network, joins: Collection[str], max_loss: Collection[str], shed: Shed
) -> frozenset[str]:
    """Joins that may use stale-row shedding when nothing else is enough.

    Dropped rows cannot be repaired, so none with repair, and none if an output behind has a `max_loss`. Also
    none with rate="paper", which does not predict whether other shedding is enough.
    """
    if shed.repair is not None or shed.rate != "auto":
        return frozenset()
    promised = frozenset[str]().union(*(network.above(output) for output in max_loss))
    return frozenset(joins) - promised


def estimate_settings(compiled: Compiled, goal: Goal | None, shed: Shed) -> EstimateSettings | None:
    """The approximate windows and their sample ratio; without a goal they keep all rows."""
    approximate = [window.layout for window in compiled.windows if window.layout.approximate]
    windows = {one.operator: one.time_spec for one in approximate if not one.spec.counts_rows}
    return EstimateSettings(windows, 1.0 if goal is None else fixed_share(shed)) if windows else None


def _that_may_repair(compiled: Compiled) -> frozenset[str]:
    """Joins that can repair; with repair only these skip pairs, and there must be one."""
    may_repair = compiled.graph.may_repair()
    if not may_repair:
        raise FlowError(
            "repair needs a join whose results go straight to outputs",
            code="SHED_REPAIR_NO_JOIN",
            got=", ".join(f"{join.node.how} join" for join in compiled.joins),
            why="Repaired results would be late in a join or window behind; a left_semi join with a `where` "
            "does not know which batch a row belongs to",
            do="Use repair=None, or write the results of an inner join to an output",
        )
    return may_repair


def repair_settings(shed: Shed | None, keep: KeepSettings | None) -> RepairSettings | None:
    """How skipped pairs are repaired; None: never, so debts are written off.

    Who takes the goal away wants nothing left out any more: the debts that it left are repaired at once,
    unless `shed` is given and says nothing of repair.
    """
    if keep is None and (shed is None or shed.repair is not None):
        return RepairSettings(AT_ONCE, (shed or Shed()).repair_bytes, 0.0)
    if keep is None or keep.overload is None or shed is None or shed.repair is None:
        return None
    overload = keep.overload
    return RepairSettings(shed.repair, shed.repair_bytes, overload.batch_seconds, overload.parallelism)
