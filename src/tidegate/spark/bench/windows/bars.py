"""The figures that window aggregates were asked to reach, each with a fixed id."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from tidegate.report.bars import at_least, at_most
from tidegate.report.frame import Bar
from tidegate.spark.bench.windows.run import COLD, HALF, MEMORY, OURS, READY, ROCKSDB, Run

#: How many times as fast as the faster of Spark's own.
OVER_SPARK = {"sliding": 8.0, "tumbling": 2.0}
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
    whole = _typical(runs, OURS)
    if whole is not None:
        for contender, bar in ((READY, _ready), (HALF, _half)):
            seconds = _typical(runs, contender)
            if seconds is not None:
                bars.append(bar(seconds / whole))
    ratios = [usual[name, OURS] for name in ("ratio-1", "ratio-600") if (name, OURS) in usual]
    if len(ratios) == 2:
        bars.append(at_most("windows.overlap.cost", max(ratios) / min(ratios), "x", OVERLAP))
    return bars


def _typical(runs: Sequence[Run], contender: str) -> float | None:
    """Seconds of a usual batch where windows may go, over all rounds."""
    found = [run.usual for run in runs if run.scenario.name == "drop" and run.contender == contender]
    return median(found) if found else None


def _ready(part: float) -> Bar:
    return at_most("windows.drop.ready_cost", part - 1, "part of a batch", READY_COST)


def _half(part: float) -> Bar:
    return at_least("windows.drop.half_saves", 1 - part, "part of a batch", HALF_SAVES)


def rows_of_report(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """One line a run, with every batch as raw sample."""
    return [
        {
            "scenario": run.scenario.name,
            "contender": run.contender,
            "rate": run.rate,
            "seconds": run.usual,
            "fastest": min(run.seconds[COLD:]),
            "slowest": max(run.seconds[COLD:]),
            "samples": run.seconds,
        }
        for run in runs
    ]
