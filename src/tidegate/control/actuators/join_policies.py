"""The policies of a running join: the one that a `Shed` names, new or restored from the manifest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tidegate.api.goal import Shed
from tidegate.control.actuators.adaptive import AdaptiveSettings, AdaptiveShedding
from tidegate.control.actuators.paper_rate import FixedRate, RateAdaptation, RateSettings
from tidegate.control.actuators.policy import Policy, RandomDropPolicy, WindowReductionPolicy, Work
from tidegate.control.actuators.selective import SelectivePolicy
from tidegate.join.selective.reach import ages_of
from tidegate.join.within import Within
from tidegate.model.graph import OperatorTraits
from tidegate.model.times import LEFT, RIGHT
from tidegate.policies import PERIOD, Adaptive, RandomDrop, Selective, WindowReduction
from tidegate.quantities import duration_us
from tidegate.window.lifetime import Lifetime, RowsLifetime


class JoinShape:
    """The windows of a real join as policies see them (`policy.Shape`)."""

    def __init__(self, operator: OperatorTraits) -> None:
        within = operator.within
        assert not isinstance(within, (Lifetime, RowsLifetime)), "windows have no pairs to skip"
        self.sides = ages_of(within, LEFT), ages_of(within, RIGHT)
        self.lengths_us = within.probed_us if isinstance(within, Within) else (1, 1)

    @property
    def ages(self) -> tuple[int, int]:
        return self.sides[0].count, self.sides[1].count

    @property
    def work(self) -> Work:
        return np.ones(self.ages[0]), np.ones(self.ages[1])


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
    settings = AdaptiveSettings(False, False)
    if isinstance(chosen, Adaptive):
        settings = AdaptiveSettings(chosen.time_correlation, chosen.direction, chosen.explore_ratio)
    if known is None:
        return AdaptiveShedding(shape, rate, settings)
    return AdaptiveShedding.restore(known, shape, rate, settings)


def kind_of(shed: Shed) -> list[Any]:
    """The kind that a stored policy must have to be restored."""
    chosen = shed.policy
    learns = [chosen.time_correlation, chosen.direction] if isinstance(chosen, Adaptive) else []
    return [None if chosen is None else chosen.word, shed.rate, *learns]
