"""What sifters promise, against what fresh rows give: the overall QoS, and the volume that passes.

Equation 9 foresees the overall QoS from regions alone. It is held against fresh rows over queries that have
data; of queries without data it knows nothing, and they are complete. What passes is held against z, as a
share of all rows. Both in the middle of figure 4 (G = L = 4), for each combination and partitioner; the worst
of their medians counts. Both under both readings of the skew (`readings.py`).

With thresholds from the frequencies of the sample as they are, as in the paper, too many rows pass, most of
them where data and queries go together: all differences are luck there. What such sifters seem to gain is
what they let pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median

import numpy as np

from tidegate.papers.experiments.claims import number_line, percent_line
from tidegate.papers.experiments.experiment import Line, Options
from tidegate.papers.experiments.sifters.combinations import (
    AUTO,
    COLOURS,
    COMBINATIONS,
    PAPER,
    RANDOM,
    SIFTERS,
    Measured,
)
from tidegate.papers.experiments.sifters.readings import id_ending, named, workload_of
from tidegate.papers.experiments.sifters.skew_points import middle
from tidegate.papers.experiments.sifters.sweep import (
    Position,
    all_that_passes,
    best_gains,
    found,
    run_all,
    setting_of,
    taken,
    title,
)
from tidegate.papers.sifters import Workload
from tidegate.report.bars import at_most
from tidegate.report.frame import Bar
from tidegate.report.plots import Curve, Panel, Plot

THROTTLERS, QUICK_THROTTLERS = (0.1, 0.3, 0.5, 0.7, 0.9), (0.3, 0.7)
FORESEEN_TARGET, VOLUME_TARGET = 0.02, 0.01

#: Combination and partitioner → how far off, seed by seed.
Off = dict[tuple[str, str], list[float]]


def promise_lines(options: Options, whole_normals: bool) -> list[Line]:
    """By partitioner: medians of the combinations, in the order of figure 4."""
    lines = []
    reading = named(workload_of(("skew", "skew"), whole_normals))
    for what, off in (
        ("QoS of queries with data, off equation 9", _off(options, _quality_off, whole_normals)),
        ("share of rows that pass, off z = 0.5", _off(options, _volume_off, whole_normals)),
    ):
        for name in SIFTERS:
            by_combination = [median(values) for key, values in off.items() if key[1] == name]
            claim = f"{name.upper()}: {what}, UNIF/SKEW to UNIF/UNIF{reading}"
            measured = " → ".join(f"{one:.4f}" for one in by_combination)
            lines.append(Line("beyond", claim, "-", measured, samples=tuple(by_combination)))
    return lines


def promise_bars(options: Options, whole_normals: bool) -> list[Bar]:
    """The worst combination decides; of the paper's partitioners the worst one as well."""
    return [
        at_most(f"sifters.{promise}{ending}{id_ending(whole_normals)}", _worst(off, names), "", target)
        for promise, off, target in (
            ("foreseen", _off(options, _quality_off, whole_normals), FORESEEN_TARGET),
            ("volume", _off(options, _volume_off, whole_normals), VOLUME_TARGET),
        )
        for ending, names in (("", PAPER), (".auto", (AUTO,)))
    ]


def volume_plot(options: Options) -> Plot:
    """What passes beyond z, by z."""
    throttlers = QUICK_THROTTLERS if options.quick else THROTTLERS
    by_combination = {}
    for combination in COMBINATIONS:
        points = [Position(z, Workload(*combination), setting_of(options, z=z)) for z in throttlers]
        run_all(points, SIFTERS, options.seeds)
        by_combination[title(points[0].source)] = [
            Curve(
                name.upper(),
                throttlers,
                (
                    100 * (np.median(found(points, name, options.seeds, _passed), axis=0) - throttlers)
                ).tolist(),
                "points",
                colour=COLOURS[name],
            )
            for name in SIFTERS
        ]
    lowest = min(min(curve.y) for curves in by_combination.values() for curve in curves)
    panels = [
        Panel(
            "throttle fraction, z",
            "passed beyond z (% of all rows)",
            curves,
            title=name,
            y_from=min(-0.5, np.floor(2 * lowest) / 2),
        )
        for name, curves in by_combination.items()
    ]
    return Plot(
        "beyond-volume",
        "What passes of fresh rows, beside z",
        f"sifters made from 1,000 sample rows, l = 16, Δ = 0.5, α ~ U[1, 2]\n{options.seeds_text}",
        panels,
        same_height=True,
        columns=4,
        one_legend=True,
    )


def _passed(one: Measured) -> float:
    return one.passed


def _quality_off(one: Measured) -> float:
    return abs(one.qos_with_data - one.foreseen)


def _volume_off(one: Measured) -> float:
    return abs(one.passed - 0.5)


def _off(options: Options, read: Callable[[Measured], float], whole_normals: bool) -> Off:
    points = [middle(options, combination, whole_normals=whole_normals) for combination in COMBINATIONS]
    return {
        (title(point.source), name): found([point], name, options.seeds, read)[:, 0].tolist()
        for point in points
        for name in SIFTERS
    }


def _worst(off: Off, names: Sequence[str]) -> float:
    return max(median(values) for (_, name), values in off.items() if name in names)


def as_printed(options: Options) -> list[Line]:
    """The best of the four with thresholds from the sample as it is."""
    point = [Position(0.0, Workload("unif", "unif"), setting_of(options, shrink=False))]
    run_all(point, (RANDOM, *PAPER), options.seeds)
    passed = found(point, "dedp", options.seeds, _passed)[:, 0].tolist()
    unbounded, bounded = (
        best_gains(point, options.seeds, read)[:, 0].tolist() for read in (all_that_passes, taken)
    )
    what = "UNIF/UNIF, frequencies as sampled"
    return [
        number_line("beyond", f"{what}: share of rows that DEDP lets pass, z = 0.5", "-", passed),
        percent_line("beyond", f"{what}: the best over random, with what passes beyond z", "-", unbounded),
        percent_line(
            "beyond", f"{what}: the best over random, less what the server cannot take", "-", bounded
        ),
    ]
