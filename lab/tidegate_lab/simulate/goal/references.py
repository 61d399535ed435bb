"""What could have been reached: by the best plan that never changes, and by one that foresees every batch.

Work that may be skipped lies in items: cells of joins, groups of points of matches, windows. An item has, per
batch, seconds and results. All items together with what cannot be shed are the batch:

    clairvoyant   knows the rows, costs and noise of each batch: takes the items with the most weighted
                  results per second that fit it. Pauses pass it by.
    fixed         takes the items with the most weighted results per second over the whole run, as many as
                  keep 99 % of all batches on time. Found by search over how much it takes.

Both are beyond any controller: the first sees the future, the second has seen the whole run once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate_lab.simulate.goal.arrivals import CELLS, GRAIN, SECONDS
from tidegate_lab.simulate.goal.machine import COLD
from tidegate_lab.simulate.goal.operators import (
    JoinState,
    SimulatedJoin,
    SimulatedMatch,
    SimulatedWindow,
)
from tidegate_lab.simulate.goal.scenario import Scenario

#: The share of batches on time that counts as keeping the goal.
ON_TIME = 0.99
#: Fixed plans that are tried, groups of points of a match, and the least time between two batches.
_TRIED, _GROUPS, _LEAST_SECONDS = 200, 16, 0.01


@dataclass(frozen=True, eq=False)
class _Items:
    """Batches of one interval: what cannot be shed, and what can, by batch and item."""

    #: Seconds of overhead, and of rows that nothing sheds.
    overhead: NDArray[np.float64]
    fixed: NDArray[np.float64]
    #: Seconds and weighted results, as parts of the weighted results of the run.
    seconds: NDArray[np.float64]
    worth: NDArray[np.float64]
    #: Weighted results that nothing sheds.
    certain: NDArray[np.float64]


@dataclass(frozen=True)
class References:
    """Weighted recall of both plans, and the share of judged batches on time of the fixed one."""

    clairvoyant: float
    fixed: float
    fixed_on_time: float


def references(scenario: Scenario) -> References:
    items = _items(scenario)
    fixed, on_time = _best_fixed(scenario, items)
    return References(_clairvoyant(scenario, items), fixed, on_time)


def _items(scenario: Scenario) -> _Items:
    begins = np.arange(scenario.interval, SECONDS + 1e-9, scenario.interval)
    machine, operators = scenario.machine, scenario.operators
    joins = {o.name: JoinState(o, scenario.rows) for o in operators if isinstance(o, SimulatedJoin)}
    fixed, certain = np.zeros(begins.size), np.zeros(begins.size)
    overhead = np.zeros(begins.size)
    seconds: list[NDArray[np.float64]] = []
    worth: list[NDArray[np.float64]] = []
    weights = np.array([scenario.weights[o.name] for o in operators])
    weights = weights / weights.sum()
    scales = np.zeros((begins.size, len(operators)))
    for batch, begin in enumerate(begins.tolist()):
        common, own = machine.chance(batch, len(operators))
        cold = machine.coldness(begin) * common
        overhead[batch] = cold * machine.overhead(begin)
        scales[batch] = cold * machine.speed(begin) * own
    cells = np.minimum(np.rint(begins / GRAIN), CELLS).astype(np.int64)
    spans = list(zip(np.append(0, cells[:-1]).tolist(), cells.tolist(), strict=True))
    for number, operator in enumerate(operators):
        scale = scales[:, number].copy()
        if isinstance(operator, SimulatedJoin):
            even = operator.uneven(0.0, machine.cores)
            scale *= [operator.uneven(begin, machine.cores) / even for begin in begins.tolist()]
            parts = [
                joins[operator.name].parts([span, span], begin)
                for span, begin in zip(spans, begins.tolist(), strict=True)
            ]
            rows = np.array([one[0] for one in parts])
            cost = np.stack([one[1].ravel() for one in parts])
            results = np.stack([one[2].ravel() for one in parts])
            sure = np.zeros(begins.size)
        elif isinstance(operator, SimulatedWindow):
            came = _came(scenario, operator.stream, spans)
            starts = np.array([operator.starts((a * GRAIN, b * GRAIN)).size for a, b in spans], float)
            rows = operator.cost * (1 - operator.sheddable) * came
            cost = (operator.cost * operator.sheddable * came)[:, None]
            # Windows that a batch may drop are taken as evenly spread: its rows belong to many.
            share = came / max(came.sum(), 1e-9) * starts.sum()
            results, sure = (operator.share_max * share)[:, None], (1 - operator.share_max) * share
        else:
            assert isinstance(operator, SimulatedMatch)
            came = _came(scenario, operator.stream, spans)
            order = np.argsort(-operator.hits, kind="stable")
            groups = np.array_split(operator.hits[order].astype(float), _GROUPS)
            rows = operator.costs[0] * came
            part = np.array([group.size / operator.hits.size for group in groups])
            cost = operator.costs[1] * came[:, None] * part
            results = came[:, None] * np.array([group.sum() / operator.hits.size for group in groups])
            sure = np.zeros(begins.size)
        total = max(float(results.sum() + sure.sum()), 1e-9)
        fixed += scale * rows
        certain += weights[number] * sure / total
        seconds.append(scale[:, None] * cost)
        worth.append(weights[number] * results / total)
    return _Items(overhead, fixed, np.concatenate(seconds, axis=1), np.concatenate(worth, axis=1), certain)


def _came(scenario: Scenario, stream: str, spans: list[tuple[int, int]]) -> NDArray[np.float64]:
    rows = scenario.rows[stream]
    return np.array([float(rows[end] - rows[first]) for first, end in spans])


def _density(worth: NDArray[np.float64], seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(worth / np.maximum(seconds, 1e-12))


def _clairvoyant(scenario: Scenario, items: _Items) -> float:
    order = np.argsort(-_density(items.worth, items.seconds), axis=1)
    seconds = np.take_along_axis(items.seconds, order, axis=1)
    worth = np.take_along_axis(items.worth, order, axis=1)
    room = np.maximum(0.0, scenario.batch_seconds - items.overhead - items.fixed)
    before = np.cumsum(seconds, axis=1) - seconds
    taken = np.clip((room[:, None] - before) / np.maximum(seconds, 1e-12), 0, 1)
    return float((taken * worth).sum() + items.certain.sum())


def _best_fixed(scenario: Scenario, items: _Items) -> tuple[float, float]:
    order = np.argsort(-_density(items.worth.sum(axis=0), items.seconds.sum(axis=0)), kind="stable")
    # Every plan takes a prefix of the items, the last of them in part.
    amounts = np.linspace(0, order.size, _TRIED)
    taken = np.clip(amounts[:, None] - np.arange(order.size), 0, 1)
    work = items.fixed[:, None] + items.seconds[:, order] @ taken.T
    recall = items.worth[:, order].sum(axis=0) @ taken.T + items.certain.sum()
    on_time = _on_time(scenario, items.overhead, work)
    good = on_time >= ON_TIME
    # Where none keeps the goal, the one that comes closest.
    best = int(np.argmax(np.where(good, recall, -1.0))) if good.any() else int(np.argmax(on_time))
    return float(recall[best]), float(on_time[best])


def _on_time(
    scenario: Scenario, overhead: NDArray[np.float64], work: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The share of judged batches on time, by plan; `work`: seconds by batch of one interval, and plan."""
    plans = np.arange(work.shape[1])
    trigger, interval = scenario.trigger_seconds, scenario.interval
    # Judged seconds up to a moment. Controllers are excused for the cold, and so is this plan; but it never
    # has to settle, so it is judged after steps, too.
    cells = np.arange(CELLS) * GRAIN
    counts = np.array([scenario.machine.coldness(at) <= COLD for at in cells.tolist()])
    until = np.append(0.0, np.cumsum(counts) * GRAIN)
    now, waited = np.full(plans.size, interval), np.full(plans.size, interval)
    judged, late = np.zeros(plans.size), np.zeros(plans.size)
    while (now < SECONDS).any():
        at = np.minimum((now / interval).astype(np.int64), overhead.size) - 1
        busy = overhead[at] + work[at, plans] * waited / interval
        first, last = (np.minimum(one / GRAIN, CELLS).astype(np.int64) for one in (now, now + busy))
        here = counts[np.minimum(first, CELLS - 1)] & (now < SECONDS)
        times = np.maximum(here, (until[last] - until[first]) / interval)
        judged += times
        late += times * (waited + busy > scenario.latency_seconds)
        waited = np.maximum(busy, max(trigger, _LEAST_SECONDS))
        now = np.minimum(now + waited, SECONDS)
    return 1 - late / np.maximum(judged, 1)
