"""A rush of rows on a machine that cannot keep up: the scenario behind the selective join paper's figures.

Paper: selective join, experiments. Rates step from 100 to 500 to 300 and back to 100 tuples a second, per
stream, after about 60, 15 and 30 seconds; input buffers hold one second; everything adapts every 5 s.

    rate      ▁▁▁▁▁▁▁▁▁▁▁▁████████▅▅▅▅▅▅▅▅▅▅▅▁▁▁▁▁
              0   calm    60 rush 75   long   105  after

What the paper does not say and we had to choose: what its machine could do. Ours makes so many comparisons a
second that `fits` tuples a second and stream just fit (200, between the calm rate and the rush). The period
of the workload is twice the longer window, as in the paper.

Guarantee: a run is a function of scenario, setting and seed; runs are remembered within a process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from statistics import median

import numpy as np

from tidegate_lab.reproduce.selective_join.news import News, news_streams
from tidegate_lab.reproduce.selective_join.policies import POLICIES
from tidegate_lab.simulate.join.basic_windows import Windows
from tidegate_lab.simulate.join.counted_conditions import Condition, CountedOverlap
from tidegate_lab.simulate.join.machine import SECOND_US, Machine, Stream, paper_streams
from tidegate_lab.simulate.join.stream_join import StreamJoin
from tidegate_lab.simulate.join.trace import Trace
from tidegate_lab.workloads.selective_join import Steps, Workload

#: κ of the experiments over time; the paper names 0.6 and 0.8 and shows no other.
SKEW = 0.8
#: τ: no shift (figures 3 to 5), or 5/8 of the period.
NO_SHIFT, SHIFT = 0.0, 5 / 8
Stretch = tuple[float, float]


def one_window(seconds: float = 20.0) -> Windows:
    """A window on one of the streams only (figures 3 to 5), whose newest part is taken: no basic windows."""
    return Windows((round(seconds * SECOND_US), 0), 0)


def both_windows(seconds: float = 20.0, slot_seconds: float = 1.0) -> Windows:
    return Windows((round(seconds * SECOND_US),) * 2, round(slot_seconds * SECOND_US))


@dataclass(frozen=True)
class Rush:
    """The rates of a run and what fits; half of both is the same run with a quarter of the work."""

    #: Seconds: calm (windows fill), rush, the long part after it, and calm again.
    lasting: tuple[float, float, float, float] = (60, 15, 30, 15)
    rates: tuple[float, float, float, float] = (100, 500, 300, 100)
    #: Tuples a second and stream that the machine just manages with windows of `fitted_seconds`.
    fits: float = 200.0

    @property
    def steps(self) -> Steps:
        return Steps(tuple(zip(self.lasting, self.rates, strict=True)))

    def stretch(self, first: int, last: int | None = None) -> Stretch:
        """From the begin of one level to the end of it or of another."""
        edges = [0.0, *np.cumsum(self.lasting).tolist()]
        return edges[first], edges[(first if last is None else last) + 1]

    @property
    def rush(self) -> Stretch:
        return self.stretch(1)

    @property
    def long(self) -> Stretch:
        return self.stretch(2)

    @property
    def adapted(self) -> Stretch:
        """The last third of the rush: algorithm 1 has come down by then."""
        begin, end = self.rush
        return end - (end - begin) / 3, end

    @property
    def shedding(self) -> Stretch:
        """From the first decision that can know of the rush to the end of the long part."""
        return self.rush[0] + 5, self.long[1]


PAPER_RUSH = Rush()
#: At a quarter of the rates, and calm only until the windows are full: for tests.
QUICK_RUSH = Rush((25, 15, 30, 5), (25, 125, 75, 25), 50.0)


@dataclass(frozen=True)
class Scenario:
    """One experiment: rush, windows, streams, condition."""

    rush: Rush
    windows: Windows
    skew: float = SKEW
    shift_share: float = NO_SHIFT
    at_least: int = 3
    #: Windows that the machine was chosen for; None: those of the join.
    fitted_seconds: float | None = None
    #: Real items in place of the paper's workload; skew, shift and threshold then come with them.
    news: News | None = None
    tick_us: int = SECOND_US // 4

    @property
    def capacity(self) -> float:
        """Comparisons a second."""
        seconds = self.fitted_seconds or sum(self.windows.lengths_us) / SECOND_US
        return self.rush.fits**2 * seconds

    @property
    def workload(self) -> Workload:
        period = 2 * max(self.windows.lengths_us) / SECOND_US
        shift = Steps(((1.0, self.shift_share * period),))
        return Workload(skew=self.skew, period_seconds=period, shift_seconds=shift)


@lru_cache(maxsize=64)
def _streams(workload: Workload, steps: Steps) -> tuple[Stream, Stream]:
    return paper_streams(workload, (steps, steps))


def _inputs(scenario: Scenario, seed: int) -> tuple[tuple[Stream, Stream], Condition]:
    if scenario.news is not None:
        return news_streams(scenario.news, scenario.rush.steps, scenario.windows, seed)
    streams = _streams(replace(scenario.workload, seed=seed), scenario.rush.steps)
    return streams, CountedOverlap(scenario.at_least)


@cache
def run(scenario: Scenario, policy: str, seed: int) -> Trace:
    """One run; settings that are compared see the same rows."""
    steps, windows = scenario.rush.steps, scenario.windows
    streams, condition = _inputs(scenario, seed)
    machine = Machine(scenario.capacity, tick_us=scenario.tick_us, seed=seed)
    return StreamJoin(streams, windows, condition, machine).run(POLICIES[policy](windows), steps.seconds)


def ratios(
    scenario: Scenario, policy: str, over: str, stretch: Stretch, seeds: Sequence[int]
) -> tuple[float, ...]:
    """Output of one setting over that of another, seed by seed."""
    found = []
    for seed in seeds:
        one, other = (run(scenario, name, seed).total("outputs", *stretch) for name in (policy, over))
        found.append(one / max(1, other))
    return tuple(found)


def output_rate(scenario: Scenario, policy: str, stretch: Stretch, seeds: Sequence[int]) -> float:
    """Output tuples a second, median over the seeds."""
    begin, end = stretch
    return median(run(scenario, policy, seed).total("outputs", begin, end) / (end - begin) for seed in seeds)
