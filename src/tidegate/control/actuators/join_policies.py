"""The policies of a running join: the one that a `Shed` names, new or restored from the manifest."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tidegate.api.goal import Shed
from tidegate.control.actuators.adaptive import AdaptiveSettings, AdaptiveShedding
from tidegate.control.actuators.paper_rate import FixedRate, RateAdaptation, RateRule, RateSettings
from tidegate.control.actuators.policy import (
    AgeCounts,
    Decision,
    Policy,
    RandomDropPolicy,
    Telemetry,
    WindowReductionPolicy,
    Work,
)
from tidegate.control.actuators.selective import SelectivePolicy
from tidegate.errors import FlowError
from tidegate.join.selective.reach import Ages, ages_of, shares_by_age
from tidegate.join.within import Within
from tidegate.model.graph import OperatorTraits
from tidegate.model.json_values import Snapshot
from tidegate.model.times import LEFT, RIGHT
from tidegate.policies import (
    PERIOD,
    Adaptive,
    JoinStrategy,
    Partial,
    RandomDrop,
    RunningJoinStrategy,
    Selective,
    WindowReduction,
)
from tidegate.quantities import duration_us
from tidegate.window.lifetime import Lifetime, RowsLifetime

if TYPE_CHECKING:
    from numpy.typing import NDArray


class JoinShape:
    """The windows of a real join as policies see them (`policy.Shape`)."""

    def __init__(self, operator: OperatorTraits) -> None:
        within = operator.within
        assert not isinstance(within, (Lifetime, RowsLifetime)), "windows have no pairs to skip"
        self.sides: tuple[Ages, Ages] = (ages_of(within, LEFT), ages_of(within, RIGHT))
        self.lengths_us: tuple[int, int] = within.probed_us if isinstance(within, Within) else (1, 1)

    @property
    def ages(self) -> tuple[int, int]:
        return self.sides[0].count, self.sides[1].count

    @property
    def work(self) -> Work:
        return np.ones(self.ages[0]), np.ones(self.ages[1])

    @property
    def costs(self) -> Work:
        """The work of each basic window of the join before anything is measured."""
        return self.work

    def seen(self, telemetry: Telemetry) -> Telemetry:
        """Counts by basic window of the join, as a policy sees them."""
        return telemetry

    def shares(self, decision: Decision, work: Work) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """What a decision means: the part of each basic window that is probed."""
        first, second = (
            shares_by_age(probing.order, probing.fraction, one)
            for probing, one in zip(decision.windows, work, strict=True)
        )
        return first, second


class OrderedShape(JoinShape):
    """The windows as the papers see them: a new row probes older rows of the other stream.

    Within a batch the left rows find all pairs, also those whose right row is newer: it lies in a basic
    window ahead of them. For the papers it is the right row that probes, in the left window. So a basic
    window ahead counts for the one of the other window at the same distance, and is probed like it:

        right window      ahead 2   ahead 1 │   0    1    2  …      seen from a left row
                             │         │
        left window    0     2         1                            seen from the right row

    Pairs of one batch within one basic window count for the right window.
    """

    def __init__(self, operator: OperatorTraits) -> None:
        super().__init__(operator)
        first = [min(max(0, side.ahead), side.count - 1) for side in self.sides]
        #: Basic windows that lie behind a new row; age 0 is the newest.
        self._own = self.sides[LEFT].count - first[LEFT], self.sides[RIGHT].count - first[RIGHT]
        #: Per basic window of the join, those of the left window first: the age that it counts for.
        self._age: NDArray[np.int64] = np.concatenate([self._ages(side, first) for side in (LEFT, RIGHT)])

    def _ages(self, side: int, first: list[int]) -> NDArray[np.int64]:
        mine, other = self.sides[side], self.sides[1 - side]
        numbers = np.arange(mine.count)
        apart = (mine.ahead - numbers) * mine.slot_us / max(1, other.slot_us)
        mirrored = np.clip(np.rint(apart) + other.ahead - first[1 - side], 0, self._own[1 - side] - 1)
        begin = (0, self._own[LEFT])
        behind = begin[side] + numbers - first[side]
        return np.where(numbers >= first[side], behind, begin[1 - side] + mirrored).astype(np.int64)

    @property
    def ages(self) -> tuple[int, int]:
        return self._own

    @property
    def costs(self) -> Work:
        left, right = ((np.arange(side.count) >= side.ahead).astype(np.float64) for side in self.sides)
        return left, right

    def seen(self, telemetry: Telemetry) -> Telemetry:
        full, chosen = (self._counts(counts) for counts in (telemetry.full, telemetry.chosen))
        work = None if telemetry.work is None else self._folded(telemetry.work)
        return replace(telemetry, full=full, chosen=chosen, work=work)

    def shares(self, decision: Decision, work: Work) -> tuple[tuple[float, ...], tuple[float, ...]]:
        left, right = super().shares(decision, self._folded(work))
        each = np.array(left + right)[self._age]
        return tuple(each[: self.sides[LEFT].count].tolist()), tuple(each[self.sides[LEFT].count :].tolist())

    def _counts(self, counts: tuple[AgeCounts, AgeCounts]) -> tuple[AgeCounts, AgeCounts]:
        matches = self._folded((counts[LEFT].matches, counts[RIGHT].matches))
        comparisons = self._folded((counts[LEFT].comparisons, counts[RIGHT].comparisons))
        left, right = (AgeCounts(*both) for both in zip(matches, comparisons, strict=True))
        return left, right

    def _folded(self, both: Work) -> Work:
        each = np.zeros(sum(self._own))
        np.add.at(each, self._age, np.concatenate(both))
        return each[: self._own[LEFT]], each[self._own[LEFT] :]


def shape_of(shed: Shed, operator: OperatorTraits) -> JoinShape:
    """The windows of a join as the policy of a `Shed` sees them."""
    ordered = not isinstance(shed.policy, Selective | RandomDrop)
    return OrderedShape(operator) if ordered else JoinShape(operator)


def rate_rule(shed: Shed, known: Mapping[str, Any] | None) -> RateAdaptation | FixedRate:
    """Algorithm 1, or the user's own number; otherwise r = 1, until the goal of the query gives a level."""
    if shed.rate != "paper":
        return FixedRate(1.0 if shed.rate == "auto" else float(shed.rate))
    chosen = shed.policy
    period = chosen.rate_period if isinstance(chosen, Adaptive) else PERIOD
    settings = RateSettings(period_seconds=duration_us(period, "rate_period") / 1e6)
    return RateAdaptation.restore(known, settings) if known else RateAdaptation(settings)


