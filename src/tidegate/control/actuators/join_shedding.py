"""Decides which pairs the joins of a query skip when batches exceed their time budget; learns from each
batch.

    reports of b ─┐
    time of b     ├─▶ learn ─▶ manifest b ─▶ decide ─▶ plan b+1
    manifest b ───┘

Each join that may skip work has a policy (`policy.py`, `adaptive.py`, `selective.py`) that turns its probe
ratio into parts of basic windows. The cost of a basic window is measured: the manifest says how many rows
each one holds.

Guarantee: both steps are pure. What was learnt is in the manifest as plain values and what was decided in the
plan, so a replayed batch skips the same work and a restart continues from the last state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tidegate.api.goal import Shed
from tidegate.control.actuators.content import bend_after, chooses_by_content, chosen_by_content
from tidegate.control.actuators.join_policies import JoinShape, kind_of, policy_of, rate_rule
from tidegate.control.actuators.paper_rate import batch_load, expected_rows
from tidegate.control.actuators.policy import AgeCounts, Telemetry, Work
from tidegate.control.actuators.selective import SelectivePolicy
from tidegate.control.actuators.state_limit import forget, piece_bytes
from tidegate.control.actuators.work_ahead import newest, rows_a_second, work_ahead
from tidegate.control.levels import levels_of
from tidegate.join.selective.reach import Ages, cell_of, shares_by_age
from tidegate.model.graph import OperatorTraits
from tidegate.model.json_values import Snapshot
from tidegate.model.manifest import Manifest
from tidegate.model.pieces import Piece
from tidegate.model.plan import Plan
from tidegate.model.reports import ProbeCounts, TaskReport
from tidegate.model.skip_plan import Skipping
from tidegate.model.times import BEGINNING_US, LEFT, RIGHT
from tidegate.policies import WindowReduction

if TYPE_CHECKING:
    from numpy.typing import NDArray


#: Per join and part of a window (`cell_number`): what the pairs found there are worth.
Worth = Mapping[str, Mapping[int, float]]
#: Comparisons and matches of exploring rows, per window, and those of all others.
Probed = tuple[tuple[AgeCounts, AgeCounts], tuple[AgeCounts, AgeCounts]]


@dataclass(frozen=True)
class OverloadSettings:
    """What may be skipped, and the time budget."""

    shed: Shed
    #: Names of the joins that may skip work.
    joins: tuple[str, ...]
    #: Time that a batch may take, and time between two triggers.
    batch_seconds: float
    trigger_seconds: float
    #: Tasks that run at the same time.
    parallelism: int = 1
    #: Bytes that may be stored; None: any number.
    state_bytes: int | None = None
    #: Joins whose rows may choose by content what they probe.
    by_content: tuple[str, ...] = ()


@dataclass(frozen=True)
class BatchTime:
    """How long a batch took, from its trigger to its commit."""

    busy_seconds: float
    #: Workers have just started, so loading and compiling dominate the time.
    cold: bool = False


def decide(
    settings: OverloadSettings, manifest: Manifest, operators: Mapping[str, OperatorTraits]
) -> dict[str, Skipping]:
    """What each join skips in the batch after this manifest."""
    rule = rate_rule(settings.shed, known_of(settings, manifest, "rate"))
    levels = levels_of(manifest)
    forgotten = _forgotten(settings, manifest, operators)
    return {
        name: _skipping(
            settings, levels.get(name, rule.fraction), operators[name], manifest, forgotten.get(name)
        )
        for name in settings.joins
    }


def _forgotten(
    settings: OverloadSettings, manifest: Manifest, operators: Mapping[str, OperatorTraits]
) -> Mapping[str, tuple[int, int]]:
    """Stored rows that are dropped because the state exceeds its limit."""
    if settings.state_bytes is None:
        return {}
    productivity = {}
    for name in settings.joins:
        values = values_by_age((known_of(settings, manifest, "policies") or {}).get(name))
        if values is not None:
            productivity[name] = productivity_by_age(
                JoinShape(operators[name]), name, values, manifest.pieces
            )
    # The next batch is expected to add about as many bytes as the last.
    brought = sum(piece_bytes(piece) for piece in manifest.pieces if piece.first_batch == manifest.batch)
    room = max(0, settings.state_bytes - brought)
    return forget(manifest.pieces, settings.joins, room, productivity).forget_us


def productivity_by_age(
    shape: JoinShape, name: str, values: Sequence[NDArray[np.float64]], pieces: Sequence[Piece]
) -> tuple[Sequence[float], Sequence[float]]:
    """Per side: matches that a stored row finds at each age, from its own basic window on."""
    left, right = (
        _from_own_window(ages, values[side] * rows_a_second(pieces, name, 1 - side) * ages.slot_us / 1e6)
        for side, ages in enumerate(shape.sides)
    )
    return left, right


def _from_own_window(ages: Ages, values: NDArray[np.float64]) -> list[float]:
    """Values by age from 0 on: nothing at ages before the first number; at least one value."""
    return [*([0.0] * -ages.ahead), *values[max(0, ages.ahead) :].tolist()] or [0.0]


def values_by_age(policy: Mapping[str, Any] | None) -> list[NDArray[np.float64]] | None:
    """Per window and age: matches per comparison as the selective policy learnt them; None before that."""
    if policy is None or "evidence" not in policy:
        return None
    values = []
    for one in policy["evidence"]:
        matches, comparisons = np.array(one["matches"]), np.array(one["comparisons"])
        if not comparisons.sum():
            return None
        average = matches.sum() / comparisons.sum()
        values.append(np.where(comparisons > 0, matches / np.maximum(comparisons, 1e-9), average))
    return values


@dataclass(frozen=True)
class FromGoal:
    """What the goal of the query hands to the joins; empty where the paper's rule decides (`rate_rule`)."""

    #: What the pairs of each join are worth, by cell.
    worth: Worth = field(default_factory=dict)
    #: The probe ratio of each join.
    levels: Mapping[str, float] = field(default_factory=dict)
    #: Per join: stored rows that new rows of the next batch will probe, as it is forecast.
    ahead: Mapping[str, Work] = field(default_factory=dict)


