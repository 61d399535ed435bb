"""Processor time of one core, for the two figures that are about time itself.

Whatever else a machine does can only make work take longer, so the least of a few rounds counts. All that is
compared takes turns, so that a busy stretch hits everybody alike. Kernels are compiled beforehand.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from math import inf
from statistics import median
from time import process_time
from typing import TypeVar

from tidegate_lab.plots.plots import Curve, Panel
from tidegate_lab.reproduce.experiment import Options
from tidegate_lab.reproduce.sifters.runs.combinations import COLOURS

ROUNDS = 9
#: Seeds whose times are taken; more would only tell more about other programs of the machine.
SEEDS_MOST = 5

_Key = TypeVar("_Key", bound=Hashable)

#: Partitioner → what was measured, by number of regions.
Times = Mapping[str, Sequence[float]]


def least_seconds(works: Mapping[_Key, Callable[[], object]]) -> dict[_Key, float]:
    """Of a few rounds, after one that does not count."""
    least = dict.fromkeys(works, inf)
    for number in range(ROUNDS + 1):
        for key, work in works.items():
            begin = process_time()
            work()
            if number:
                least[key] = min(least[key], process_time() - begin)
    return least


def by_regions(least: Mapping[tuple[str, int, int], float], names: Sequence[str]) -> dict[str, list[float]]:
    """(partitioner, regions, seed) → medians over the seeds."""
    regions = sorted({place for _, place, _ in least})
    return {
        name: [median(one for key, one in least.items() if key[:2] == (name, place)) for place in regions]
        for name in names
    }


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
