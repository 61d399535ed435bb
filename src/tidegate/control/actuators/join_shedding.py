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
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tidegate.api.goal import Shed
from tidegate.control.actuators.content import bend_after, chooses_by_content, chosen_by_content
from tidegate.control.actuators.join_policies import JoinShape, kind_of, policy_of, rate_rule, shape_of
from tidegate.control.actuators.paper_rate import (
    FRACTION_MIN,
    BatchLoad,
    FixedRate,
    RateAdaptation,
    RateLoad,
    expected_rows,
)
from tidegate.control.actuators.policy import AgeCounts, Policy, ProbeOrder, Telemetry, Work, newest_first
from tidegate.control.actuators.selective import SelectivePolicy
from tidegate.control.actuators.state_limit import forget, piece_bytes
from tidegate.control.actuators.work_ahead import newest, rows_a_second, work_ahead
from tidegate.control.levels import levels_of
from tidegate.join.selective.kept_rows import KeptRows
from tidegate.join.selective.planned import skips_nothing
from tidegate.join.selective.reach import AHEAD_MAX, Ages, cell_of
from tidegate.model.codec import from_plain, to_plain
from tidegate.model.graph import OperatorTraits
from tidegate.model.json_values import Snapshot
from tidegate.model.manifest import Manifest
from tidegate.model.pieces import Piece
from tidegate.model.plan import Plan
from tidegate.model.reports import ProbeCounts, TaskReport
from tidegate.model.skip_plan import Skipping
from tidegate.model.times import BEGINNING_US, LEFT, RIGHT
from tidegate.policies import RandomDrop, WindowReduction

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
    #: Joins in front of which `auto` drops rows.
    by_rows: tuple[str, ...] = ()

    def shed_of(self, name: str) -> Shed:
        """How one join sheds."""
        return replace(self.shed, join=RandomDrop()) if name in self.by_rows else self.shed

    @property
    def kind(self) -> list[Any]:
        """The kind that stored policies must have to be restored."""
        return [*kind_of(self.shed), *self.by_rows]


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
    #: Rows that limits of ours keep waiting at their sources.
    waiting: float = 0.0


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
    rows = sum(sum(report.rows.offered) for report in reports)
    shapes = {name: shape_of(settings.shed_of(name), operators[name]) for name in settings.joins}
    growth = _growth(settings, before, plan, time, rows)
    works = given.ahead or {
        name: _forecast(settings.shed_of(name), plan, before, after, reports, shape, name, growth)
        for name, shape in shapes.items()
    }
    seconds = max(settings.trigger_seconds, time.busy_seconds)
    batch = BatchLoad.of(rows, time.busy_seconds, settings.batch_seconds, given.waiting, seconds)
    rule = _rule_after(settings, before, plan, batch if not (time.cold or levels) else None)
    known = known_of(settings, before, "policies") or {}
    policies = {}
    for name, shape in shapes.items():
        policy = policy_of(settings.shed_of(name), shape, levels.get(name, rule.fraction), known.get(name))
        seen = _telemetry(plan, reports, name, shape, given.worth.get(name))
        seen = shape.seen(replace(seen, load=batch.load, work=works[name], seconds=seconds))
        policies[name] = _adapted(policy, seen if rows else None)
    return {
        "kind": settings.kind,
        "rate": rule.snapshot(),
        "policies": policies,
        "work": {name: list(map(np.ndarray.tolist, both)) for name, both in works.items()},
        "bends": {name: bend_after(before, plan, reports, name) for name in settings.by_content},
        "forget_us": {name: list(skipping.forget_us) for name, skipping in plan.shed.skipping.items()},
        "began_us": plan.now_us,
        "kept": _kept(settings, before, after, reports, shapes),
    }


def _rule_after(
    settings: OverloadSettings, before: Manifest, plan: Plan, batch: BatchLoad | None
) -> RateAdaptation | FixedRate:
    """The rate rule after a batch; None: one on cold workers, or another rule decides."""
    rule = rate_rule(settings.shed, known_of(settings, before, "rate"))
    # A batch without rows says nothing about what rows cost.
    if batch is not None and batch.taken:
        rule.add(replace(batch, in_full=plan.shed.would is not None))
    return rule


def _adapted(policy: Policy, telemetry: Telemetry | None) -> Snapshot:
    """What a policy knows after a batch; None: it had no rows."""
    if telemetry is not None:
        policy.adapt(telemetry)
    return policy.snapshot()


def _forecast(
    shed: Shed,
    plan: Plan,
    before: Manifest,
    after: Manifest,
    reports: Sequence[TaskReport],
    shape: JoinShape,
    name: str,
    growth: float,
) -> Work:
    """The stored rows that a new row will probe, per window and age, if none has been dropped."""
    ahead = work_ahead(shape, before, after, name, growth, reports)
    return full_work(shed, plan, before, after, reports, shape, name, ahead)


