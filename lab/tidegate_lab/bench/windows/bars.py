"""The targets of window aggregates, each with a fixed id."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from tidegate.observe.json_frame import Bar
from tidegate_lab.bench.windows.run import COLD, HALF, MEMORY, OURS, READY, ROCKSDB, Run
from tidegate_lab.plots.bars import at_least, at_most

#: How many times as fast as the faster of Spark's own.
OVER_SPARK = {"sliding": 12.0, "tumbling": 5.0}
#: The dearer of 1 and 600 windows a row over the cheaper.
OVERLAP = 1.2
#: Parts of a batch: what being ready to drop costs at most, what dropping every other window saves at least.
READY_COST, HALF_SAVES = 0.03, 0.40


def window_bars(runs: Sequence[Run]) -> list[Bar]:
    """Bars of every scenario that was played."""
    usual = {(run.scenario.name, run.contender): run.usual for run in runs}
    bars = []
    for name, least in OVER_SPARK.items():
        theirs = [usual[name, one] for one in (MEMORY, ROCKSDB) if (name, one) in usual]
        if theirs and (name, OURS) in usual:
            bars.append(at_least(f"windows.{name}.over_spark", min(theirs) / usual[name, OURS], "x", least))
    bars += _drop_bars([run for run in runs if run.scenario.name == "drop"])
    ratios = [usual[name, OURS] for name in ("ratio-1", "ratio-600") if (name, OURS) in usual]
    if len(ratios) == 2:
        bars.append(at_most("windows.overlap.cost", max(ratios) / min(ratios), "x", OVERLAP))
    return bars


def _drop_bars(runs: Sequence[Run]) -> list[Bar]:
    """What dropping costs and saves: medians over rounds, each round against itself.

    Windows are few and drawn by lot, so what one round drops is more or less than half of the rows: what it
    saved is told for a half.
    """
    rounds = list(zip(*(_of(runs, one) for one in (OURS, READY, HALF)), strict=True))
    # In a few batches the lot may spare every window: such a round tells nothing.
    rounds = [one for one in rounds if one[-1].share]
    if not rounds:
        return []
    ready = median(ready.mean / whole.mean - 1 for whole, ready, _ in rounds)
    saved = median((1 - half.mean / whole.mean) * 0.5 / half.share for whole, _, half in rounds)
    return [
        at_most("windows.drop.ready_cost", ready, "part of a batch", READY_COST),
        at_least("windows.drop.half_saves", saved, "part of a batch", HALF_SAVES),
    ]


def _of(runs: Sequence[Run], contender: str) -> list[Run]:
    """One contender's, round by round."""
    return [run for run in runs if run.contender == contender]


def rows_of_report(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """One line a run, with every batch as raw sample."""
    return [
        {
            "scenario": run.scenario.name,
            "contender": run.contender,
            "rate": run.rate,
            "seconds": run.usual,
            "mean": run.mean,
            "dropped": run.share,
            "fastest": min(run.seconds[COLD:]),
            "slowest": max(run.seconds[COLD:]),
            "samples": run.seconds,
        }
        for run in runs
    ]
