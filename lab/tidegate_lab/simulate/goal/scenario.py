"""A scenario from a seed: streams, operators, a machine, a goal, and what goes wrong.

At a rate of 1 a batch of one interval takes exactly its time budget, overhead included, on a warm machine. At
a rate of 2 a join does four times the work, once its windows are full. Rates are limited, so that the deepest
levels would keep every batch on time.

Guarantee: the same seed gives the same scenario. Kinds of rates and of disturbances take turns by seed: 72
seeds in a row have every pair of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tidegate.api.goal import Goal
from tidegate_lab.simulate.goal.arrivals import CELLS, GRAIN, RateShape, cumulative, shape
from tidegate_lab.simulate.goal.arrivals import KINDS as RATE_KINDS
from tidegate_lab.simulate.goal.machine import Machine
from tidegate_lab.simulate.goal.operators import (
    JOIN,
    MATCH,
    WINDOW,
    Rows,
    Simulated,
    SimulatedJoin,
    SimulatedMatch,
    SimulatedWindow,
    streams_of,
)
from tidegate_lab.workloads.sifters import Workload, draw_queries, draw_rows, hits

#: Rows a second of a stream at a rate of 1.
ROWS = 10_000.0
#: Batches that begin so soon after a step are not judged.
SETTLING = 10.0
#: What is wrong with the machine; scenarios take turns.
DISTURBANCES = ("none", "cold", "noise", "pauses", "slower", "faster", "state", "sink", "uneven")
#: What sources say: nothing can be limited, rows that wait are known, or they are not.
UNLIMITED, SAYS_WAITING, SILENT = "unlimited", "says what waits", "limited"
#: Kinds of rates that are calm for a while, so that a backlog can be drained; and for how many times its
#: length a backlog may hold up later rows.
_CALM_AT_FIRST, _DRAINS = ("step", "burst", "ramp"), 3.0
#: Points of the space of a match.
_POINTS = 1500
#: The part of its time that a batch may need at the deepest levels, one time in a hundred; the least highest
#: rate of a scenario; and how often one is drawn until it allows that.
_DEEPEST_USES, _RATE_LEAST, _ATTEMPTS = 0.7, 1.3, 200


@dataclass(frozen=True)
class Sources:
    """What sources of all streams can do."""

    kind: str = UNLIMITED
    #: Rows of a file.
    unit: int = 1


@dataclass(frozen=True, eq=False)
class Scenario:
    """One run of one query."""

    seed: int
    rate: RateShape
    disturbance: str
    #: Rows by the end of each cell of the clock, by stream.
    rows: Rows
    operators: tuple[Simulated, ...]
    machine: Machine
    #: By operator: the weight of its output.
    weights: dict[str, float]
    trigger_seconds: float
    latency_seconds: float
    sources: Sources = Sources()
    #: When the query starts: rows that came before wait at their sources.
    starts: float = 0.0
    #: Skipped pairs are repaired in spare time, so no row may be dropped as stale.
    repair: bool = False

    @cached_property
    def batch_seconds(self) -> float:
        """The time budget of a batch."""
        return Goal(f"{self.latency_seconds} seconds").batch_seconds(round(self.trigger_seconds * 1e6))

    @property
    def interval(self) -> float:
        return max(self.trigger_seconds, self.batch_seconds)

    @property
    def steps(self) -> tuple[float, ...]:
        """Moments after which nobody judges for a while."""
        own = [one.skewed_from for one in self.operators if isinstance(one, SimulatedJoin)]
        return (self.starts, *self.rate.steps, *self.machine.jumps, *(at for at in own if np.isfinite(at)))

    def drains(self, at: float) -> bool:
        """Whether rows that waited at the start may still hold up later ones."""
        return self.starts > 0 and at < self.starts + SETTLING + _DRAINS * self.starts

    def judged(self, at: float) -> bool:
        return at >= self.starts and all(not step <= at < step + SETTLING for step in self.steps)

    @cached_property
    def _judged_until(self) -> NDArray[np.float64]:
        """Judged seconds up to the end of each cell of the clock."""
        cells = np.arange(CELLS) * GRAIN
        judged = cells >= self.starts - 1e-9
        for step in self.steps:
            judged &= (cells < step - 1e-9) | (cells >= step + SETTLING - 1e-9)
        return np.append(0.0, np.cumsum(judged) * GRAIN)

    def judged_times(self, begin: float, end: float) -> float:
        """How often a batch counts: once, or as often as its time would have had batches; 0: not at all."""
        first, last = (min(CELLS, int(at / GRAIN + 1e-6)) for at in (begin, end))
        seconds = float(self._judged_until[last] - self._judged_until[first])
        return max(float(self.judged(begin)), seconds / self.interval)

    def steady(self, at: float) -> bool:
        """Whether neither rate nor machine have changed for a while."""
        calm = any(begin <= at < end for begin, end in self.rate.steady)
        paused = any(pause <= at < pause + SETTLING for pause, _ in self.machine.pauses)
        return calm and not paused and self.judged(at) and self.machine.coldness(at) < 1.1


def scenario(seed: int) -> Scenario:
    """The scenario of a seed."""
    for attempt in range(_ATTEMPTS):
        found = _drawn(seed, attempt)
        if found is not None:
            return found
    raise AssertionError(f"no scenario of seed {seed} can be kept on time")


def _drawn(seed: int, attempt: int) -> Scenario | None:
    """A scenario; None where the deepest levels would not keep it on time at a rate that fits without any."""
    random = np.random.default_rng([seed, 7, attempt])
    rate = shape(RATE_KINDS[seed % len(RATE_KINDS)], random)
    disturbance = DISTURBANCES[seed % len(DISTURBANCES)]
    latency, trigger = _clock(random)
    budget = Goal(f"{latency} seconds").batch_seconds(round(trigger * 1e6))
    streams = {name: float(random.uniform(0.5, 1.5)) for name in "abc"}
    jitter = float(random.uniform(0.0, 0.08))
    fixed = float(random.uniform(0.1, 0.35))
    names = _names(random)
    shares = random.dirichlet(np.full(len(names), 3.0)) * (1 - fixed) * budget
    interval = max(trigger, budget)
    operators: tuple[Simulated, ...] = tuple(
        _OPERATORS[name.rstrip("0123456789")](name, float(share) / interval, streams, random, disturbance)
        for name, share in zip(names, shares, strict=True)
    )
    weights = {
        name: float(one) for name, one in zip(names, random.choice([1, 1, 2, 5], len(names)), strict=True)
    }
    kind = str(random.choice([UNLIMITED, UNLIMITED, SAYS_WAITING, SAYS_WAITING, SILENT]))
    sources = Sources(kind, 1 if kind == UNLIMITED else int(random.choice([1, 500])))
    machine = _machine(seed, fixed * budget, budget, random, disturbance)
    most = _rate_most(operators, streams, machine, budget, interval)
    if most < _RATE_LEAST:
        return None
    rate = replace(rate, tenths=np.minimum(rate.tenths, most))
    rows = {name: cumulative(rate, ROWS * part, jitter, random) for name, part in streams.items()}
    starts, repair = _history(seed, rate, sources)
    return Scenario(
        seed,
        rate,
        disturbance,
        rows,
        operators,
        replace(machine, started=starts),
        weights,
        trigger,
        latency,
        sources,
        starts,
        repair,
    )


def _history(seed: int, rate: RateShape, sources: Sources) -> tuple[float, bool]:
    """When the query starts, and whether it repairs: one scenario in four each, where that is possible."""
    random = np.random.default_rng([seed, 11])
    starts, repair = float(np.rint(random.uniform(6, 12))), bool(random.random() < 0.25)
    waits = random.random() < 0.5 and sources.kind != UNLIMITED and rate.kind in _CALM_AT_FIRST
    return (starts if waits else 0.0), repair


def _rate_most(
    operators: tuple[Simulated, ...],
    streams: dict[str, float],
    machine: Machine,
    budget: float,
    interval: float,
) -> float:
    """The highest rate at which joins and matches at their deepest levels keep batches on time."""
    each = 0.0
    for one in operators:
        rows = ROWS * interval * sum(streams[stream] for stream in streams_of(one))
        if isinstance(one, SimulatedJoin):
            uneven = one.uneven(one.skewed_from, machine.cores) if one.skewed else 1.0
            each += one.costs[0] * rows * max(1.0, uneven)
        elif isinstance(one, SimulatedWindow):
            # Windows are dropped as a whole, so a batch has all of a window's rows or none.
            each += one.cost * rows
        else:
            each += one.costs[0] * rows
    slowest = machine.noise_99 * max(1.0, machine.slower[1])
    overhead = machine.fixed_seconds + machine.sink[1]
    return (_DEEPEST_USES * budget / slowest - overhead) / max(each, 1e-9)


def _clock(random: np.random.Generator) -> tuple[float, float]:
    """Latency and trigger; 0: batches run back to back."""
    pairs = [(2.0, 1.0), (2.0, 1.0), (2.0, 0.5), (4.0, 2.0), (4.0, 1.0), (3.0, 0.0)]
    return pairs[int(random.integers(len(pairs)))]


def _names(random: np.random.Generator) -> list[str]:
    counts = {
        JOIN: int(random.integers(1, 5)),
        WINDOW: int(random.integers(0, 3)),
        MATCH: int(random.integers(0, 2)),
    }
    return [f"{kind}{number}" for kind, count in counts.items() for number in range(1, count + 1)]


def _machine(
    seed: int, fixed: float, budget: float, random: np.random.Generator, disturbance: str
) -> Machine:
    """Every machine warms up a little and is a little noisy; the disturbance of a scenario is large."""
    cold = disturbance == "cold"
    slower = {"slower": 2.0, "faster": 0.5}.get(disturbance)
    at = float(random.uniform(45, 70))
    pauses: tuple[tuple[float, float], ...] = ()
    if disturbance == "pauses":
        times = np.sort(random.uniform(20, 115, int(random.integers(3, 8))))
        pauses = tuple((float(time), float(random.uniform(0.2, 3.0))) for time in times)
    return Machine(
        seed,
        fixed,
        noise=float(random.uniform(0.1, 0.25))
        if disturbance == "noise"
        else float(random.uniform(0.01, 0.05)),
        cold_times=float(random.uniform(2.0, 6.0)) if cold else float(random.uniform(1.0, 2.0)),
        cold_seconds=float(random.uniform(8, 30)) if cold else 3.0,
        pauses=pauses,
        slower=(np.inf, 1.0) if slower is None else (at, slower),
        sink=(at, float(random.uniform(0.1, 0.3)) * budget) if disturbance == "sink" else (np.inf, 0.0),
    )


def _join(
    name: str, share: float, streams: dict[str, float], random: np.random.Generator, disturbance: str
) -> SimulatedJoin:
    """`share`: seconds of work per second of input at a rate of 1."""
    left, right = random.permutation(sorted(streams))[:2].tolist()
    window = float(random.choice([5.0, 10.0, 20.0]))
    rates = [ROWS * streams[left], ROWS * streams[right]]
    key_share = float(1 / random.choice([1, 50, 1000]))
    pairs = 2 * window * rates[0] * rates[1] * key_share
    density = float(random.uniform(0.02, 0.3) * sum(rates) / pairs)
    of_rows, of_matches = float(random.uniform(0.1, 0.4)), float(random.uniform(0.05, 0.2))
    parts = of_rows / sum(rates), (1 - of_rows - of_matches) / pairs, of_matches / (density * pairs)
    peaks = [(float(random.uniform(0, 1)), float(random.uniform(0.08, 0.3))) for _ in range(2)]
    uneven = disturbance == "uneven"
    skewed = tuple(random.dirichlet(np.full(4, 2.0)).tolist())
    return SimulatedJoin(
        name,
        (left, right),
        window,
        (peaks[0], peaks[1]),
        everywhere=float(random.choice([0.05, 0.3, 5.0])),
        moves=float(random.choice([0.0, 0.0, 0.005])),
        key_share=key_share,
        density=density,
        costs=(share * parts[0], share * parts[1], share * parts[2]),
        by_state=float(random.uniform(0.2, 0.6)) if disturbance == "state" else 0.0,
        usual=window * sum(rates),
        skewed=skewed if uneven else (),
        skewed_from=60.0 if uneven else np.inf,
    )


def _window(
    name: str, share: float, streams: dict[str, float], random: np.random.Generator, disturbance: str
) -> SimulatedWindow:
    stream = str(random.choice(sorted(streams)))
    size, slide = random.choice([(1.0, 1.0), (2.0, 1.0), (5.0, 5.0), (4.0, 2.0)])
    gap = int(random.integers(4, 20))
    return SimulatedWindow(name, stream, float(size), float(slide), gap, share / (ROWS * streams[stream]))


def _match(
    name: str, share: float, streams: dict[str, float], random: np.random.Generator, disturbance: str
) -> SimulatedMatch:
    stream = str(random.choice(sorted(streams)))
    seed = int(random.integers(1000))
    workload = workload_of(seed)
    points = draw_rows(workload, _POINTS)
    found = hits(points, draw_queries(workload).boxes).astype(np.int32)
    rows = ROWS * streams[stream]
    return SimulatedMatch(name, stream, points, found, (0.1 * share / rows, 0.9 * share / rows), seed)


def workload_of(seed: int) -> Workload:
    """The rows and queries of a match."""
    return Workload(query_count=60, query_sides=(0.02, 0.1), seed=seed)


_Draw = Callable[[str, float, dict[str, float], np.random.Generator, str], Simulated]
_OPERATORS: dict[str, _Draw] = {JOIN: _join, WINDOW: _window, MATCH: _match}
