"""Figure 5: gains over random dropping by number of regions, for several throttlers.

Paper: sifters, section VI-B.2. Numbers of regions are squares, because a grid has as many parts along each of
two axes.

What we see differently: even for z = 0.7 a hundred regions are worth more than sixteen, by two fifths of what
those gain. And with whole normals (`readings.py`) uniform data and skewed queries gain little at high load,
while they gain the most within hot spots: a quarter of these queries has no data then, which makes random
dropping look good. The regions of the four bound that gain, and not what is known about them: it stays below
its bars even with thresholds made from the very rows that judge.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tidegate.observe.json_frame import Bar
from tidegate_lab.reproduce.experiment import Line, Options, Outcome
from tidegate_lab.reproduce.sifters.claims.gain_bars import gain_bars, known_gains
from tidegate_lab.reproduce.sifters.claims.gains_by_throttler import (
    DEDP,
    LITTLE,
    THROTTLERS,
    Gains,
    default_workload,
    measure,
    plot,
    told,
)
from tidegate_lab.reproduce.sifters.claims.readings import (
    SKEWED,
    Combination,
    id_ending,
    under_both,
    words,
    workload_of,
)
from tidegate_lab.reproduce.sifters.runs.combinations import PAPER, RANDOM
from tidegate_lab.reproduce.sifters.runs.sweep import (
    ONE,
    Position,
    percent,
    percents_line,
    run_all,
    setting_of,
    title,
)
from tidegate_lab.workloads.sifters import Workload

REGIONS, QUICK_REGIONS = (4, 9, 16, 25, 36, 49, 64, 81, 100), (4, 16, 100)
#: Least gains of the best of the four at z = 0.1, in per cent, by number of regions.
TARGETS = {16: 30, 100: 50}


def region_counts(options: Options) -> tuple[int, ...]:
    """Places on the axes of figures 5, 6 and 7."""
    return QUICK_REGIONS if options.quick else REGIONS


def figure_5(options: Options) -> Outcome:
    """By number of regions."""
    return under_both(partial(_under, options))


def _under(options: Options, whole_normals: bool) -> Outcome:
    counts = region_counts(options)
    positions = partial(_positions, options, default_workload(whole_normals), counts)
    found = measure(options, list(THROTTLERS), positions)
    lines = [
        *_claims(counts, found, whole_normals),
        *(_most(options, combination, whole_normals) for combination in SKEWED),
    ]
    drawn = plot(options, "5", "number of sifter regions, l", counts, found, whole_normals)
    return Outcome(lines, _bars(options, whole_normals), [drawn])


def _claims(counts: Sequence[int], found: Gains, whole_normals: bool) -> list[Line]:
    at_16, reading = counts.index(16), words(whole_normals)
    heavy = found[DEDP][0.1]
    added = {z: changes[-1] - changes[at_16] for z, changes in found[DEDP].items()}
    return [
        percents_line(
            "5",
            f"DEDP{reading}, z = 0.1: over random at l = 16 and 100",
            "+25 %, +50 %",
            [heavy[at_16], heavy[-1]],
            agrees=heavy[at_16] >= 25 and heavy[-1] >= 50,
        ),
        percents_line(
            "5",
            f"DEDP{reading}: points that l = 100 adds to l = 16, z = 0.1 to 0.9",
            "much for z = 0.1, little for z ≥ 0.7",
            list(added.values()),
            agrees=added[0.1] > LITTLE >= max(added[0.7], added[0.9]),
        ),
        _flattening(counts, heavy, reading),
        *told("5", f"l = {counts[0]} to {counts[-1]}", found, whole_normals),
    ]


def _positions(options: Options, workload: Workload, counts: Sequence[int], z: float) -> list[Position]:
    return [Position(count, workload, setting_of(options, regions=count, z=z)) for count in counts]


def _flattening(counts: Sequence[int], heavy: Sequence[float], reading: str) -> Line:
    """What a region adds at both ends."""
    (first, second), (before, last) = counts[:2], counts[-2:]
    early, late = (heavy[1] - heavy[0]) / (second - first), (heavy[-1] - heavy[-2]) / (last - before)
    claim = (
        f"DEDP{reading}, z = 0.1: points that a region adds, l = {first} to {second} and {before} to {last}"
    )
    measured = f"{early:.2f} → {late:.2f}"
    return Line("5", claim, "diminishing", measured, samples=(early, late), agrees=late < early)


def _most(options: Options, combination: Combination, whole_normals: bool) -> Line:
    """What the regions of the four could give where the bars are."""
    points = _heavy(options, combination, whole_normals)
    most = percent(known_gains(points, options.seeds))
    name = title(points[0].source)
    claim = f"{name}, z = 0.1, l = 16 and 100: the best, thresholds by the rows that judge"
    return percents_line("5", claim, "not told", most)


def _heavy(options: Options, combination: Combination, whole_normals: bool) -> list[Position]:
    return _positions(options, workload_of(combination, whole_normals, alphas=ONE), list(TARGETS), 0.1)


def _bars(options: Options, whole_normals: bool) -> list[Bar]:
    """At high load, for the three combinations that have a skew."""
    bars: list[Bar] = []
    for combination in SKEWED:
        points = _heavy(options, combination, whole_normals)
        run_all(points, (RANDOM, *PAPER), options.seeds)
        for point, (regions, target) in zip(points, TARGETS.items(), strict=True):
            id = f"sifters.gain_z01.l{regions}.{'_'.join(combination)}{id_ending(whole_normals)}"
            bars += gain_bars("5", id, point, target, options.seeds)
    return bars
