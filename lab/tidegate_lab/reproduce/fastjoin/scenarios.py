"""Streams on a number of instances under a strategy: the runs behind the FastJoin figures.

Paper: FastJoin, section VI. 48 join instances, Θ = 2.2, unless a figure says otherwise; each of them makes so
many comparisons a second, and a batch is a second. What the paper leaves open and we had to choose:

- The join has a window of 10 s (the paper's join has an unbounded history, in which throughput only falls).
- Instances are those of both groups of the biclique together, as in the authors' published code (48 are 24
  and 24). Its monitors look once a second as well.
- *Throughput* is the input rate at which the heaviest instance has just no time left (the paper counts
  results a second at full speed). In this cost model work grows with the square of the rate.
- *Latency* is measured at a common rate: nine tenths of what the slowest of those compared sustains in its
  worst batch, so that queues are short and only migrations can make work pile up.
- ContRand has subgroups of two, as that code has by default. In this cost model larger ones do worse.

Guarantee: a run is a function of scenario, strategy and seed; strategies that are compared see the same rows.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from tidegate.route.baselines import ContRandStrategy, HashOnly
from tidegate.route.fastjoin.strategy import FastJoinStrategy
from tidegate.route.strategy import Strategy
from tidegate_lab.reproduce.experiment import Options
from tidegate_lab.reproduce.taxis import TaxiStreams, taxi_batches
from tidegate_lab.simulate.balance.instance_speed import Speed
from tidegate_lab.simulate.balance.join_costs import ComparedWithInstance
from tidegate_lab.simulate.balance.join_trace import JoinTrace
from tidegate_lab.simulate.balance.key_counts import Arrivals, count_arrivals
from tidegate_lab.simulate.balance.mean_latency import mean_latencies
from tidegate_lab.simulate.balance.recorded import Decision, Recorded
from tidegate_lab.simulate.balance.skewed_join import SkewedJoin, simulate
from tidegate_lab.workloads.skew import ZipfStreams, city_streams, zipf_batches

Streams = ZipfStreams | TaxiStreams

#: Comparisons a second and instance.
CAPACITY = 5e6
#: Gigabit Ethernet, rows of some 100 bytes.
MOVED_ROW_SECONDS = 1e-6
#: Choosing which keys move, per key of the giver: GreedyFit takes a tenth of a microsecond.
GREEDY_SECONDS = 1e-7
PARTITIONS = 1024
THETA = 2.2
#: Latency is measured where the busiest instance of the slowest strategy works this share of the time.
BUSY = 0.9

HASH, CONTRAND, FASTJOIN = "BiStream", "BiStream-ContRand", "FastJoin"
STRATEGIES: dict[str, Strategy] = {
    FASTJOIN: FastJoinStrategy(THETA),
    CONTRAND: ContRandStrategy(2),
    HASH: HashOnly(),
}
COLOURS = {FASTJOIN: 0, CONTRAND: 2, HASH: 1}


@dataclass(frozen=True)
class Scenario:
    """One setting of an experiment."""

    streams: Streams
    instances: int = 48
    biclique: bool = True
    window: int = 10
    #: Batches at the start that no average counts: windows fill, and first keys move.
    settled: int = 20


@dataclass(frozen=True)
class Run:
    """What came out of one."""

    scenario: Scenario
    trace: JoinTrace
    #: Per group of instances, batch by batch.
    decisions: tuple[tuple[Decision, ...], ...]

    @property
    def throughput(self) -> float:
        """Rows a second that the heaviest instance sustains, on average once settled."""
        return self.trace.throughput(CAPACITY, self.scenario.settled)

    @property
    def lowest(self) -> float:
        """Rows a second, on average, at which even the worst batch just fits."""
        rates = self.trace.sustained_rates(CAPACITY)[self.scenario.settled :]
        return float(rates.min() * self.trace.series("rows").mean())

    def throughputs(self) -> NDArray[np.float64]:
        """The same batch by batch, from the first."""
        return np.asarray(self.trace.sustained_rates(CAPACITY) * self.trace.series("rows"))

    def even_throughputs(self) -> NDArray[np.float64]:
        """What perfect balance would sustain, batch by batch."""
        return np.array([np.sqrt(CAPACITY / max(b.even, 1e-9)) * b.rows for b in self.trace.batches])

    def latencies(self, rate: float, chosen_key: float = GREEDY_SECONDS) -> NDArray[np.float64]:
        """Mean latency of each batch's rows, at `rate` rows a second."""
        speed = Speed(1 / CAPACITY, MOVED_ROW_SECONDS, chosen_key)
        return mean_latencies(self.decisions, speed, rate / float(self.trace.series("rows").mean()))

    def latency(self, rate: float) -> float:
        """On average once settled."""
        return float(self.latencies(rate)[self.scenario.settled :].mean())


def scenario_of(options: Options) -> Scenario:
    """The city of the paper's main figures: real if there is one, else generated; short for tests."""
    if options.real is not None:
        # A smaller city than the paper's, with some thousand places: fewer instances.
        return Scenario(TaxiStreams(options.real), instances=16)
    if options.quick:
        return Scenario(replace(city_streams((2_000, 10_000), 16), keys=3_000), window=5, settled=8)
    return Scenario(city_streams())


def about(options: Options, *, told: str = "") -> str:
    """The subtitle of a plot."""
    place = "San Francisco taxis" if options.real is not None else "generated city"
    return f"{place}: orders join tracks of the same place within 10 batches{told}\n{options.seeds_text}"


@lru_cache(maxsize=16)
def _counted(streams: Streams) -> Arrivals:
    batches = zipf_batches(streams) if isinstance(streams, ZipfStreams) else taxi_batches(streams)
    return count_arrivals(batches)


def arrivals(scenario: Scenario, seed: int) -> Arrivals:
    """What all strategies see."""
    return _counted(replace(scenario.streams, seed=seed))


def run(scenario: Scenario, strategy: Strategy, seed: int) -> Run:
    """One run; remembered within a process."""
    return _run(scenario, cast(Hashable, strategy), seed)


@lru_cache(maxsize=1024)
def _run(scenario: Scenario, strategy: Any, seed: int) -> Run:
    recorded = Recorded(strategy, detailed=True)
    join = SkewedJoin(
        scenario.instances,
        PARTITIONS,
        (scenario.window, scenario.window),
        ComparedWithInstance(),
        scenario.biclique,
        watch_share=0.0,
    )
    trace = simulate(arrivals(scenario, seed), recorded, join)
    groups = 1 + scenario.biclique
    decisions = tuple(tuple(recorded.decisions[group::groups]) for group in range(groups))
    return Run(scenario, trace, decisions)


def forget_runs() -> None:
    """Make the next runs anew."""
    _run.cache_clear()


def common_rate(scenarios: Sequence[Scenario], strategies: Sequence[Strategy], seed: int) -> float:
    """Rows a second at which no instance of any of these is ever busier than `BUSY`, once settled."""
    return BUSY * min(run(one, strategy, seed).lowest for one in scenarios for strategy in strategies)
