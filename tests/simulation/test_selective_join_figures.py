"""Figures 4 and 7 of the selective join paper, at half of its rates: counted cost, medians of five seeds.

Rates step from 50 to 250 to 150 rows a second; the capacity is what 100 rows a second take. The paper's 60
calm seconds are cut to 25, in which the windows of 20 s fill.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from statistics import median

import pytest

from tidegate.control.adaptive import AdaptiveSettings, AdaptiveShedding, partial_processing
from tidegate.control.rate import FixedRate, RateAdaptation
from tidegate.control.rate_model import RateModel
from tidegate.control.shedding import Policy, RandomDrop, Windows
from tidegate.join.thresholds import Overlap
from tidegate.papers.selective_join import Steps, Workload
from tidegate.sim.machine import SECOND_US, Machine
from tidegate.sim.paper_streams import paper_streams
from tidegate.sim.stored import Stream
from tidegate.sim.stream_join import StreamJoin
from tidegate.sim.trace import Trace

SEEDS = range(5)
RATE = Steps(((25, 50), (15, 250), (30, 150)))
RUSH, LATE_RUSH, AFTER, SHEDDING = (25, 40), (35, 40), (40, 70), (30, 70)
TICK_US = SECOND_US // 4
WINDOW_US = 20 * SECOND_US
ONE_WINDOW = Windows((WINDOW_US, 0), SECOND_US)
BOTH_WINDOWS = Windows((WINDOW_US, WINDOW_US), SECOND_US)

POLICIES: dict[str, Callable[[Windows], Policy]] = {
    "random drop": lambda windows: RandomDrop(windows, FixedRate(1.0)),
    "rate": lambda windows: partial_processing(windows, RateAdaptation()),
    "rate by model": lambda windows: partial_processing(windows, RateModel()),
    "time correlation": lambda windows: AdaptiveShedding(
        windows, RateAdaptation(), AdaptiveSettings(direction=False)
    ),
}


@cache
def streams(skew: float, shift: float, seed: int, rate: Steps = RATE) -> tuple[Stream, Stream]:
    return paper_streams(Workload(skew=skew, shift_seconds=Steps(((1, shift),)), seed=seed), (rate, rate))


@cache
def rush(policy: str, windows: Windows, skew: float, shift: float, seed: int) -> Trace:
    capacity = 100 * 100 * sum(windows.lengths_us) / SECOND_US
    join = StreamJoin(
        streams(skew, shift, seed), windows, Overlap(3), Machine(capacity, tick_us=TICK_US, seed=seed)
    )
    return join.run(POLICIES[policy](windows), RATE.seconds)


def gain(
    policy: str, over: str, stretch: tuple[int, int], windows: Windows, skew: float, shift: float
) -> float:
    """Output of one policy over that of another, median over the seeds."""
    ratios = []
    for seed in SEEDS:
        one, other = (rush(name, windows, skew, shift, seed) for name in (policy, over))
        ratios.append(one.total("outputs", *stretch) / other.total("outputs", *stretch))
    return median(ratios)


def test_figure_4_rate_adaptation_finds_half_more_than_random_drop_after_the_rush() -> None:
    assert gain("rate", "random drop", AFTER, ONE_WINDOW, 0.8, 0.0) >= 1.5


def test_figure_4_rate_adaptation_finds_twice_as_much_once_it_has_adapted_to_the_rush() -> None:
    """The paper's rule starts from r = 1 and takes three of its five-second periods to come down."""
    assert gain("rate", "random drop", LATE_RUSH, ONE_WINDOW, 0.8, 0.0) >= 2.0
    assert gain("rate", "random drop", RUSH, ONE_WINDOW, 0.8, 0.0) < 2.0


def test_figure_4_the_model_finds_much_more_than_the_papers_rule_over_the_whole_rush() -> None:
    assert gain("rate by model", "random drop", RUSH, ONE_WINDOW, 0.8, 0.0) >= 2.0
    assert gain("rate by model", "rate", RUSH, ONE_WINDOW, 0.8, 0.0) >= 1.3


@pytest.mark.parametrize("skew", [0.6, 0.8])
def test_figure_7_time_correlation_finds_half_more_than_rate_adaptation_alone(skew: float) -> None:
    assert gain("time correlation", "rate", SHEDDING, BOTH_WINDOWS, skew, 25.0) >= 1.5


@pytest.mark.parametrize(("fraction", "bar"), [(0.1, 1.18), (0.2, 1.10)])
@pytest.mark.parametrize("skew", [0.6, 0.8])
def test_figure_7_direction_adds_to_time_correlation(skew: float, fraction: float, bar: float) -> None:
    steady, gains = Steps(((45, 250),)), []
    for seed in SEEDS:
        found = []
        for direction in (False, True):
            settings = AdaptiveSettings(direction=direction)
            policy = AdaptiveShedding(BOTH_WINDOWS, FixedRate(fraction), settings)
            join = StreamJoin(
                streams(skew, 25.0, seed, steady),
                BOTH_WINDOWS,
                Overlap(3),
                Machine(tick_us=TICK_US, seed=seed),
            )
            trace = join.run(policy, steady.seconds)
            found.append(trace.total("outputs", 30) / trace.total("comparisons", 30))
        gains.append(found[1] / found[0])
    assert median(gains) >= bar
