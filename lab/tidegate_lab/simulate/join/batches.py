"""A join that runs batch by batch under a simulated clock: tests whether a rate rule settles.

    trigger    |─────|─────|─────|─────|─────|
    rate       ▁▁▁▁▁▁▁▁███████████████████████        a step
    batches    [▪]   [▪]   [███████████][██]  …       a long batch delays the next one, which grows

A batch processes all rows that arrived since the start of the one before; its duration is its true cost with
a little noise. Both streams have the same rate; windows fill and empty as the rate changes. A plan expects
the next rows at the rate of the last batch.

Guarantee: the same settings and seed give the same batches.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidegate.control.actuators.paper_rate import BatchLoad, RateRule
from tidegate_lab.simulate.join.rate_model import PeriodLoad
from tidegate_lab.workloads.selective_join import Steps


@dataclass(frozen=True)
class TrueCosts:
    """Seconds that the machine really takes; the rule under test does not know them."""

    fixed: float
    row: float
    comparison: float
    output: float = 0.0

    def seconds(self, rows: float, comparisons: float, outputs: float) -> float:
        return self.fixed + self.row * rows + self.comparison * comparisons + self.output * outputs


@dataclass(frozen=True)
class Batches:
    """The run to simulate: rows a second of both streams together, and how they are joined."""

    rate: Steps
    costs: TrueCosts
    trigger_seconds: float = 1.0
    window_seconds: float = 10.0
    matches_per_comparison: float = 1e-3
    #: Relative; every batch takes up to this much more or less.
    noise: float = 0.0
    seed: int = 7


@dataclass(frozen=True)
class Batch:
    """One batch, as it went."""

    begin_seconds: float
    seconds: float
    rows: float
    #: r in force.
    fraction: float
    #: Time the batch would have taken with r = 1.
    seconds_full: float


def run_batches(run: Batches, rule: RateRule) -> list[Batch]:
    """Batch after batch until the steps of the rate are over."""
    random = np.random.default_rng(run.seed)
    done: list[Batch] = []
    before, begin = 0.0, run.trigger_seconds
    while begin < run.rate.seconds:
        rows = _arrived(run.rate, before, begin)
        full = rows * _stored(run, begin, rows)
        batch, comparisons, outputs = _one_batch(run, rule.fraction, begin, rows, full, random)
        done.append(batch)
        following = begin + max(batch.seconds, run.trigger_seconds)
        expected = rows / (begin - before) * (following - begin)
        load = BatchLoad.of(round(rows), batch.seconds, run.trigger_seconds)
        rule.adapt(
            PeriodLoad(
                offered=load.taken,
                fetched=load.fitted,
                seconds=run.trigger_seconds,
                busy_seconds=batch.seconds,
                rows=round(rows),
                comparisons=round(comparisons),
                outputs=round(outputs),
                next_rows=expected,
                next_comparisons_full=expected * _stored(run, following, expected),
            )
        )
        before, begin = begin, following
    return done


def _one_batch(
    run: Batches, fraction: float, begin: float, rows: float, full: float, random: np.random.Generator
) -> tuple[Batch, float, float]:
    noise = 1 + run.noise * random.uniform(-1, 1)
    comparisons = fraction * full
    outputs = comparisons * run.matches_per_comparison
    seconds = run.costs.seconds(rows, comparisons, outputs) * noise
    seconds_full = run.costs.seconds(rows, full, full * run.matches_per_comparison) * noise
    return Batch(begin, seconds, rows, fraction, seconds_full), comparisons, outputs


def _arrived(rate: Steps, begin: float, end: float) -> float:
    """Rows between two moments: the rate, integrated over its steps."""
    total, step_begin = 0.0, 0.0
    for place, (lasts, level) in enumerate(rate.levels):
        last = place == len(rate.levels) - 1
        step_end = np.inf if last else step_begin + lasts
        total += level * max(0.0, min(end, step_end) - max(begin, step_begin))
        step_begin = step_end
    return float(total)


def _stored(run: Batches, begin: float, rows: float) -> float:
    """Rows that a new row is compared with: half of those in the window are of the other stream."""
    window = _arrived(run.rate, max(0.0, begin - run.window_seconds), begin)
    return max(rows, window) / 2