def learn(
    settings: OverloadSettings,
    before: Manifest,
    plan: Plan,
    reports: Sequence[TaskReport],
    after: Manifest,
    operators: Mapping[str, OperatorTraits],
    time: BatchTime,
    given: FromGoal,
) -> Snapshot:
    """What the controllers know after a batch: goes into its manifest."""
    levels = {name: level for name, level in given.levels.items() if name in settings.joins}
    rule = rate_rule(settings.shed, known_of(settings, before, "rate"))
    rows = sum(sum(report.rows.offered) for report in reports)
    shapes = {name: JoinShape(operators[name]) for name in settings.joins}
    growth = _growth(settings, before, plan, time, rows)
    works = given.ahead or {
        name: work_ahead(shape, before, after, name, growth, reports) for name, shape in shapes.items()
    }
    load = batch_load(rows, time.busy_seconds, settings.batch_seconds)
    # A batch without rows says nothing about what rows cost, and one on cold workers nothing that lasts.
    if rows and not time.cold and not levels:
        rule.adapt(load)
    policies = {}
    known = known_of(settings, before, "policies") or {}
    for name, shape in shapes.items():
        policy = policy_of(settings.shed, shape, levels.get(name, rule.fraction), known.get(name))
        if rows:
            probed = _valued(_probed_counts(reports, name, shape), given.worth.get(name))
            policy.adapt(Telemetry(load, *_teaching(plan, name, probed), work=works[name]))
        policies[name] = policy.snapshot()
    return {
        "kind": kind_of(settings.shed),
        "rate": rule.snapshot(),
        "policies": policies,
        "work": {name: list(map(np.ndarray.tolist, both)) for name, both in works.items()},
        "bends": {name: bend_after(before, plan, reports, name) for name in settings.by_content},
        "forget_us": {name: list(skipping.forget_us) for name, skipping in plan.shed.skipping.items()},
        "began_us": plan.now_us,
    }


def _growth(settings: OverloadSettings, before: Manifest, plan: Plan, time: BatchTime, rows: int) -> float:
    """Rows that the next batch is expected to bring, over those of this one."""
    interval = max(settings.trigger_seconds, time.busy_seconds)
    expected = expected_rows(rows, before.control.get("began_us"), plan.now_us, interval)
    return expected / rows if rows else 0.0


def _skipping(
    settings: OverloadSettings,
    fraction: float,
    operator: OperatorTraits,
    manifest: Manifest,
    forgotten: tuple[int, int] | None,
) -> Skipping:
    shape, known = JoinShape(operator), (known_of(settings, manifest, "policies") or {}).get(operator.name)
    policy = policy_of(settings.shed, shape, fraction, known)
    decision = policy.decision
    work = manifest.control.get("work", {}).get(operator.name)
    left, right = (np.array(one) for one in work) if work else shape.work
    # With r = 1 nothing is skipped: the fractions of the two windows may differ from 1 by rounding.
    first, second = (
        shares_by_age(probing.order, probing.fraction if fraction < 1 else 1.0, one)
        for probing, one in zip(decision.windows, (left, right), strict=True)
    )
    skipping = Skipping(
        fraction=fraction,
        shares=(first, second),
        explore_share=decision.full_share if fraction < 1 else 0.0,
        explore_depth=decision.full_depth,
        keep_share=decision.keep_share,
        forget_us=_later(_forget(decision.reach, shape, operator.name, manifest), forgotten),
        filled_us=(
            newest(manifest.pieces, operator.name, LEFT),
            newest(manifest.pieces, operator.name, RIGHT),
        ),
        fractions=(decision.windows[0].fraction, decision.windows[1].fraction),
        orders=(decision.windows[0].order, decision.windows[1].order),
    )
    if work and operator.name in settings.by_content and isinstance(policy, SelectivePolicy):
        instances = manifest.routing[operator.name].instances
        return chosen_by_content(skipping, policy.by_content, (left, right), instances)
    return skipping