def _kept(
    settings: OverloadSettings,
    before: Manifest,
    after: Manifest,
    reports: Sequence[TaskReport],
    shapes: Mapping[str, JoinShape],
) -> Snapshot:
    """By join with random drop: what it kept of its stored rows."""
    kept = {
        name: kept_after(before, after, reports, name, shape.sides)
        for name, shape in shapes.items()
        if isinstance(settings.shed_of(name).policy, RandomDrop)
    }
    return {name: [to_plain(one) for one in both] for name, both in kept.items()}


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
    shape = shape_of(settings.shed_of(operator.name), operator)
    known = (known_of(settings, manifest, "policies") or {}).get(operator.name)
    policy = policy_of(settings.shed_of(operator.name), shape, fraction, known)
    decision = policy.decision
    if fraction >= 1:
        # With r = 1 nothing is skipped: fractions may be off by rounding, and orders may be incomplete.
        left, right = (
            ProbeOrder(1.0, tuple(dict.fromkeys((*probing.order, *range(count)))))
            for probing, count in zip(decision.windows, shape.ages, strict=True)
        )
        decision = replace(decision, windows=(left, right), full_share=0.0)
    elif decision.reach < 1:
        # Rows beyond the shortened window are dropped; those of the same batch are not probed either.
        decision = replace(decision, windows=newest_first(shape, (decision.reach, decision.reach)))
    work = manifest.control.get("work", {}).get(operator.name)
    each = (np.array(work[LEFT]), np.array(work[RIGHT])) if work else shape.costs
    shares = shape.shares(decision, each)
    kept = kept_by_age(kept_rows(manifest, operator.name), manifest, operator.name, shape.sides)
    skipping = Skipping(
        fraction=fraction,
        shares=shares,
        explore_share=decision.full_share,
        explore_depth=decision.full_depth,
        keep_share=_keep_share(decision.keep_share, fraction, kept, each)
        if isinstance(settings.shed.rate, str)
        else decision.keep_share,
        forget_us=_later(_forget(decision.reach, shape.sides, shares, operator.name, manifest), forgotten),
        filled_us=(
            newest(manifest.pieces, operator.name, LEFT),
            newest(manifest.pieces, operator.name, RIGHT),
        ),
        fractions=(decision.windows[0].fraction, decision.windows[1].fraction),
        orders=(decision.windows[0].order, decision.windows[1].order),
    )
    if work and operator.name in settings.by_content and isinstance(policy, SelectivePolicy):
        instances = manifest.routing[operator.name].instances
        return chosen_by_content(skipping, policy.by_content, each, instances)
    return skipping


def _keep_share(steady: float, fraction: float, kept: Work, work: Work) -> float:
    """The part of the new rows that random drop lets in, `steady` once stored rows are as thin as new ones.

    While more of the stored rows was kept, fewer new rows are let in: the pairs found are the ratio of all.
    """
    if steady >= 1:
        return steady
    every, cost = np.concatenate(kept), np.concatenate(work)
    stored = float(every @ cost / cost.sum()) if cost.sum() > 0 else float(every.mean())
    return min(steady, fraction / max(stored, FRACTION_MIN))


def _later(one: tuple[int, int], other: tuple[int, int] | None) -> tuple[int, int]:
    return one if other is None else (max(one[0], other[0]), max(one[1], other[1]))


def _forget(
    reach: float,
    sides: tuple[Ages, Ages],
    shares: tuple[Sequence[float], Sequence[float]],
    name: str,
    manifest: Manifest,
) -> tuple[int, int]:
    """Drop stored rows below these times, which nothing probes; the times never go back."""
    before = manifest.control.get("forget_us", {}).get(name, (BEGINNING_US, BEGINNING_US))
    if reach >= 1:
        return before[0], before[1]
    left, right = (
        max(before[side], newest(manifest.pieces, name, side) - _probed_us(sides[side], shares[side]))
        # Rows whose matches all come before them are kept for late ones only, and for a short time.
        if sides[side].back_us > 0
        else before[side]
        for side in (LEFT, RIGHT)
    )
    return left, right


def _probed_us(ages: Ages, shares: Sequence[float]) -> int:
    """The age up to which a new row probes stored rows of a side."""
    numbers = [number for number, share in enumerate(shares) if share > 0]
    if not numbers or not ages.slot_us:
        return ages.back_us
    last = numbers[-1]
    return min(ages.back_us, int((last - ages.ahead + shares[last]) * ages.slot_us))


def known_of(settings: OverloadSettings, manifest: Manifest, what: str) -> Mapping[str, Any] | None:
    """The stored state of a policy; None before the first batch, and if another policy wrote it."""
    if manifest.control.get("kind") != settings.kind:
        return None
    known: Mapping[str, Any] | None = manifest.control.get(what)
    return known


