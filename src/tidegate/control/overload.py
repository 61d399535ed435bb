"""Decides what a query leaves out when its batches take longer than its goal allows; learns from each batch.

    reports of b ─┐
    time of b     ├─▶ learn ─▶ manifest b ─▶ decide ─▶ plan b+1
    manifest b ───┘

One rate r for the whole query: time is spent on all joins together. Each join that may skip work has a policy
(`shedding.py`, `adaptive.py`, `selective.py`) that turns r into parts of basic windows. Both steps are pure
functions: what was learnt lies in the manifest as plain values, and what was decided in the plan, so a
replayed batch skips exactly the same work, and a restart goes on where the last run was.

What a basic window costs is known, not assumed: the manifest says how many rows each of them holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tidegate.control.adaptive import AdaptiveSettings, AdaptiveShedding
from tidegate.control.planning import Operator
from tidegate.control.rate import Load, RateAdaptation, RateRule, batch_load
from tidegate.control.rate_model import RateModel
from tidegate.control.selective import SelectivePolicy
from tidegate.control.shedding import (
    AgeCounts,
    Policy,
    RandomDrop,
    Telemetry,
    WindowReduction,
    Work,
)
from tidegate.goals import Shed
from tidegate.join.reach import Ages, ages_of, cell_of, shares_by_age
from tidegate.join.within import Within
from tidegate.values import BEGINNING_US, LEFT, RIGHT, Looks, Manifest, Piece, Plan, Skipping, TaskReport

if TYPE_CHECKING:
    from numpy.typing import NDArray


#: Moments of the next batch for which the rows in reach are counted.
_MOMENTS = 8

#: Per join and part of a window (`cell_number`): what the pairs found there are worth.
Worth = Mapping[str, Mapping[int, float]]
#: What exploring rows looked at and found, per window, and what all others did.
Looked = tuple[tuple[AgeCounts, AgeCounts], tuple[AgeCounts, AgeCounts]]


@dataclass(frozen=True)
class OverloadSettings:
    """What may be left out, and when it must be."""

    shed: Shed
    #: Names of the joins that may skip work.
    joins: tuple[str, ...]
    #: Time that a batch may take, and time between two triggers.
    batch_seconds: float
    trigger_seconds: float
    #: Tasks that run at the same time.
    parallelism: int = 1


@dataclass(frozen=True)
class BatchTime:
    """How long a batch took, from its trigger to its commit."""

    busy_seconds: float
    #: Do reports say how long the tasks took?
    measures_joins: bool = False


class JoinShape:
    """The windows of a real join as policies see them (`shedding.Shape`)."""

    def __init__(self, operator: Operator) -> None:
        within = operator.within
        self.sides = ages_of(within, LEFT), ages_of(within, RIGHT)
        self.lengths_us = (within.left_us, within.right_us) if isinstance(within, Within) else (1, 1)

    @property
    def ages(self) -> tuple[int, int]:
        return self.sides[0].count, self.sides[1].count

    @property
    def work(self) -> Work:
        return np.ones(self.ages[0]), np.ones(self.ages[1])


class _Shared:
    """One rate for many policies: adapted once, by the controller."""

    def __init__(self, rule: RateRule) -> None:
        self._rule = rule

    @property
    def fraction(self) -> float:
        return self._rule.fraction

    def adapt(self, load: Load) -> float:
        return self._rule.fraction

    def snapshot(self) -> dict[str, Any]:
        return {}


def decide(
    settings: OverloadSettings, manifest: Manifest, operators: Mapping[str, Operator]
) -> dict[str, Skipping]:
    """What each join leaves out in the batch after this manifest."""
    rule = _rule(settings.shed, manifest.control.get("rate"))
    return {name: _skipping(settings.shed, rule, operators[name], manifest) for name in settings.joins}


def learn(
    settings: OverloadSettings,
    before: Manifest,
    plan: Plan,
    reports: Sequence[TaskReport],
    after: Manifest,
    operators: Mapping[str, Operator],
    time: BatchTime,
    worth: Worth | None = None,
) -> dict[str, Any]:
    """What the controllers know after a batch: goes into its manifest."""
    rule = _rule(settings.shed, before.control.get("rate"))
    rows = sum(sum(report.offered) for report in reports)
    next_rows = _expected(rows, before.control.get("began_us"), plan.now_us, settings, time)
    growth = next_rows / rows if rows else 0.0
    works = {
        name: _work(JoinShape(operators[name]), before, after, name, growth, _offered(reports, name, RIGHT))
        for name in settings.joins
    }
    looked = {name: _looked(reports, name, JoinShape(operators[name])) for name in settings.joins}
    for name, values in (worth or {}).items():
        looked[name] = _valued(looked[name], values)
    full = sum(
        growth * _offered(reports, name, 1 - window) * float(works[name][window].sum()) / _left(plan, name)
        for name in settings.joins
        for window in (LEFT, RIGHT)
    )
    load = batch_load(
        rows=rows,
        busy_seconds=time.busy_seconds,
        trigger_seconds=settings.batch_seconds,
        comparisons=sum(int(c.comparisons.sum()) for pair in looked.values() for w in pair for c in w),
        outputs=sum(report.matches for report in reports),
        next_rows=next_rows,
        next_comparisons_full=full,
        join_seconds=_join_seconds(reports, settings.parallelism) if time.measures_joins else None,
    )
    # A batch without rows says nothing about what rows cost.
    if rows:
        rule.adapt(load)
    policies = {}
    for name in settings.joins:
        policy = _policy(settings.shed, JoinShape(operators[name]), rule, _known(before, name))
        if rows:
            policy.adapt(Telemetry(load, *looked[name], work=works[name]))
        policies[name] = policy.snapshot()
    return {
        "rate": rule.snapshot(),
        "policies": policies,
        "work": {name: [work.tolist() for work in both] for name, both in works.items()},
        "forget_us": {name: list(skipping.forget_us) for name, skipping in plan.skipping.items()},
        "began_us": plan.now_us,
    }


def _join_seconds(reports: Sequence[TaskReport], parallelism: int) -> float:
    """Time of all joins: each is as slow as its slowest instance, or as all of them on so many cores."""
    total = 0.0
    for name in {report.operator for report in reports}:
        seconds = [report.cpu_seconds for report in reports if report.operator == name]
        total += max(max(seconds), sum(seconds) / parallelism)
    return total


def _expected(
    rows: int, began_us: int | None, now_us: int, settings: OverloadSettings, time: BatchTime
) -> float:
    """Rows of the next batch, if they go on coming as they came for this one."""
    interval = max(settings.trigger_seconds, time.busy_seconds)
    since = (now_us - began_us) / 1e6 if began_us is not None else interval
    return rows * interval / max(since, 1e-3)


def _skipping(shed: Shed, rule: RateRule, operator: Operator, manifest: Manifest) -> Skipping:
    shape, known = JoinShape(operator), _known(manifest, operator.name)
    decision = _policy(shed, shape, rule, known).decision
    work = manifest.control.get("work", {}).get(operator.name)
    left, right = (np.array(one) for one in work) if work else shape.work
    first, second = (
        shares_by_age(probing.order, probing.fraction, one)
        for probing, one in zip(decision.windows, (left, right), strict=True)
    )
    return Skipping(
        fraction=rule.fraction,
        shares=(first, second),
        explore_share=decision.full_share if rule.fraction < 1 else 0.0,
        explore_depth=decision.full_depth,
        keep_share=decision.keep_share,
        forget_us=_forget(decision.reach, shape, operator.name, manifest),
    )


def _forget(reach: float, shape: JoinShape, name: str, manifest: Manifest) -> tuple[int, int]:
    """Stored rows below these times are given up; what was given up does not come back."""
    before = manifest.control.get("forget_us", {}).get(name, (BEGINNING_US, BEGINNING_US))
    if reach >= 1:
        return before[0], before[1]
    left, right = (
        max(before[side], _newest(manifest.pieces, name, side) - int(reach * shape.sides[side].back_us))
        for side in (LEFT, RIGHT)
    )
    return left, right


def _rule(shed: Shed, known: Mapping[str, Any] | None) -> RateRule:
    if shed.rate == "paper":
        return RateAdaptation() if known is None else RateAdaptation.restore(known)
    return RateModel() if known is None else RateModel.restore(known)


def _policy(shed: Shed, shape: JoinShape, rule: RateRule, known: Mapping[str, Any] | None) -> Policy:
    rate = _Shared(rule)
    if shed.join == "random":
        return RandomDrop(shape, rate)
    if shed.join == "window-reduction":
        return WindowReduction(shape, rate)
    if shed.join in ("auto", "selective"):
        return SelectivePolicy(shape, rate) if known is None else SelectivePolicy.restore(known, shape, rate)
    learns = shed.join == "adaptive"
    settings = AdaptiveSettings(shed.time_correlation and learns, shed.direction and learns, shed.sampling)
    if known is None:
        return AdaptiveShedding(shape, rate, settings)
    return AdaptiveShedding.restore(known, shape, rate, settings)


def _known(manifest: Manifest, name: str) -> Mapping[str, Any] | None:
    known: Mapping[str, Any] | None = manifest.control.get("policies", {}).get(name)
    return known


def _left(plan: Plan, name: str) -> float:
    """The part of the windows that is still stored, where rows were dropped or windows made shorter.

    r is a part of the work that there would be had nothing ever been left out.
    """
    skipping = plan.skipping.get(name)
    if skipping is None:
        return 1.0
    return skipping.keep_share if max(skipping.forget_us) == BEGINNING_US else skipping.fraction


def _offered(reports: Sequence[TaskReport], name: str, side: int) -> int:
    return sum(report.offered[side] for report in reports if report.operator == name)


def _valued(looked: Looked, worth: Mapping[int, float]) -> Looked:
    """Matches by what they are worth, in units of an average match of the batch.

    So a batch counts as much evidence as it has matches, whatever a match is worth.
    """
    found = sum(float(counts.matches.sum()) for pair in looked for counts in pair)
    average = sum(worth.values()) / found if found else 0.0
    values = [[np.zeros(counts.matches.size) for counts in pair] for pair in looked]
    for number, value in worth.items():
        window, exploring, age = cell_of(number)
        values[0 if exploring else 1][window][age] = value / average if average else 0.0
    full, chosen = (
        (AgeCounts(left, pair[LEFT].comparisons), AgeCounts(right, pair[RIGHT].comparisons))
        for (left, right), pair in zip(values, looked, strict=True)
    )
    return full, chosen


def _looked(reports: Sequence[TaskReport], name: str, shape: JoinShape) -> Looked:
    """What was looked at and found, per window."""
    mine = [report.looks for report in reports if report.operator == name and report.looks]

    def counts(window: int, seen: str, found: str) -> AgeCounts:
        def total(field: str) -> NDArray[Any]:
            zero = np.zeros(shape.ages[window])
            return np.asarray(np.sum([zero, *(getattr(looks[window], field) for looks in mine)], axis=0))

        return AgeCounts(total(found), total(seen))

    full = counts(LEFT, "explored", "explored_matches"), counts(RIGHT, "explored", "explored_matches")
    return full, (counts(LEFT, "chosen", "chosen_matches"), counts(RIGHT, "chosen", "chosen_matches"))


def _work(
    shape: JoinShape, before: Manifest, after: Manifest, name: str, growth: float, right_rows: int
) -> Work:
    """Stored rows that a new row will have in reach, per window and age, as far as manifests tell.

    New rows will lie in the time that follows the newest ones, as much of it as the last batch brought. Left
    ones also meet the right ones that come with them.
    """
    mine = [piece for piece in after.pieces if piece.operator == name and not piece.keyless]
    spans = [_span(before.pieces, mine, name, side, growth) for side in (LEFT, RIGHT)]
    left, right = (
        sum(
            _rows_by_age(shape.sides[side], [piece for piece in mine if piece.side == side], at_us)
            for at_us in _moments(*spans[1 - side])
        )
        / _MOMENTS
        for side in (LEFT, RIGHT)
    )
    if shape.sides[RIGHT].slot_us:
        right = right + _rows_by_age_of_new(shape.sides[RIGHT], spans, growth * right_rows)
    return np.asarray(left), np.asarray(right)


def _span(
    before: Sequence[Piece], after: Sequence[Piece], name: str, side: int, growth: float
) -> tuple[int, int]:
    """When the next rows of a side will lie: from the newest on, as far as the last ones went."""
    newest = _newest(after, name, side)
    if newest == BEGINNING_US:
        newest = _newest(after, name, 1 - side)
    earlier = _newest([piece for piece in before if not piece.keyless], name, side)
    brought = newest - earlier if earlier != BEGINNING_US else 0
    return newest, newest + int(growth * max(0, brought))


def _moments(begin_us: int, end_us: int) -> list[int]:
    """Some moments evenly spread over a span."""
    return [begin_us + (end_us - begin_us) * (2 * k + 1) // (2 * _MOMENTS) for k in range(_MOMENTS)]


def _rows_by_age(ages: Ages, pieces: Sequence[Piece], own_us: int) -> NDArray[np.float64]:
    """Rows in reach of a new row of this time."""
    rows = np.zeros(ages.count)
    for piece in pieces:
        count = sum(piece.bounds[1::2]) - sum(piece.bounds[::2])
        if not ages.slot_us:
            rows[0] += count
            continue
        # A piece that spans several slots has its rows spread over them.
        first, last = piece.first_us // ages.slot_us, piece.last_us // ages.slot_us
        for slot in range(first, last + 1):
            seen = ages.in_reach(own_us, slot) * count / (last - first + 1)
            rows[ages.number(own_us // ages.slot_us, slot)] += seen
    return rows


def _rows_by_age_of_new(ages: Ages, spans: Sequence[tuple[int, int]], count: float) -> NDArray[np.float64]:
    """The same for right rows that will come in the same batch."""
    rows = np.zeros(ages.count)
    for own_us in _moments(*spans[LEFT]):
        for at_us in _moments(*spans[RIGHT]):
            rows[ages.number(own_us // ages.slot_us, at_us // ages.slot_us)] += count / _MOMENTS**2
    return rows


def _newest(pieces: Sequence[Piece], name: str, side: int) -> int:
    times = [piece.last_us for piece in pieces if piece.operator == name and piece.side == side]
    return max(times, default=BEGINNING_US)


def looked_at(looks: Looks) -> int:
    """Pairs that rows looked at, exploring or not."""
    return sum(looks.chosen) + sum(looks.explored)