def _later(one: tuple[int, int], other: tuple[int, int] | None) -> tuple[int, int]:
    return one if other is None else (max(one[0], other[0]), max(one[1], other[1]))


def _forget(reach: float, shape: JoinShape, name: str, manifest: Manifest) -> tuple[int, int]:
    """Drop stored rows below these times; the times never go back."""
    before = manifest.control.get("forget_us", {}).get(name, (BEGINNING_US, BEGINNING_US))
    if reach >= 1:
        return before[0], before[1]
    left, right = (
        max(before[side], newest(manifest.pieces, name, side) - _shortened_us(shape.sides[side], reach))
        for side in (LEFT, RIGHT)
    )
    return left, right


def _shortened_us(ages: Ages, reach: float) -> int:
    """The age up to which stored rows are kept with this part of their window, its newest one."""
    return ages.nearest_us + int(reach * max(0, ages.back_us - ages.nearest_us))


def known_of(settings: OverloadSettings, manifest: Manifest, what: str) -> Mapping[str, Any] | None:
    """The stored state of a policy; None before the first batch, and if another policy wrote it."""
    if manifest.control.get("kind") != kind_of(settings.shed):
        return None
    known: Mapping[str, Any] | None = manifest.control.get(what)
    return known


def kept_part(shed: Shed, plan: Plan, name: str) -> float:
    """The part of the windows that is still stored, where rows were dropped or windows shortened.

    The probe ratio is relative to the work that there would be without any shedding.
    """
    skipping = plan.shed.skipping.get(name)
    if skipping is None:
        return 1.0
    return skipping.fraction if isinstance(shed.policy, WindowReduction) else skipping.keep_share


def offered_to(reports: Sequence[TaskReport], name: str, side: int) -> int:
    return sum(report.rows.offered[side] for report in reports if report.operator == name)


def _valued(probed: Probed, worth: Mapping[int, float] | None) -> Probed:
    """Matches by what they are worth, in units of an average match of the batch.

    So a batch counts as much evidence as it has matches, whatever a match is worth. None: all are worth one.
    """
    if worth is None:
        return probed
    found = sum(float(counts.matches.sum()) for pair in probed for counts in pair)
    average = sum(worth.values()) / found if found else 0.0
    values = [[np.zeros(counts.matches.size) for counts in pair] for pair in probed]
    for number, value in worth.items():
        window, exploring, age = cell_of(number)
        values[0 if exploring else 1][window][age] = value / average if average else 0.0
    full, chosen = (
        (AgeCounts(left, pair[LEFT].comparisons), AgeCounts(right, pair[RIGHT].comparisons))
        for (left, right), pair in zip(values, probed, strict=True)
    )
    return full, chosen


def _probed_counts(reports: Sequence[TaskReport], name: str, shape: JoinShape) -> Probed:
    """Comparisons and matches, per window."""
    mine = [report.probes for report in reports if report.operator == name and report.probes]

    def counts(window: int, seen: str, found: str) -> AgeCounts:
        def total(field: str) -> NDArray[Any]:
            zero = np.zeros(shape.ages[window])
            return np.asarray(np.sum([zero, *(getattr(probes[window], field) for probes in mine)], axis=0))

        return AgeCounts(total(found), total(seen))

    full = counts(LEFT, "explored", "explored_matches"), counts(RIGHT, "explored", "explored_matches")
    return full, (counts(LEFT, "chosen", "chosen_matches"), counts(RIGHT, "chosen", "chosen_matches"))


def _teaching(plan: Plan, name: str, probed: Probed) -> Probed:
    """Counts from which the value of basic windows can be learnt: without rows that chose by content."""
    if not chooses_by_content(plan, name):
        return probed
    left, right = (AgeCounts(np.zeros_like(c.matches), np.zeros_like(c.comparisons)) for c in probed[1])
    return probed[0], (left, right)


def comparisons_of(report: TaskReport) -> int:
    """The comparisons of an instance: those made, or those charged to rows that choose by content."""
    return report.work.charged or sum(map(probed_pairs, report.probes))


def probed_pairs(probes: ProbeCounts) -> int:
    """Pairs that rows probed, exploring or not."""
    return sum(probes.chosen) + sum(probes.explored)
