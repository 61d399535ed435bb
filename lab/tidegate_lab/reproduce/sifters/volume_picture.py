"""What sifters let pass of fresh rows beyond z, by z; and what the paper's own thresholds let pass.

With thresholds from the frequencies of the sample as they are, as in the paper, too many rows pass, most of
them where data and queries go together: all differences are luck there. What such sifters seem to gain is
what they let pass.
"""

from __future__ import annotations

import numpy as np

from tidegate_lab.plots.plots import Curve, Panel, Plot
from tidegate_lab.reproduce.claims import number_line, percent_line
from tidegate_lab.reproduce.experiment import Line, Options
from tidegate_lab.reproduce.sifters.claims.readings import kinds, legend, picture_ending, words, workload_of
from tidegate_lab.reproduce.sifters.runs.combinations import (
    COLOURS,
    COMBINATIONS,
    PAPER,
    RANDOM,
    SIFTERS,
    Measured,
)
from tidegate_lab.reproduce.sifters.runs.sweep import (
    Position,
    all_that_passes,
    best_gains,
    found,
    run_all,
    setting_of,
    taken,
)
from tidegate_lab.workloads.sifters import Workload

THROTTLERS, QUICK_THROTTLERS = (0.1, 0.3, 0.5, 0.7, 0.9), (0.3, 0.7)


def volume_plot(options: Options, whole_normals: bool) -> Plot:
    """What passes beyond z, by z."""
    throttlers = QUICK_THROTTLERS if options.quick else THROTTLERS
    by_combination = {}
    for combination in COMBINATIONS:
        workload = workload_of(combination, whole_normals)
        points = [Position(z, workload, setting_of(options, z=z)) for z in throttlers]
        run_all(points, SIFTERS, options.seeds)
        by_combination[kinds(combination)] = [
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
        f"beyond-volume{picture_ending(whole_normals)}",
        f"What passes of fresh rows{words(whole_normals)}, beside z",
        f"{legend(whole_normals)}; sifters made from 1,000 sample rows, l = 16, Δ = 0.5, α ~ U[1, 2]\n"
        f"{options.seeds_text}",
        panels,
        same_height=True,
        columns=4,
        one_legend=True,
    )


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


def _passed(one: Measured) -> float:
    return one.passed
