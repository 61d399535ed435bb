"""Plays a scenario: batch after batch on a simulated clock, under any controller.

    trigger    |─────|─────|─────|─────|─────|
    batches    [▪]   [▪]   [███████████][██]  …       a long batch delays the next one, which has more rows

As in Spark, a batch begins at the trigger after the begin of the last one, or when that one ends.

Guarantee: the same scenario and controller give the same run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tidegate_lab.simulate.goal.arrivals import CELLS, GRAIN, SECONDS
from tidegate_lab.simulate.goal.operators import (
    Did,
    JoinShed,
    MatchShed,
    Shed,
    SimulatedJoin,
    SimulatedMatch,
    Span,
    WindowShed,
    state_of,
    streams_of,
)
from tidegate_lab.simulate.goal.scenario import UNLIMITED, Scenario

#: When the first batch begins, back to back.
_FIRST_SECONDS = 0.1
#: The part of its time until which a batch repairs, and the batches of work after which debt is written off.
_REPAIRS_UNTIL, _DEBT_MOST = 0.75, 20.0


@dataclass(frozen=True, eq=False)
class Batch:
    """One batch, as it went."""

    number: int
    begin: float
    end: float
    #: When its oldest row came; None without rows.
    oldest: float | None
    spans: Mapping[str, Span]
    shed: Mapping[str, Shed]
    did: Mapping[str, Did]
    #: Seconds by operator as measured, noise included.
    seconds: Mapping[str, float]
    #: Seconds without noise and pauses: of the batch, and of a batch of its rows with nothing shed; the same
    #: on a warm machine.
    expected: float
    expected_full: float
    warm_full: float
    #: Of its time: spent on pairs that earlier batches skipped.
    repair_seconds: float = 0.0

    @property
    def busy(self) -> float:
        """From its begin to its commit, without repair."""
        return self.end - self.begin - self.repair_seconds

    @property
    def latency(self) -> float | None:
        """From the moment that its oldest row came until it was over."""
        return None if self.oldest is None else self.end - self.oldest

    @property
    def sheds(self) -> bool:
        return any(one.found < (1 - 1e-6) * one.possible for one in self.did.values())


@dataclass(frozen=True, eq=False)
class Run:
    """A scenario as it was played, and what was still waiting at its end."""

    scenario: Scenario
    batches: Sequence[Batch]
    #: By operator: results that rows would have had which no batch has taken.
    left: Mapping[str, float]
    #: When the oldest of these rows came.
    left_since: float | None


class Controller(Protocol):
    """Decides what each batch sheds."""

    def plan(self, now: float) -> Mapping[str, Shed]: ...

    def limits(self) -> Mapping[str, int]:
        """By stream: units that the next batch may take of its source; none: all that wait."""
        ...

    def learn(self, batch: Batch, waiting: Mapping[str, int]) -> None: ...


def nothing_shed(scenario: Scenario) -> dict[str, Shed]:
    """By operator: the decision to shed nothing."""
    return {one.name: nothing_of(one) for one in scenario.operators}


def nothing_of(operator: object) -> Shed:
    if isinstance(operator, SimulatedJoin):
        return JoinShed()
    return MatchShed() if isinstance(operator, SimulatedMatch) else WindowShed()


def play(scenario: Scenario, controller: Controller) -> Run:
    """Batch after batch until the scenario is over."""
    machine, operators = scenario.machine, scenario.operators
    states = {one.name: state_of(one, scenario.rows) for one in operators}
    taken = dict.fromkeys(scenario.rows, 0)
    begin = scenario.starts + max(scenario.trigger_seconds, _FIRST_SECONDS)
    batches: list[Batch] = []
    debt = 0.0
    while begin < SECONDS:
        shed = controller.plan(begin)
        spans = {
            name: (taken[name], _end(scenario, name, taken[name], begin, controller.limits().get(name)))
            for name in scenario.rows
        }
        did = {
            one.name: states[one.name].batch(
                shed[one.name], [spans[stream] for stream in streams_of(one)], begin
            )
            for one in operators
        }
        batch = _timed(scenario, len(batches), begin, spans, shed, did)
        if scenario.repair:
            batch, debt = _repairing(scenario, batch, debt)
        batches.append(batch)
        taken = {name: end for name, (_, end) in spans.items()}
        there = _cell(begin)
        waiting = {name: int(rows[there] - rows[taken[name]]) for name, rows in scenario.rows.items()}
        controller.learn(batch, waiting)
        begin = machine.awake(batch.end, _next(scenario, batch))
    # Results of newer rows may still come in time.
    due = _cell(SECONDS - scenario.latency_seconds)
    left = {name: (first, max(first, due)) for name, first in taken.items()}
    rest = {
        one.name: states[one.name]
        .batch(nothing_of(one), [left[stream] for stream in streams_of(one)], SECONDS)
        .possible
        for one in operators
    }
    return Run(scenario, batches, rest, _oldest(scenario, left))


def _timed(
    scenario: Scenario,
    number: int,
    begin: float,
    spans: Mapping[str, Span],
    shed: Mapping[str, Shed],
    did: Mapping[str, Did],
) -> Batch:
    """How long the batch takes."""
    machine, operators = scenario.machine, scenario.operators
    common, own = machine.chance(number, len(operators))
    speed, cold = machine.speed(begin), machine.coldness(begin)
    overhead = machine.overhead(begin)
    scales = [speed * _uneven(one, begin, machine.cores) for one in operators]
    parts = np.array([scale * did[one.name].seconds for scale, one in zip(scales, operators, strict=True)])
    full = sum(scale * did[one.name].full_seconds for scale, one in zip(scales, operators, strict=True))
    noisy: NDArray[np.float64] = cold * common * own * parts
    measured = cold * common * overhead + machine.hiccup(number)
    work = float(parts.sum())
    return Batch(
        number,
        begin,
        machine.end(begin, machine.together(measured, float(noisy.sum()))),
        _oldest(scenario, spans),
        spans,
        shed,
        did,
        {one.name: float(seconds) for one, seconds in zip(operators, noisy, strict=True)},
        cold * machine.together(overhead, work),
        cold * machine.together(overhead, full),
        machine.together(overhead, full),
    )


def _repairing(scenario: Scenario, batch: Batch, debt: float) -> tuple[Batch, float]:
    """The batch with what it repairs of the debt before it; and the debt after it, in seconds of work."""
    spare = max(0.0, _REPAIRS_UNTIL * scenario.batch_seconds - batch.busy)
    repaired = min(spare, debt)
    skipped = sum(one.full_seconds - one.seconds for one in batch.did.values() if one.candidates is not None)
    debt = min(_DEBT_MOST * scenario.batch_seconds, debt - repaired + max(0.0, skipped))
    return replace(batch, end=batch.end + repaired, repair_seconds=repaired), debt


def _uneven(operator: object, now: float, cores: int) -> float:
    """The time of a join relative to that with the instances it began with."""
    if not isinstance(operator, SimulatedJoin):
        return 1.0
    return operator.uneven(now, cores) / operator.uneven(0.0, cores)


def _cell(now: float) -> int:
    return min(CELLS, int(now / GRAIN + 1e-6))


def _end(scenario: Scenario, name: str, first: int, now: float, limit: int | None) -> int:
    """The cell up to which a batch takes a stream."""
    there = _cell(now)
    if limit is None or scenario.sources.kind == UNLIMITED:
        return max(first, there)
    rows = scenario.rows[name]
    most = rows[first] + limit * scenario.sources.unit
    # At least one cell, or a source whose cells hold more than the limit would never give anything.
    last = int(np.searchsorted(rows, most, side="right")) - 1
    return max(first, min(there, max(last, first + 1)))


def _oldest(scenario: Scenario, spans: Mapping[str, Span]) -> float | None:
    """When the first row of these spans came."""
    found = []
    for name, (first, end) in spans.items():
        rows = scenario.rows[name]
        if rows[end] > rows[first]:
            found.append((int(np.searchsorted(rows, rows[first], side="right")) - 1) * GRAIN)
    return min(found, default=None)


def _next(scenario: Scenario, batch: Batch) -> float:
    trigger = scenario.trigger_seconds
    if not trigger:
        return batch.end
    return max(batch.end, (int(batch.begin / trigger + 1e-6) + 1) * trigger)
