"""Beyond the paper: `auto` against the best of its four partitioners, at every point of figure 4.

The paper leaves open a partitioner that is best under all workloads. Compared are medians over the seeds, and
the best of the four is chosen anew at each point: nobody could have known it beforehand. Whether sifters keep
what they promise is told as well (`promises.py`). All of it under both readings of the skew (`readings.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from tidegate.observe.json_frame import Bar
from tidegate_lab.plots.bars import at_least
from tidegate_lab.plots.plots import Curve, Panel, Plot
from tidegate_lab.reproduce.claims import percent_line
from tidegate_lab.reproduce.experiment import Line, Options, Outcome
from tidegate_lab.reproduce.sifters.claims.promises import promise_bars, promise_lines
from tidegate_lab.reproduce.sifters.claims.readings import (
    id_ending,
    kinds,
    legend,
    picture_ending,
    told_apart,
    under_both,
    words,
    workload_of,
)
from tidegate_lab.reproduce.sifters.runs.combinations import AUTO, COMBINATIONS, PAPER
from tidegate_lab.reproduce.sifters.runs.skew_points import AXES, along, every_point
from tidegate_lab.reproduce.sifters.runs.sweep import ALPHA_NAMES, ONE, TABLE_1, Position, medians, title
from tidegate_lab.reproduce.sifters.volume_picture import as_printed, volume_plot

#: Of `auto` over the best of the four: at every point, and on average.
WORST_TARGET, MEAN_TARGET = 1.0, 1.06
#: Where the plot begins, in per cent: to be seen below zero.
Y_FROM = -5.0


def beyond(options: Options) -> Outcome:
    """The best everywhere, and promises kept."""
    found = under_both(partial(_under, options))
    return replace(found, lines=[*found.lines, *as_printed(options)])


def _under(options: Options, whole_normals: bool) -> Outcome:
    table_1, one = (over_best_everywhere(options, alphas, whole_normals) for alphas in (TABLE_1, ONE))
    lines = [
        *_lines(table_1, ALPHA_NAMES[TABLE_1], whole_normals),
        *_lines(one, ALPHA_NAMES[ONE], whole_normals),
        *promise_lines(options, whole_normals),
    ]
    ending = id_ending(whole_normals)
    bars = [
        _worst(f"sifters.auto.worst_point{ending}", table_1),
        at_least(f"sifters.auto.mean{ending}", float(np.mean(_all(table_1))), "×", MEAN_TARGET),
        _worst(f"sifters.auto.worst_point.alpha_1{ending}", one),
        *promise_bars(options, whole_normals),
    ]
    return Outcome(lines, bars, [_plot(options, whole_normals), volume_plot(options, whole_normals)])


def over_best(points: Sequence[Position], seeds: Sequence[int]) -> list[float]:
    """Median QoS of `auto` over that of the best of the four, point by point."""
    qos = medians(points, seeds)
    best = np.max([qos[name] for name in PAPER], axis=0)
    return [float(one) for one in qos[AUTO] / best]


def over_best_everywhere(
    options: Options, alphas: tuple[float, float], whole_normals: bool
) -> dict[str, list[float]]:
    """By combination, at every point of figure 4."""
    return {
        title(points[0].source): over_best(points, options.seeds)
        for points in every_point(options, alphas, whole_normals=whole_normals).values()
    }


def _lines(found: dict[str, list[float]], alphas: str, whole_normals: bool) -> list[Line]:
    names = [title(workload_of(combination, whole_normals)) for combination in told_apart(whole_normals)]
    return [
        percent_line("beyond", f"{name}, {alphas}: AUTO over the best of four, all points", "-", found[name])
        for name in names
    ]


def _worst(id: str, found: dict[str, list[float]]) -> Bar:
    return at_least(id, min(_all(found)), "×", WORST_TARGET)


def _all(found: dict[str, list[float]]) -> list[float]:
    return [ratio for ratios in found.values() for ratio in ratios]


def _plot(options: Options, whole_normals: bool) -> Plot:
    panels = []
    for axis in AXES:
        for alphas, told in ALPHA_NAMES.items():
            curves = []
            for number, combination in enumerate(COMBINATIONS):
                points = along(options, combination, axis, alphas, whole_normals=whole_normals)
                changes = [100 * (ratio - 1) for ratio in over_best(points, options.seeds)]
                places = [point.at for point in points]
                curves.append(Curve(kinds(combination), places, changes, "points", colour=number))
            panels.append(Panel(axis, "AUTO over the best of four (%)", curves, title=told, y_from=Y_FROM))
    return Plot(
        f"beyond-auto{picture_ending(whole_normals)}",
        f"AUTO against the best of the paper's four partitioners{words(whole_normals)}",
        "overall QoS at every point of figure 4, the best of the four chosen at each\n"
        f"{legend(whole_normals)}; {options.seeds_text}",
        panels,
        same_height=True,
        columns=2,
        one_legend=True,
    )
