"""Processor time of one core, for the two figures that are about time itself.

The least of a few rounds, because whatever else a machine does can only make a round longer. Kernels are
compiled before the clock starts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import process_time

from tidegate.papers.experiments.experiment import Options
from tidegate.papers.experiments.sifters.combinations import COLOURS
from tidegate.report.plots import Curve, Panel

ROUNDS = 5
#: Seeds whose times are taken; more would only tell more about other programs of the machine.
SEEDS_MOST = 5

#: Partitioner → what was measured, by number of regions.
Times = Mapping[str, Sequence[float]]


def least_seconds(work: Callable[[], object]) -> float:
    """Of a few rounds, after one that does not count."""
    work()
    times = []
    for _ in range(ROUNDS):
        begin = process_time()
        work()
        times.append(process_time() - begin)
    return min(times)


def timed_seeds(options: Options) -> tuple[int, ...]:
    return options.seeds[:SEEDS_MOST]


def times_panel(found: Times, regions: Sequence[int], label: str, title: str = "") -> Panel:
    """A curve per partitioner."""
    curves = [
        Curve(name.upper(), list(regions), list(values), "points", colour=COLOURS[name])
        for name, values in found.items()
    ]
    return Panel("number of sifter regions, l", label, curves, title=title)


def about(options: Options) -> str:
    return (
        "Data: Skew, Query: Unif, 1,000 sample rows; processor time of one core\n"
        f"the least of {ROUNDS} rounds, median of {len(timed_seeds(options))} seeds"
    )
