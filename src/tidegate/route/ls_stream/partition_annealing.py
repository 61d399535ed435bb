"""Chooses the partitions that leave the straggler: simulated annealing for the largest migration impact.

Paper: Ls-Stream, algorithm 1 and equations 22 to 25 and 30 to 32. The value of a set of partitions is

    ΔR   its reduction of the difference between straggler and receiver              (22), (23)
    lb   its reduction of the sojourn times of both, by M/M/1 (`_sojourn`)           (24)
    mif  (ΔR + lb) / rows that must move                                             (25)

Neighbours differ in one partition, or in two where one alone would leave the limits: one leaves the set,
one joins it. (With single flips, as printed, a set that fills the limits has no neighbours.) A better set
is accepted, a worse one with probability e^((new − old) / T) (32), and T falls by a factor after every
`card(SP)` neighbours, as in algorithm 1.

Where we differ, and why:

- (26) asks for the smallest mif under "minimize"; the text below (25), step 22 and the conclusion ask for the
  largest, and only that makes sense. We maximise.
- ΔR is a load and lb a time. Each is divided by its largest possible value (the present difference; the two
  sojourn times), rows by the straggler's, and T by the mif of the start. So γ, units and scale do not
  matter.
- The printed start adds partitions at random and stops at the first one that leaves the straggler above the
  threshold, which nearly any first one does: the start is the empty set. We start with a greedy fill: most
  load per row first, or most load first, whichever brings more relief.
- Step 20 accepts a set that meets (30) *or* (31). Meeting one alone may overload the receiver or bring no
  relief, so we require both. Often no set meets both: while R_h + R_l > 2 · (1 + α) · mean one receiver
  cannot take enough. (30) then becomes: at least the relief of the start.
- Algorithm 1 returns the last set accepted; we return the best one found.

Guarantee: the relief lies between `least` (or that of the start, if less) and `most`, exclusive; the mif is
never below the start's; the same random numbers give the same answer; the search ends after steps ·
card(SP) neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.kernels import compiled

#: Rates below this count as zero: the rounding error after subtracting all of a rate.
NO_RATE = 1e-6


@dataclass(frozen=True)
class PartitionAnnealing:
    """The length of the search: T starts at 1 and is multiplied by `cooling`, `steps` times."""

    cooling: float = 0.75
    steps: int = 20
    seed: int = 0


@dataclass(frozen=True)
class Ends:
    """Straggler and receiver as the search sees them: load, input rate and capacity of each."""

    loads: tuple[float, float]
    rates: tuple[float, float]
    capacities: tuple[float, float]

    def packed(self) -> NDArray[np.float64]:
        return np.array([*self.loads, *self.rates, *self.capacities])


def choose_partitions(
    loads: NDArray[np.float64],
    rates: NDArray[np.float64],
    rows: NDArray[np.float64],
    ends: Ends,
    least: float,
    most: float,
    annealing: PartitionAnnealing,
    draw: int = 0,
) -> NDArray[np.bool_]:
    """Marks the straggler's partitions that should leave; none where nothing fits below `most`.

    The relief is at least `least`, where possible. `draw` varies the random numbers between decisions.
    """
    start = _start(loads, rows, least, most)
    if not start.any():
        return start
    generator = np.random.default_rng((annealing.seed, draw))
    neighbours = annealing.steps * len(loads)
    picks = generator.integers(0, len(loads), (neighbours, 2))
    coins = generator.random(neighbours)
    floor = min(least, float(loads[start].sum()))
    # A set without stored rows counts as one row, so that mif stays finite.
    one = 1.0 / max(float(rows.sum()), 1.0)
    return _anneal(
        loads, rates, one * rows, start, ends.packed(), floor, most, one, picks, coins, annealing.cooling
    )


def _start(
    loads: NDArray[np.float64], rows: NDArray[np.float64], least: float, most: float
) -> NDArray[np.bool_]:
    """The greedy start with more relief; at a tie the one that moves fewer rows per load."""
    by_density = fill(loads, np.argsort(-loads / np.maximum(rows, 1.0), kind="stable"), least, most)
    by_load = fill(loads, np.argsort(-loads, kind="stable"), least, most)
    relief = min(loads[by_density].sum(), least), min(loads[by_load].sum(), least)
    return by_density if relief[0] >= relief[1] else by_load


@compiled
def fill(
    loads: NDArray[np.float64], order: NDArray[np.int64], least: float, most: float
) -> NDArray[np.bool_]:
    """Marks the partitions that fit below `most`, in this order, until their loads add up to `least`."""
    chosen = np.zeros(loads.size, np.bool_)
    relief = 0.0
    for place in range(order.size):
        partition = order[place]
        if relief >= least:
            break
        if loads[partition] > 0 and relief + loads[partition] < most:
            chosen[partition] = True
            relief += loads[partition]
    return chosen


@compiled
def _sojourn(load: float, rate: float, capacity: float) -> float:
    """Equation 20 with E/μ = R/C: 1 / (μ − E) = (R/C) / (E · (1 − R/C)). Zero without input."""
    if load <= 0.0 or rate <= NO_RATE:
        return 0.0
    if load >= capacity:
        return np.inf
    busy = load / capacity
    return busy / (rate * (1.0 - busy))


@compiled
def _impact(ends: NDArray[np.float64], load: float, rate: float, rows_share: float) -> float:
    heavy, light, heavy_rate, light_rate, heavy_capacity, light_capacity = ends
    # (23) divided by the present difference, in loads per capacity because instances may be unequal.
    difference = heavy / heavy_capacity - light / light_capacity
    balance = load * (1.0 / heavy_capacity + 1.0 / light_capacity) / difference
    before = _sojourn(heavy, heavy_rate, heavy_capacity) + _sojourn(light, light_rate, light_capacity)
    after = _sojourn(heavy - load, heavy_rate - rate, heavy_capacity) + _sojourn(
        light + load, light_rate + rate, light_capacity
    )
    latency = (before - after) / before if before > 0.0 else 0.0
    return (balance + latency) / rows_share  # type: ignore[no-any-return]


@compiled
def _anneal(
    loads: NDArray[np.float64],
    rates: NDArray[np.float64],
    shares: NDArray[np.float64],
    start: NDArray[np.bool_],
    ends: NDArray[np.float64],
    least: float,
    most: float,
    smallest: float,
    picks: NDArray[np.int64],
    coins: NDArray[np.float64],
    cooling: float,
) -> NDArray[np.bool_]:
    flags, best = start.copy(), start.copy()
    load, rate, share = loads[flags].sum(), rates[flags].sum(), shares[flags].sum()
    value = _impact(ends, load, rate, max(share, smallest))
    best_value, scale, temperature = value, max(abs(value), 1e-300), 1.0
    for turn in range(coins.size):
        if turn > 0 and turn % loads.size == 0:
            temperature *= cooling
        first, second = picks[turn]
        sign = -1.0 if flags[first] else 1.0
        new_load = load + sign * loads[first]
        new_rate = rate + sign * rates[first]
        new_share = share + sign * shares[first]
        both = not (least <= new_load < most)
        if both:
            if flags[first] == flags[second]:
                continue
            new_load -= sign * loads[second]
            new_rate -= sign * rates[second]
            new_share -= sign * shares[second]
            if not (least <= new_load < most):
                continue
        new_value = _impact(ends, new_load, new_rate, max(new_share, smallest))
        if new_value > value or coins[turn] < np.exp((new_value - value) / (temperature * scale)):
            flags[first] = not flags[first]
            if both:
                flags[second] = not flags[second]
            load, rate, share, value = new_load, new_rate, new_share, new_value
            if value > best_value:
                best_value = value
                best[:] = flags
    return best
