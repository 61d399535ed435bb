"""Curves over the time of a run, and marks for its stretches, as the paper's figures over time have them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tidegate_lab.plots.plots import Curve
from tidegate_lab.reproduce.selective_join.policies import COLOURS
from tidegate_lab.reproduce.selective_join.scenarios import Rush, Scenario, run
from tidegate_lab.simulate.join.machine import SECOND_US

#: Output is counted over this much time: less is noise, more hides how fast a rule reacts.
_BIN_SECONDS = 2
RATE_COLOUR = 7


def rate_curve(rush: Rush) -> Curve:
    """Tuples a second and stream, as a staircase."""
    edges = [0.0, *np.cumsum(rush.lasting).tolist()]
    return Curve("stream rates", edges, [*rush.rates, rush.rates[-1]], "steps", colour=RATE_COLOUR)


def output_curve(
    scenario: Scenario,
    policy: str,
    seeds: Sequence[int],
    *,
    bin_seconds: int = _BIN_SECONDS,
    differ: bool = False,
) -> Curve:
    """Output tuples a second: median over the seeds, and the band from least to most.

    Where seeds stand for inputs that differ, neither says much, and the curve is their mean.
    """
    per_tick = np.array([run(scenario, policy, seed).ticks("outputs") for seed in seeds])
    ticks = bin_seconds * SECOND_US // scenario.tick_us
    bins = per_tick.shape[1] // ticks
    rates = per_tick[:, : bins * ticks].reshape(len(seeds), bins, ticks).sum(axis=2) / bin_seconds
    middles = (np.arange(bins) + 0.5) * bin_seconds
    return Curve(
        policy,
        middles.tolist(),
        (rates.mean(axis=0) if differ else np.median(rates, axis=0)).tolist(),
        low=() if differ else rates.min(axis=0).tolist(),
        high=() if differ else rates.max(axis=0).tolist(),
        colour=COLOURS[policy],
    )


def fraction_curve(
    scenario: Scenario, policy: str, seeds: Sequence[int], window: int, name: str, colour: int | None = None
) -> Curve:
    """The fraction of one window that is processed, median over the seeds, on the right axis."""
    found = fractions(scenario, policy, seeds, window)
    seconds = (np.arange(found.size) * scenario.tick_us / SECOND_US).tolist()
    return Curve(
        name,
        seconds,
        found.tolist(),
        "steps",
        right=True,
        colour=COLOURS[policy] if colour is None else colour,
    )


def fractions(scenario: Scenario, policy: str, seeds: Sequence[int], window: int) -> NDArray[np.float64]:
    """Per tick, median over the seeds."""
    return np.median([run(scenario, policy, seed).fractions()[:, window] for seed in seeds], axis=0)


def spans(rush: Rush) -> list[tuple[float, float, str]]:
    """The two stretches in which more comes than fits."""
    return [
        (*rush.rush, f"{rush.rates[1]:.3g} tuples/s"),
        (*rush.long, f"{rush.rates[2]:.3g} tuples/s"),
    ]
