"""How well a run of a scenario was controlled: numbers that no single trick can raise together.

    on time         share of the judged batches whose oldest row had its results within the goal; a batch that
                    lasts as long as three counts as three
    needless loss   share of the weighted results that were shed although 99 of 100 unshed batches would have
                    fitted the budget
    budget use      while shedding: time used, relative to a controller that knows the noise and keeps 99 % of
                    its batches on time
    reversals       changes of direction of the least steady level, per 10 batches of steady input
    of fixed        weighted recall over that of the best plan that never changes (`references.py`)
    of clairvoyant  weighted recall over that of a plan that foresees each batch
    recovery        longest time after a step until three batches in a row are on time

A controller that always sheds is found out by needless loss and recall, one that never sheds by lateness, one
that oscillates by reversals, one that leaves rows at the source by rows that are overdue there.

Counted apart: batches that are late only because of a pause that was longer than their slack, or because the
process was cold. Times are judged without noise where a decision is judged, because no decision can know it;
needless loss is judged by a warm machine, because a cold one is no reason to shed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tidegate_lab.simulate.goal.arrivals import SECONDS
from tidegate_lab.simulate.goal.machine import COLD
from tidegate_lab.simulate.goal.operators import JoinShed
from tidegate_lab.simulate.goal.played import Batch, Run
from tidegate_lab.simulate.goal.references import References
from tidegate_lab.simulate.goal.scenario import SETTLING

#: What became of a batch.
IN_TIME, APART, LATE = range(3)
_ROUNDING = 1e-9
#: Moves of a level that count as one, and consecutive batches on time that end a recovery.
_MOVE, _RECOVERED = 0.01, 3


@dataclass(frozen=True)
class Verdict:
    """One run in numbers; None where the scenario says nothing about it."""

    on_time: float | None
    judged: float
    #: Batches that are late by a pause or by the cold.
    apart: float
    needless_loss: float
    budget_use: float | None
    reversals: float | None
    recall: float
    of_fixed: float
    of_clairvoyant: float
    recovery: float


#: Metrics by name: a larger value is better, or a smaller one.
METRICS = {
    "on_time": True,
    "needless_loss": False,
    "budget_use": True,
    "reversals": False,
    "of_fixed": True,
    "of_clairvoyant": True,
    "recovery": False,
}


def verdict(run: Run, known: References) -> Verdict:
    """All metrics of a run."""
    late, scenario = lateness(run), run.scenario
    counts = [0.0, 0.0, float(_overdue(run))]
    for batch in run.batches:
        if batch.latency is not None:
            counts[late[batch.number]] += scenario.judged_times(batch.begin, batch.end)
    in_time, apart, missed = counts
    judged = in_time + missed
    recall = weighted_recall(run)
    return Verdict(
        in_time / judged if judged else None,
        judged,
        apart,
        needless_loss(run),
        budget_use(run),
        reversals(run),
        recall,
        recall / max(known.fixed, 1e-9),
        recall / max(known.clairvoyant, 1e-9),
        recovery(run, late),
    )


def lateness(run: Run) -> list[int]:
    """By batch: whether it was in time, late by a pause or by the cold, or late.

    A pause and what a cold process takes longer are excess. A batch that waited through excess has more rows
    for it, and its own time is excess by that share, so that a batch behind a delayed one is judged without
    the delay; but only for `SETTLING` seconds, in which a controller can get over it.
    """
    scenario = run.scenario
    machine, latest = scenario.machine, scenario.latency_seconds
    #: Begin and end of excess, and how long it counts.
    excess: list[tuple[float, float, float]] = [
        (at, at + lasts, at + lasts + SETTLING) for at, lasts in machine.pauses
    ]
    found = []
    for batch in run.batches:
        cold = machine.coldness(batch.begin)
        oldest = batch.begin if batch.oldest is None else batch.oldest
        if scenario.drains(batch.begin):
            # Rows that waited at the start are overdue for sure: the batch is judged by its own length.
            oldest = max(oldest, batch.begin - scenario.interval)
        counts = [one for one in excess if batch.begin < one[2]]
        waited, stood = (
            sum(max(0.0, min(until, end) - max(since, begin)) for begin, end, _ in counts)
            for since, until in ((oldest, batch.begin), (batch.begin, batch.end))
        )
        running = batch.end - batch.begin - stood
        own = running * waited / (batch.begin - oldest) if waited else 0.0
        last = max((one[2] for one in counts), default=batch.begin)
        if cold > COLD:
            own = max(own, running * (1 - 1 / cold))
            last = max(last, batch.end + SETTLING)
        if own:
            excess.append((batch.end - own, batch.end, last))
        latency = 0.0 if batch.oldest is None else batch.end - oldest
        if latency <= latest + _ROUNDING:
            found.append(IN_TIME)
        else:
            found.append(APART if latency - waited - stood - own <= latest + _ROUNDING else LATE)
    return found


def _overdue(run: Run) -> int:
    """Batches that the rows would have made that wait at the end, although their results are overdue."""
    if run.left_since is None:
        return 0
    over = SECONDS - run.left_since - run.scenario.latency_seconds - run.scenario.interval
    return max(0, int(over / run.scenario.interval))


def weighted_recall(run: Run) -> float:
    """The mean over outputs, by weight, of the share of their results that was found."""
    found, weights = [], []
    for name, weight in run.scenario.weights.items():
        possible = _possible(run, name)
        if possible > 0:
            found.append(sum(batch.did[name].found for batch in run.batches) / possible)
            weights.append(weight)
    return float(np.average(found, weights=weights)) if found else 1.0


def _possible(run: Run, name: str) -> float:
    return sum(batch.did[name].possible for batch in run.batches) + run.left[name]


def needless_loss(run: Run) -> float:
    """Weighted results lost in batches that would have fitted without shedding, as a share of all."""
    scenario = run.scenario
    fitting = [b for b in run.batches if b.warm_full * scenario.machine.noise_99 <= scenario.batch_seconds]
    lost, weights = [], []
    for name, weight in scenario.weights.items():
        possible = _possible(run, name)
        if possible > 0:
            gone = sum(batch.did[name].possible - batch.did[name].found for batch in fitting)
            lost.append(max(0.0, gone) / possible)
            weights.append(weight)
    return float(np.average(lost, weights=weights)) if lost else 0.0


def budget_use(run: Run) -> float | None:
    """Time used by judged batches that shed, relative to what a controller that knows the noise would use."""
    scenario = run.scenario
    target = scenario.batch_seconds / scenario.machine.noise_99
    used = [
        min(1.0, batch.expected / min(target, batch.expected_full))
        for batch in run.batches
        if batch.sheds and scenario.judged(batch.begin)
    ]
    return float(np.mean(used)) if used else None


def reversals(run: Run) -> float | None:
    """Changes of direction per 10 batches of steady input, of the level that does so most."""
    steady = [batch for batch in run.batches if run.scenario.steady(batch.begin)]
    if len(steady) < 10:
        return None
    # A move across batches that are not steady counts as none.
    spans: list[list[Batch]] = [[steady[0]]]
    for before, batch in pairwise(steady):
        if batch.number == before.number + 1:
            spans[-1].append(batch)
        else:
            spans.append([batch])
    most = max(sum(_turns(span, name) for span in spans) for name in steady[0].shed)
    return 10 * most / len(steady)


def _turns(batches: Sequence[Batch], name: str) -> int:
    """Changes of direction of what is shed by one operator."""
    turns = 0
    for levels in ([b.shed[name].level for b in batches], [_fresh(b, name) for b in batches]):
        here, side = levels[0], 0
        for level in levels[1:]:
            if abs(level - here) <= _MOVE:
                continue
            now = 1 if level > here else -1
            turns += side * now < 0
            here, side = level, now
    return turns


def _fresh(batch: Batch, name: str) -> float:
    """The part of a join's rows that are not stale, to the nearest tenth: it varies with the rows."""
    if not isinstance(batch.shed[name], JoinShed):
        return 1.0
    came, stale = (sum(side[part] for side in batch.did[name].sides) for part in (0, 2))
    return round(10 * (1 - stale / came)) / 10 if came else 1.0


def recovery(run: Run, late: Sequence[int]) -> float:
    """The longest time from a step until batches are on time again, for as long as no other step comes."""
    steps = [*sorted(set(run.scenario.steps)), SECONDS]
    longest = 0.0
    for step, following in pairwise(steps):
        after = [batch for batch in run.batches if step <= batch.begin < following]
        recovered = following
        for number in range(len(after)):
            three = after[number : number + _RECOVERED]
            if all(late[batch.number] != LATE for batch in three):
                recovered = three[0].begin
                break
        if after:
            longest = max(longest, recovered - max(step, after[0].begin))
    return longest
