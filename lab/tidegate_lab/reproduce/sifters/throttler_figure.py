"""Figure 8: overall QoS by the throttler z, for four combinations of data and queries.

Paper: sifters, section VI-B.3: except for UNIF/UNIF, the QoS rises fastest where the load is highest;
UNIF/UNIF rises in a line, as with random dropping. α as in Table I makes a QoS below zero possible.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from tidegate_lab.plots.plots import Curve, Panel, Plot
from tidegate_lab.reproduce.experiment import Line, Options, Outcome
from tidegate_lab.reproduce.sifters.claims.readings import (
    Combination,
    kinds,
    legend,
    picture_ending,
    told_apart,
    under_both,
    words,
    workload_of,
)
from tidegate_lab.reproduce.sifters.runs.combinations import AUTO, COMBINATIONS
from tidegate_lab.reproduce.sifters.runs.sweep import (
    ALPHA_NAMES,
    ONE,
    TABLE_1,
    Position,
    found,
    run_all,
    setting_of,
    title,
    with_alphas,
)

THROTTLERS = (0.1, 0.3, 0.5, 0.7, 0.9)
SHOWN = (("dedp", TABLE_1), ("dedp", ONE), (AUTO, TABLE_1))
COLOURS = {("skew", "skew"): 0, ("unif", "unif"): 1, ("skew", "unif"): 2, ("unif", "skew"): 3}
#: Rises that differ by less are the same.
SAME = 0.1


def figure_8(options: Options) -> Outcome:
    """QoS by z, and how much faster it rises where z is low."""
    return under_both(partial(_under, options))


def _under(options: Options, whole_normals: bool) -> Outcome:
    panels, lines = [], []
    for name, alphas in SHOWN:
        what = f"{name.upper()}, {ALPHA_NAMES[alphas]}"
        curves = []
        for combination in COMBINATIONS:
            points = _points(options, combination, alphas, whole_normals)
            run_all(points, (name,), options.seeds)
            qos = np.median(found(points, name, options.seeds), axis=0).tolist()
            label = kinds(combination).title()
            curves.append(Curve(label, THROTTLERS, qos, "points", colour=COLOURS[combination]))
            if combination in told_apart(whole_normals):
                lines.append(_rise(f"{what}, {title(points[0].source)}", qos))
        panels.append(Panel("throttle fraction, z", "overall QoS", curves, title=what, y_from=-0.4))
    heading = f"Figure 8: overall QoS by throttler{words(whole_normals)}"
    subtitle = f"{legend(whole_normals)}; l = 16, Δ = 0.5\n{options.seeds_text}"
    name = f"figure-8{picture_ending(whole_normals)}"
    return Outcome(lines, plots=[Plot(name, heading, subtitle, panels, same_height=True, one_legend=True)])


def _points(
    options: Options, combination: Combination, alphas: tuple[float, float], whole_normals: bool
) -> list[Position]:
    workload = workload_of(combination, whole_normals)
    return [with_alphas(Position(z, workload, setting_of(options, z=z)), alphas) for z in THROTTLERS]


def _rise(what: str, qos: Sequence[float]) -> Line:
    """From z = 0.1 to 0.3 over that from 0.7 to 0.9."""
    ratio = (qos[1] - qos[0]) / (qos[-1] - qos[-2])
    even = "UNIF/UNIF" in what
    return Line(
        "8",
        f"{what}: rise from z = 0.1 to 0.3 over that from 0.7 to 0.9",
        "1: a line" if even else "above 1",
        f"{ratio:.2f}",
        ratio,
        "×",
        tuple(qos),
        abs(ratio - 1) <= SAME if even else ratio > 1 + SAME,
    )
