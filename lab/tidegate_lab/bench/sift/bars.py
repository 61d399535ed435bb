"""The targets of sifting and matching on Spark, each with a fixed id."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tidegate.observe.json_frame import Bar
from tidegate_lab.bench.sift.run import Measured
from tidegate_lab.plots.bars import at_least, at_most

#: By regions: the time that a sifter may add to a scan, as a part of it.
OVER_SCAN = {16: 0.20, 100: 0.60}
#: By queries: rows a second on two cores.
MATCHED = {1_000: 2e6, 100_000: 5e5}
#: Rows a second of one core, look-up and decision, 100 regions.
LOOKED_UP = 50e6


def sift_bars(
    scans: Sequence[Measured], matches: Sequence[Measured], lookups: Sequence[Measured]
) -> list[Bar]:
    """Bars of everything that was measured."""
    times = {one.name: np.array(one.seconds) for one in scans}
    bars = [
        # Round by round: what slows a machine down for seconds slows neighbours in a round alike.
        at_most(
            f"sift.spark.{n}.over_scan", float(np.median(times[f"sift-{n}"] / times["scan"])) - 1, "x", most
        )
        for n, most in OVER_SCAN.items()
        if f"sift-{n}" in times
    ]
    rates = {one.name: one.rate for one in matches}
    bars += [
        at_least(f"sift.match.{n}.rate", rates[f"match-{n}"], "rows/s", least)
        for n, least in MATCHED.items()
        if f"match-{n}" in rates
    ]
    bars += [
        at_least("sift.lookup.100.rate", one.rate, "rows/s", LOOKED_UP)
        for one in lookups
        if one.name == "lookup-100"
    ]
    return bars


def rows_of_report(measured: Sequence[Measured]) -> list[dict[str, Any]]:
    """One line a contender, with every round as raw sample."""
    return [
        {
            "contender": one.name,
            "rows": one.rows,
            "rate": one.rate,
            "seconds": one.usual,
            "fastest": min(one.seconds),
            "slowest": max(one.seconds),
            "found": one.found[-1] if one.found else 0,
            "samples": one.seconds,
        }
        for one in measured
    ]
