"""A network under one goal, batch by batch on a simulated clock: punctuality, stability and recall.

    trigger    |─────|─────|─────|─────|─────|
    batches    [▪]   [▪]   [███████████][██]  …       a long batch delays the next one, which grows

A batch processes all rows that arrived since the last one began. Its time is its true cost, with noise
and outliers; the controller sees only counts and times. A row is on time if the wait for its batch and the
batch together are within the latency; the oldest row of each batch decides. Stale-row shedding comes before
anything else: a join lacks these rows as new and as stored rows, and no window is complete.

Guarantee: the same network, story and seed give the same run; all choosers see the same noise.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from tidegate.api.goal import Goal
from tidegate.control.goal.cost_model import Effort
from tidegate.control.goal.forecast import Arrivals
from tidegate.control.goal.goal_values import BatchSeen, Decided, GoalSettings
from tidegate.control.goal.level_controller import LevelController
from tidegate.control.goal.load_model import SOURCES, LoadModel, Took
from tidegate_lab.simulate.goal.goal_network import JOIN, KINDS, ROWS, WINDOWS, GoalNetwork, Operator
from tidegate_lab.simulate.goal.goal_story import SECONDS, Story

#: A batch that has nothing to do still takes this long to come.
_SECONDS_LEAST = 0.01


@dataclass(frozen=True)
class Batch:
    """One batch, as it went."""

    begin: float
    seconds: float
    #: From the moment that its oldest row came until it was over.
    latency: float
    levels: Mapping[str, float]
    keep_share: float
    #: By output: results that there were to be found, and that were found.
    possible: Mapping[str, float]
    found: Mapping[str, float]
    predicted: float | None = None


class Chooser(Protocol):
    """Whoever decides the levels."""

    levels: Mapping[str, float]
    keep_share: float

    def after(
        self, batch: BatchSeen, rows: float, now: float, stored: Mapping[str, float]
    ) -> Decided | None: ...


class Fixed:
    """The same levels for ever."""

    keep_share = 1.0

    def __init__(self, levels: Mapping[str, float]) -> None:
        self.levels = levels

    def after(self, batch: BatchSeen, rows: float, now: float, stored: Mapping[str, float]) -> None:
        return None


class Controlled:
    """The controller; `kinds` limits it to some mechanisms."""

    def __init__(self, network: GoalNetwork, told: Story, kinds: Collection[str] = KINDS) -> None:
        self._network, self._told = network, told
        self._offers = [o.believed for o in network.operators if o.kind in kinds]
        settings = GoalSettings(
            batch_seconds(told),
            told.latency_seconds,
            network.weights,
            trigger_seconds=told.trigger_seconds,
        )
        self.goal = LevelController(settings)
        self._arrivals = Arrivals()
        self.levels: Mapping[str, float] = {o.point: o.nothing for o in self._offers}
        self.keep_share = 1.0
        if told.wrong != 1:
            self.goal.state.model = _taught(network, told.wrong)

    def after(self, batch: BatchSeen, rows: float, now: float, stored: Mapping[str, float]) -> Decided:
        expected = self._arrivals.observe(
            round(rows), round(now * 1e6), batch.busy_seconds, self._told.trigger_seconds
        )
        ahead = {
            operator.name: operator.effort(expected.rows, stored[operator.name])
            for operator in self._network.operators
        }
        ahead[SOURCES] = Effort(expected.rows)
        decided = self.goal.adapt(replace(batch, lasting=expected.lasting), ahead, self._offers)
        self.levels, self.keep_share = decided.levels, decided.keep_share
        return decided


def _taught(network: GoalNetwork, wrong: float) -> LoadModel:
    """What a machine that is so many times as slow would have taught."""
    model, random = LoadModel(), np.random.default_rng(5)
    for _ in range(10):
        efforts = {
            o.name: o.effort(ROWS * random.uniform(0.5, 1), ROWS * o.window_seconds)
            for o in network.operators
        }
        took = {
            o.name: _took(o, efforts[o.name], wrong * float(o.rates @ efforts[o.name].parts))
            for o in network.operators
        }
        model.observe(efforts, network.overhead + sum(one.seconds for one in took.values()), took)
    return model


def _took(operator: Operator, effort: Effort, seconds: float) -> Took:
    """As its tasks say: those of joins tell rows from pairs."""
    if operator.kind != JOIN:
        return Took(seconds)
    of_rows = operator.rates[0] * effort.rows / max(float(operator.rates @ effort.parts), 1e-9)
    return Took.of(seconds, 1 - of_rows)


def batch_seconds(told: Story) -> float:
    return Goal(f"{told.latency_seconds} seconds").batch_seconds(round(told.trigger_seconds * 1e6))


def run(network: GoalNetwork, told: Story, chooser: Chooser) -> list[Batch]:
    """Batch after batch until the story is over."""
    before, begin = 0.0, max(told.trigger_seconds, 0.1)
    done: list[Batch] = []
    predicted: float | None = None
    while begin < SECONDS:
        random = np.random.default_rng([told.seed, len(done)])
        rows = ROWS * told.rows(before, begin) * (1 + told.jitter * random.standard_normal())
        levels, keep = dict(chooser.levels), chooser.keep_share
        stored = {o.name: _stored(told, o.window_seconds, begin, rows) for o in network.operators}
        did = {}
        for operator in network.operators:
            level = levels.get(operator.name, operator.truth.nothing)
            met = keep * _let_in(operator, done, begin, keep)
            did[operator.name] = _did(operator, level, rows, stored[operator.name], keep, met)
        late = begin >= told.from_second
        seconds = {
            o.name: (told.slower.get(o.name, 1.0) if late else 1.0)
            * float(o.rates @ did[o.name].effort.parts)
            * _noise(told, random)
            for o in network.operators
        }
        overhead = (network.overhead + late * told.added_overhead) * _noise(told, random)
        overhead *= told.coldness(len(done))
        outlier = 1 + random.uniform(0.2, 1) * (random.random() < told.outliers)
        busy = outlier * (overhead + sum(seconds.values()))
        possible = {name: one.possible for name, one in did.items()}
        found = {name: one.found for name, one in did.items()}
        done.append(Batch(begin, busy, begin - before + busy, levels, keep, possible, found, predicted))
        measured = {
            o.name: _took(o, did[o.name].effort, seconds[o.name])
            for o in network.operators
            if o.kind in told.measured
        }
        seen = BatchSeen(
            busy,
            {**{name: one.effort for name, one in did.items()}, SOURCES: Effort(rows)},
            measured,
            teaches=len(done) > told.cold_batches,
        )
        decided = chooser.after(seen, rows, begin, stored)
        predicted = None if decided is None else decided.planned
        before, begin = begin, begin + max(busy, told.trigger_seconds, _SECONDS_LEAST)
    return done


@dataclass(frozen=True)
class _Did:
    """What one operator did in a batch, the results that there were to be found, and those found."""

    effort: Effort
    possible: float
    found: float


def _did(operator: Operator, level: float, rows: float, stored: float, keep: float, met: float) -> _Did:
    """At this level, with a part of the rows let in, and a part of the pairs still there to be met."""
    full = operator.effort(rows, stored)
    left = np.array([keep, met, met, keep]) * operator.truth.kept_at(level)[operator.name]
    whole = keep == 1 or operator.kind != WINDOWS
    share = whole * met * (1 - operator.truth.lost_at(level)[operator.name])
    return _Did(Effort(*(full.parts * left).tolist()), full.outputs, share * full.outputs)


def _let_in(operator: Operator, done: list[Batch], begin: float, keep: float) -> float:
    """The part of the stored rows of a join that were let in when they came."""
    if operator.kind != JOIN:
        return 1.0
    since = begin - operator.window_seconds
    return float(np.mean([keep, *(batch.keep_share for batch in done if batch.begin >= since)]))


def _noise(told: Story, random: np.random.Generator) -> float:
    return float(np.exp(told.noise * random.standard_normal()))


def _stored(told: Story, window: float, begin: float, rows: float) -> float:
    """Rows that are stored when a batch begins, those of the batch included."""
    if not window:
        return 0.0
    return max(rows, ROWS * told.rows(max(0.0, begin - window), begin))