def policy_of(shed: Shed, shape: JoinShape, fraction: float, known: Mapping[str, Any] | None) -> Policy:
    """A policy with a given rate: the level controller decides it for all joins."""
    rate = FixedRate(fraction)
    chosen = shed.policy
    if isinstance(chosen, RandomDrop):
        return RandomDropPolicy(shape, rate)
    if isinstance(chosen, WindowReduction):
        return WindowReductionPolicy(shape, rate)
    if isinstance(chosen, Selective):
        return SelectivePolicy(shape, rate) if known is None else SelectivePolicy.restore(known, shape, rate)
    if not isinstance(chosen, Adaptive | Partial | None):
        return OwnPolicy(chosen, shape, rate, known)
    settings = AdaptiveSettings(False, False)
    if isinstance(chosen, Adaptive):
        period = duration_us(chosen.correlation_period, "correlation_period") / 1e6
        settings = AdaptiveSettings(chosen.time_correlation, chosen.direction, chosen.explore_ratio, period)
    if known is None:
        return AdaptiveShedding(shape, rate, settings)
    return AdaptiveShedding.restore(known, shape, rate, settings)


class OwnPolicy:
    """A policy of the user's own (`tidegate.policies.JoinStrategy`), checked."""

    def __init__(
        self, chosen: JoinStrategy, windows: JoinShape, rate: RateRule, known: Mapping[str, Any] | None
    ) -> None:
        self._chosen, self._windows, self._rate = chosen, windows, rate
        self._running: RunningJoinStrategy = chosen.build(windows, None if known is None else known["own"])

    @property
    def decision(self) -> Decision:
        decision = self._running.decide(self._rate.fraction)
        ages = self._windows.ages
        valid = isinstance(decision, Decision) and all(
            0 <= probing.fraction <= 1 and set(probing.order) <= set(range(count))
            for probing, count in zip(decision.windows, ages, strict=True)
        )
        if not (valid and 0 <= decision.full_share <= 1 and decision.keep_share == decision.reach == 1):
            raise FlowError(
                f"The join policy {self._chosen.word!r} decided something that no join can do",
                code="JOIN_POLICY_DECISION",
                got=decision,
                why="A policy of your own says which parts of the windows rows probe; all rows are stored",
                do="Return a Decision with fractions and full_share in 0 … 1, and with ages below "
                f"{ages[LEFT]} and {ages[RIGHT]}",
            )
        return decision

    def adapt(self, telemetry: Telemetry) -> Decision:
        self._running.learn(telemetry)
        return self.decision

    def snapshot(self) -> Snapshot:
        own = dict(self._running.snapshot())
        try:
            json.dumps(own, allow_nan=False)
        except (TypeError, ValueError) as cause:
            raise FlowError(
                f"The snapshot of the join policy {self._chosen.word!r} is not JSON",
                code="JOIN_POLICY_SNAPSHOT",
                got=cause,
                why="It is stored in the checkpoint, so that a restart goes on with it",
                do="Return dicts with text keys, lists, texts, finite numbers, booleans and None",
            ) from cause
        return {"own": own}


def kind_of(shed: Shed) -> list[Any]:
    """The kind that a stored policy must have to be restored."""
    chosen = shed.policy
    learns = [chosen.time_correlation, chosen.direction] if isinstance(chosen, Adaptive) else []
    return [None if chosen is None else chosen.word, shed.rate, *learns]
