"""Throughput and latency of all strategies along one setting: two figures out of one set of runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tidegate.route.strategy import Strategy
from tidegate_lab.plots.plots import Curve
from tidegate_lab.reproduce.curves import band_curve
from tidegate_lab.reproduce.fastjoin.scenarios import COLOURS, STRATEGIES, Run, Scenario, common_rate, run

Measure = Callable[["Position", Run, int], float]


@dataclass(frozen=True)
class Position:
    """A place on the x axis: the setting there, and the strategies by name."""

    at: float
    scenario: Scenario
    strategies: Mapping[str, Strategy] = field(default_factory=lambda: STRATEGIES)


def throughput(position: Position, one: Run, seed: int) -> float:
    """Rows a second."""
    return one.throughput


def latency_ms(positions: Sequence[Position], seeds: Sequence[int]) -> Measure:
    """At one rate for all these positions and strategies: the slowest of them still keeps up."""
    rates = {
        seed: min(common_rate([p.scenario], list(p.strategies.values()), seed) for p in positions)
        for seed in seeds
    }
    return lambda position, one, seed: 1000 * one.latency(rates[seed])


def latency_ms_each() -> Measure:
    """At a rate for each position, where they are too different for one."""

    def measure(position: Position, one: Run, seed: int) -> float:
        return 1000 * one.latency(common_rate([position.scenario], list(position.strategies.values()), seed))

    return measure


def run_all(positions: Sequence[Position], seeds: Sequence[int]) -> None:
    """Everything that will be asked for, in the order in which streams need to be counted only once."""
    for position in positions:
        for seed in seeds:
            for strategy in position.strategies.values():
                run(position.scenario, strategy, seed)


def measured(
    positions: Sequence[Position], name: str, seeds: Sequence[int], measure: Measure
) -> NDArray[np.float64]:
    """(seed, position) → figure."""
    return np.array(
        [[measure(p, run(p.scenario, p.strategies[name], seed), seed) for p in positions] for seed in seeds]
    )


def curves(positions: Sequence[Position], seeds: Sequence[int], measure: Measure) -> list[Curve]:
    """A curve per strategy: median over the seeds, band from least to most."""
    places = [position.at for position in positions]
    return [
        band_curve(name, places, measured(positions, name, seeds, measure), "points", COLOURS[name])
        for name in positions[0].strategies
    ]


def ratios(position: Position, name: str, over: str, seeds: Sequence[int], measure: Measure) -> list[float]:
    """One strategy's figure over another's at a position, seed by seed."""
    one, other = (measured([position], each, seeds, measure)[:, 0] for each in (name, over))
    found: list[float] = (one / other).tolist()
    return found