def full_work(
    shed: Shed,
    plan: Plan,
    before: Manifest,
    after: Manifest,
    reports: Sequence[TaskReport],
    shape: JoinShape,
    name: str,
    ahead: Work,
) -> Work:
    """The stored rows that a new row would probe if none had been dropped; `ahead`: those that it will.

    The probe ratio is relative to the work that there would be without any shedding.
    """
    if isinstance(shed.policy, WindowReduction) and name in plan.shed.skipping:
        forget_us = plan.shed.skipping[name].forget_us
        left, right = (
            _refilled(shape.sides[side], ahead[side], newest(after.pieces, name, side) - forget_us[side])
            for side in (LEFT, RIGHT)
        )
        return left, right
    if isinstance(shed.policy, RandomDrop):
        kept = kept_after(before, after, reports, name, shape.sides)
        left, right = (
            work / np.maximum(share, FRACTION_MIN)
            for work, share in zip(ahead, kept_by_age(kept, after, name, shape.sides), strict=True)
        )
        return left, right
    return ahead


def _refilled(ages: Ages, ahead: NDArray[np.float64], kept_us: int) -> NDArray[np.float64]:
    """The work of a window of which only the newest part is stored, if all of it were."""
    if not ages.slot_us or kept_us >= ages.back_us:
        return ahead
    begin = (np.arange(ages.count) - ages.ahead) * ages.slot_us
    kept, whole = (
        np.clip(np.minimum(begin + ages.slot_us, until_us) - np.maximum(begin, ages.nearest_us), 0, None)
        for until_us in (kept_us, ages.back_us)
    )
    behind = begin >= 0
    # Basic windows that were given up, or part of which was, hold as much as the others on average.
    stored = behind & (kept >= whole) & (whole > 0)
    known = stored if stored.any() else behind & (kept > 0)
    density = float(ahead[known].sum()) / max(float(kept[known].sum()), 1.0)
    return np.asarray(np.where(behind & ~stored, density * whole, ahead))


def kept_rows(manifest: Manifest, name: str) -> tuple[KeptRows, KeptRows]:
    """By side: what random drop kept of the rows that are stored."""
    known = manifest.control.get("kept", {}).get(name)
    if known is None:
        return KeptRows(), KeptRows()
    left, right = (from_plain(KeptRows, one) for one in known)
    return left, right


def kept_by_age(
    kept: tuple[KeptRows, KeptRows], manifest: Manifest, name: str, sides: tuple[Ages, Ages]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """By window and age: the part of its stored rows that random drop kept, for rows that arrive now."""
    now_us = max(newest(manifest.pieces, name, side) for side in (LEFT, RIGHT))
    left, right = (
        one.shares(now_us // max(1, ages.slot_us) + ages.ahead - np.arange(ages.count))
        for one, ages in zip(kept, sides, strict=True)
    )
    return left, right


def kept_after(
    before: Manifest, after: Manifest, reports: Sequence[TaskReport], name: str, sides: tuple[Ages, Ages]
) -> tuple[KeptRows, KeptRows]:
    """What random drop has kept so far, by side, after this batch."""

    def one(side: int, kept: KeptRows) -> KeptRows:
        ages, offered = sides[side], offered_to(reports, name, side)
        mine = [report.rows for report in reports if report.operator == name]
        dropped, stale = sum(rows.dropped[side] for rows in mine), sum(rows.stale[side] for rows in mine)
        # Over the full history there are no basic windows, and rows never expire.
        slot = newest(after.pieces, name, side) // ages.slot_us if ages.slot_us else 0
        return kept.after(slot, offered, offered - dropped, slot - ages.count - AHEAD_MAX, bool(stale))

    left, right = kept_rows(before, name)
    return one(LEFT, left), one(RIGHT, right)


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
            zero = np.zeros(shape.sides[window].count)
            return np.asarray(np.sum([zero, *(getattr(probes[window], field) for probes in mine)], axis=0))

        return AgeCounts(total(found), total(seen))

    full = counts(LEFT, "explored", "explored_matches"), counts(RIGHT, "explored", "explored_matches")
    return full, (counts(LEFT, "chosen", "chosen_matches"), counts(RIGHT, "chosen", "chosen_matches"))


def _telemetry(
    plan: Plan,
    reports: Sequence[TaskReport],
    name: str,
    shape: JoinShape,
    worth: Mapping[int, float] | None,
) -> Telemetry:
    """What a batch found in each basic window of a join."""
    full, chosen = _valued(_probed_counts(reports, name, shape), worth)
    if chooses_by_content(plan, name):
        # Rows that choose by content say nothing about the value of basic windows.
        left, right = (AgeCounts(np.zeros_like(c.matches), np.zeros_like(c.comparisons)) for c in chosen)
        chosen = left, right
    skipping = plan.shed.skipping.get(name)
    return Telemetry(RateLoad(0, 0), full, chosen, whole=skipping is not None and skips_nothing(skipping))


def comparisons_of(report: TaskReport) -> int:
    """The comparisons of an instance: those made, or those charged to rows that choose by content."""
    return report.work.charged or sum(map(probed_pairs, report.probes))


def probed_pairs(probes: ProbeCounts) -> int:
    """Pairs that rows probed, exploring or not."""
    return sum(probes.chosen) + sum(probes.explored)
