"""Controllers that look good by one number: the judge must find out each of them.

AlwaysSheds    is on time, because it sheds most of the work all the time
NeverSheds     finds everything, too late
Oscillates     sheds nothing and nearly everything by turns: on average it does what it should
LeavesRows     takes few rows of its sources, so that its batches are short and nothing is shed
Knowing        no cheater: it knows true costs and the noise, and fits each batch. The bars are within reach.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate_lab.simulate.goal.arrivals import GRAIN
from tidegate_lab.simulate.goal.operators import (
    JoinShed,
    JoinState,
    MatchShed,
    Shed,
    Simulated,
    SimulatedJoin,
    SimulatedMatch,
    WindowShed,
    streams_of,
)
from tidegate_lab.simulate.goal.played import Batch, nothing_shed
from tidegate_lab.simulate.goal.scenario import Scenario

#: What `AlwaysSheds` and `Oscillates` leave of the work of joins and matches.
_LITTLE = 0.1
#: Windows that are dropped: all but one of so many.
_RUN = 4


class NeverSheds:
    """Sheds nothing."""

    def __init__(self, scenario: Scenario) -> None:
        self._nothing = nothing_shed(scenario)

    def plan(self, now: float) -> Mapping[str, Shed]:
        return self._nothing

    def limits(self) -> Mapping[str, int]:
        return {}

    def learn(self, batch: Batch, waiting: Mapping[str, int]) -> None:
        pass


class AlwaysSheds(NeverSheds):
    """Sheds most of the work, whatever comes."""

    def __init__(self, scenario: Scenario) -> None:
        super().__init__(scenario)
        self._much: dict[str, Shed] = {one.name: _little(one) for one in scenario.operators}

    def plan(self, now: float) -> Mapping[str, Shed]:
        return self._much


class Oscillates(AlwaysSheds):
    """Sheds most of the work of every second batch."""

    def __init__(self, scenario: Scenario) -> None:
        super().__init__(scenario)
        self._odd = False

    def plan(self, now: float) -> Mapping[str, Shed]:
        self._odd = not self._odd
        return self._much if self._odd else self._nothing


class LeavesRows(NeverSheds):
    """Takes a row of each source."""

    def __init__(self, scenario: Scenario) -> None:
        super().__init__(scenario)
        self._limits = dict.fromkeys(scenario.rows, 1)

    def limits(self) -> Mapping[str, int]:
        return self._limits


class Knowing(NeverSheds):
    """Fits the rows that are there into the time that 99 of 100 batches keep, by true costs and values."""

    def __init__(self, scenario: Scenario) -> None:
        super().__init__(scenario)
        self._scenario = scenario
        self._before = 0
        weights = sum(scenario.weights.values())
        self._weights = {name: weight / weights for name, weight in scenario.weights.items()}
        self._possible = {one.name: _possible(scenario, one) for one in scenario.operators}

    def plan(self, now: float) -> Mapping[str, Shed]:
        scenario, cell = self._scenario, int(now / GRAIN + 1e-6)
        span, self._before = (self._before, cell), cell
        slow = scenario.machine.coldness(now) * scenario.machine.noise_99
        # A batch after a long one has rows that have waited longer.
        time = min(scenario.batch_seconds, scenario.latency_seconds - (span[1] - span[0]) * GRAIN)
        room = time / slow - scenario.machine.overhead(now)
        items: list[tuple[float, float, str, int]] = []
        sizes: dict[str, int] = {}
        for one in scenario.operators:
            fixed, seconds, results = self._parts(one, span, now)
            room -= fixed
            worth = self._weights[one.name] / max(self._possible[one.name], 1e-9) * results
            sizes[one.name] = seconds.size
            items += [
                (float(w / max(s, 1e-12)), float(s), one.name, number)
                for number, (s, w) in enumerate(zip(seconds, worth, strict=True))
            ]
        taken = {name: np.zeros(size) for name, size in sizes.items()}
        for _, seconds_of, name, number in sorted(items, reverse=True):
            part = min(1.0, max(0.0, room) / max(seconds_of, 1e-12))
            taken[name][number] = part
            room -= part * seconds_of
        return {one.name: _taken(one, taken[one.name]) for one in scenario.operators}

    def _parts(
        self, one: Simulated, span: tuple[int, int], now: float
    ) -> tuple[float, NDArray[Any], NDArray[Any]]:
        """Seconds that nothing sheds; seconds and results of what can be shed."""
        scenario = self._scenario
        scale = scenario.machine.speed(now)
        if isinstance(one, SimulatedJoin):
            scale *= one.uneven(now, scenario.machine.cores) / one.uneven(0.0, scenario.machine.cores)
            rows, seconds, matches = JoinState(one, scenario.rows).parts([span, span], now)
            return scale * rows, scale * seconds.ravel(), matches.ravel()
        arrived = scenario.rows[streams_of(one)[0]]
        came = float(arrived[span[1]] - arrived[span[0]])
        if isinstance(one, SimulatedMatch):
            before, behind = one.costs
            count = one.hits.size
            return (
                scale * before * came,
                np.full(count, scale * behind * came / count),
                one.hits * (came / count),
            )
        # Windows are never dropped: a batch has all of a window's rows or none.
        return scale * one.cost * came, np.zeros(0), np.zeros(0)


def _possible(scenario: Scenario, one: Simulated) -> float:
    if isinstance(one, SimulatedJoin):
        span = (0, scenario.rows[one.streams[0]].size - 1)
        return float(JoinState(one, scenario.rows).parts([span, span], 0.0)[2].sum())
    rows = float(scenario.rows[streams_of(one)[0]][-1])
    return rows * float(one.hits.mean()) if isinstance(one, SimulatedMatch) else rows


def _taken(one: Simulated, taken: NDArray[np.float64]) -> Shed:
    if isinstance(one, SimulatedJoin):
        left, right = taken.reshape(2, -1)
        return JoinShed((left, right), level=float(taken.mean()))
    if isinstance(one, SimulatedMatch):
        return MatchShed(1 - taken, level=float(taken.mean()))
    return WindowShed()


def _little(one: Simulated) -> Shed:
    if isinstance(one, SimulatedJoin):
        left, right = (np.full(ages.count, _LITTLE) for ages in one.ages)
        return JoinShed((left, right), level=_LITTLE)
    if isinstance(one, SimulatedMatch):
        return MatchShed(np.full(one.hits.size, 1 - _LITTLE), level=_LITTLE)
    run = _RUN * one.slide_seconds
    # Rows of windows that overlap kept ones stay.
    gone = [(k * run + one.slide_seconds, (k + 1) * run) for k in range(int(1e3 / run))]
    rows = [(low - one.slide_seconds + one.size_seconds, high) for low, high in gone]
    return WindowShed(tuple(rows), tuple(gone), 1 - 1 / _RUN)
