"""Targets for the goal controller: on time, stable, close to the best fixed plan, better than one mechanism.

Bars (ours): in 50 stories 99 % of the judged batches are on time, levels change direction at most once in 10
batches under steady load, and the weighted recall is at least 0.95 of that of the best fixed plan that is on
time as often (found by search with the true costs). In 20 networks under steady overload, choosing among all
mechanisms gives at least 1.15 times the weighted recall of the best single kind (joins, matches or windows;
within a kind, the same rule chooses among all of its operators).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tidegate.control.goal.load_model import LoadModel
from tidegate.control.goal.optimiser import PlanForecast
from tidegate_lab.simulate.goal.goal_network import KINDS, ROWS, GoalNetwork, generated
from tidegate_lab.simulate.goal.goal_run import Batch, Controlled, Fixed, batch_seconds, run
from tidegate_lab.simulate.goal.goal_story import Story, story

#: The shares of batches on time that count as keeping the goal; fixed plans that are tried around the best.
ON_TIME, _TRIED = 0.99, 12
#: Seconds of a story that are steady throughout.
_STEADY_FROM = 40.0


@dataclass(frozen=True)
class Kept:
    """One story."""

    seed: int
    kind: str
    #: The share of judged batches that were on time; weighted recall; that of the best fixed plan.
    on_time: float
    judged: int
    recall: float
    recall_fixed: float | None
    #: Batches that let in the freshest rows alone, because nothing else was enough.
    stale: int
    #: Changes of direction per 10 batches, of the level that does so most; None where input is not steady.
    turns: float | None

    @property
    def of_fixed(self) -> float | None:
        return None if self.recall_fixed is None else self.recall / self.recall_fixed


def kept(seed: int, search: bool = True) -> Kept:
    """One story, controlled, and by the best fixed plan where that is searched for."""
    network = generated(seed)
    told = story(seed, [operator.name for operator in network.operators])
    batches = run(network, told, Controlled(network, told))
    judged = [batch for batch in batches if told.judged(batch.begin)]
    steady = told.kind in ("steady", "wrong model")
    return Kept(
        seed,
        told.kind,
        on_time(told, batches),
        len(judged),
        recall(network, batches),
        best_fixed(network, told) if search else None,
        sum(batch.keep_share < 1 for batch in batches),
        turns([batch for batch in batches if batch.begin > _STEADY_FROM]) if steady else None,
    )


def on_time(told: Story, batches: Sequence[Batch]) -> float:
    judged = [batch.latency <= told.latency_seconds for batch in batches if told.judged(batch.begin)]
    return float(np.mean(judged))


def recall(network: GoalNetwork, batches: Sequence[Batch]) -> float:
    """The mean over outputs of the share of their results that was found, by weight."""
    found, weights = [], []
    for name, weight in network.weights.items():
        possible = sum(batch.possible[name] for batch in batches)
        found.append(sum(batch.found[name] for batch in batches) / possible)
        weights.append(weight)
    return float(np.average(found, weights=weights))


def turns(batches: Sequence[Batch]) -> float:
    """Changes of direction per 10 batches, of the level that does so most."""
    most = 0
    for point in batches[0].levels:
        moves = np.diff([batch.levels[point] for batch in batches])
        signs = np.sign(moves[np.abs(moves) > 1e-9])
        most = max(most, int((np.diff(signs) != 0).sum()))
    return 10 * most / len(batches)


def best_fixed(network: GoalNetwork, told: Story) -> float:
    """The weighted recall of the best plan that never changes and is on time as often as it must be."""
    random = np.random.default_rng([told.seed, 43])
    tried: dict[float, tuple[float, dict[str, float]]] = {}
    low, high = 0.0, 3.0 * batch_seconds(told)
    for _ in range(_TRIED):
        middle = (low + high) / 2
        levels = _fitting(network, told, middle)
        batches = run(network, told, Fixed(levels))
        if on_time(told, batches) >= ON_TIME:
            tried[recall(network, batches)] = middle, levels
            low = middle
        else:
            high = middle
    if not tried:
        return recall(network, run(network, told, Fixed(_fitting(network, told, 0.0))))
    best = max(tried)
    _, levels = tried[best]
    for _ in range(_TRIED):
        near = _shaken(network, levels, random)
        batches = run(network, told, Fixed(near))
        if on_time(told, batches) >= ON_TIME and recall(network, batches) > best:
            best, levels = recall(network, batches), near
    return best


def _shaken(network: GoalNetwork, levels: dict[str, float], random: np.random.Generator) -> dict[str, float]:
    """Levels a little off."""
    near = {}
    for operator in network.operators:
        first, last = sorted((operator.truth.levels[0], operator.truth.levels[-1]))
        moved = levels[operator.name] + 0.05 * (last - first) * random.standard_normal()
        near[operator.name] = float(np.clip(moved, first, last))
    return near


def _fitting(network: GoalNetwork, told: Story, target: float) -> dict[str, float]:
    """The best levels, by true costs and losses, for the heaviest second of a story to take so long."""
    rate = max(rate for _, rate in told.rates)
    rows = ROWS * rate * max(told.trigger_seconds, batch_seconds(told))
    ahead = {o.name: o.effort(rows, ROWS * rate * o.window_seconds) for o in network.operators}
    model = _Known(network, told)
    return (
        PlanForecast(model, ahead, [o.truth for o in network.operators], network.weights, {})
        .fit(target)
        .levels
    )


class _Known(LoadModel):
    """True costs."""

    def __init__(self, network: GoalNetwork, told: Story) -> None:
        super().__init__()
        self._known = {o.name: told.slower.get(o.name, 1.0) * o.rates for o in network.operators}
        self.observe_empty(network.overhead + told.added_overhead)

    def rates(self, operator: str) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        return self._known[operator]


@dataclass(frozen=True)
class Together:
    """One network under steady overload: weighted recall by all mechanisms, and by each kind alone."""

    seed: int
    recall: float
    alone: dict[str, float]

    @property
    def gain(self) -> float:
        return self.recall / max(self.alone.values())


def together(seed: int) -> Together:
    """All kinds against each alone; what a kind cannot give is lost by keeping the freshest rows."""
    network = generated(1000 + seed)
    told = _overload(seed)
    recalls = {}
    contenders = {"all": KINDS, **{kind: (kind,) for kind in KINDS}, "freshest": ()}
    for name, kinds in contenders.items():
        batches = run(network, told, Controlled(network, told, kinds))
        recalls[name] = recall(network, [batch for batch in batches if batch.begin > _STEADY_FROM])
    return Together(seed, recalls.pop("all"), recalls)


def _overload(seed: int) -> Story:
    rate = float(np.random.default_rng([seed, 31]).uniform(1.5, 3.0))
    return Story("steady", seed, ((0.0, rate), (120.0, rate)), 1.0)
