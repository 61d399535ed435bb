"""What the paper's text says about figure 4, against what we measured.

Paper: sifters, section VI-B.1. "The best" of a point is the best of the paper's four partitioners there, seed
by seed; medians are taken of its gain over random dropping.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from tidegate.papers.experiments.claims import percent_line
from tidegate.papers.experiments.experiment import Line, Options
from tidegate.papers.experiments.sifters.combinations import COMBINATIONS, PAPER
from tidegate.papers.experiments.sifters.skew_points import AXES, GLOBAL, Combination, along
from tidegate.papers.experiments.sifters.sweep import (
    ALPHA_NAMES,
    Position,
    best_gains,
    gains,
    medians,
    percent,
    percents_line,
    setting_of,
    title,
)
from tidegate.papers.sifters import Workload

#: What the paper gains along G and along L, in per cent, from the lowest to the highest skew.
PAPER_GAINS = {
    ("unif", "skew"): ((60, 50), (35, 65)),
    ("skew", "unif"): ((35, 20), (40, 2)),
}
#: The best of the four and the next, as the paper saw them.
PAPER_BEST = {
    ("unif", "skew"): ("flexp", "dedp"),
    ("skew", "unif"): ("dedp", "flexp"),
    ("skew", "skew"): ("dedp", "flexp"),
}


def skew_claims(options: Options, points: Mapping[Combination, Sequence[Position]]) -> list[Line]:
    """All of them; `points` are those with the alphas of Table I."""
    everywhere = [point for some in points.values() for point in some]
    return [
        *(
            line
            for alphas in ALPHA_NAMES
            for combination in COMBINATIONS
            for line in _gain_lines(options, combination, alphas)
        ),
        *(_best_line(options, points[combination], paper) for combination, paper in PAPER_BEST.items()),
        _no_best(options, points),
        _worst_line(options, everywhere),
        _slightly(options, everywhere),
        *(_grid_line(options, combination) for combination in COMBINATIONS),
        *_proportional_lines(options, Workload("unif", "unif"), "UNIF/UNIF"),
        *_proportional_lines(
            options, Workload("skew", "skew", same_normals=True), "data and queries in the same normals"
        ),
    ]


def _gain_lines(options: Options, combination: Combination, alphas: tuple[float, float]) -> list[Line]:
    """Of the best over random dropping, along each axis; the paper tells both ends."""
    lines = []
    for axis in AXES:
        points = along(options, combination, axis, alphas)
        told = percent(best_gains(points, options.seeds))
        said, agrees = _paper_gains(options, combination, axis, alphas, told)
        claim = (
            f"{title(points[0].source)}, {ALPHA_NAMES[alphas]}: the best over random, {_span(axis, points)}"
        )
        lines.append(percents_line("4", claim, said, told, agrees=agrees))
    return lines


def _paper_gains(
    options: Options, combination: Combination, axis: str, alphas: tuple[float, float], told: Sequence[float]
) -> tuple[str, bool | None]:
    """What the paper says, and whether ours is at least that."""
    if combination in PAPER_GAINS:
        first, last = PAPER_GAINS[combination][AXES.index(axis)]
        return f"+{first} % to +{last} %", told[0] >= first and told[-1] >= last
    if combination == ("skew", "skew"):
        other = percent(best_gains(along(options, ("skew", "unif"), axis, alphas), options.seeds))
        return "higher than SKEW/UNIF", bool(np.mean(told) > np.mean(other))
    return "-", None


def _best_line(options: Options, points: Sequence[Position], paper: tuple[str, str]) -> Line:
    """Which of the four leads at how many points."""
    leading = _leaders(options, points).most_common()
    claim = f"{title(points[0].source)}: the best of the four at {len(points)} points"
    said = f"{paper[0].upper()}, then {paper[1].upper()}"
    return Line("4", claim, said, _counted(leading), agrees=leading[0][0] == paper[0])


def _no_best(options: Options, points: Mapping[Combination, Sequence[Position]]) -> Line:
    leaders = [_leaders(options, some).most_common(1)[0][0] for some in points.values()]
    names = (title(some[0].source) for some in points.values())
    measured = ", ".join(f"{name}: {leader.upper()}" for name, leader in zip(names, leaders, strict=True))
    claim = "one of the four that is best everywhere"
    return Line("4", claim, "none; left as future work", measured, agrees=len(set(leaders)) > 1)


def _worst_line(options: Options, points: Sequence[Position]) -> Line:
    found = medians(points, options.seeds)
    worst = Counter(PAPER[number] for number in np.argmin([found[name] for name in PAPER], axis=0))
    claim = f"the worst of the four at {len(points)} points"
    return Line(
        "4", claim, "QEDP, always", _counted(worst.most_common()), agrees=worst["qedp"] == len(points)
    )


def _slightly(options: Options, points: Sequence[Position]) -> Line:
    """Medians over all points, seed by seed."""
    ratios = np.median(gains(points, "qedp", options.seeds), axis=1).tolist()
    return percent_line("4", "QEDP over random, all points", "slightly better", ratios, least=0.1, most=10)


def _grid_line(options: Options, combination: Combination) -> Line:
    """What is left of UGRID's gain as the space gets empty."""
    points = along(options, combination, GLOBAL)
    told = percent(gains(points, "ugrid", options.seeds))
    claim = f"{title(points[0].source)}: UGRID over random, {_span(GLOBAL, points)}"
    return percents_line("4", claim, "degrades", told, agrees=told[-1] < told[0])


def _proportional_lines(options: Options, workload: Workload, what: str) -> list[Line]:
    """Where data and queries go together."""
    point = [Position(4.0, workload, setting_of(options))]
    ratios = best_gains(point, options.seeds)[:, 0].tolist()
    of_each = [float(medians(point, options.seeds)[name][0]) for name in PAPER]
    little = [max(of_each) / min(of_each)]
    return [
        percent_line("4", f"{what}: the best over random", "around +6 %", ratios, least=0.1, most=15),
        percent_line("4", f"{what}: best of the four over the worst", "little", little, most=10),
    ]


def _leaders(options: Options, points: Sequence[Position]) -> Counter[str]:
    found = medians(points, options.seeds)
    return Counter(PAPER[number] for number in np.argmax([found[name] for name in PAPER], axis=0))


def _counted(names: Sequence[tuple[str, int]]) -> str:
    return ", ".join(f"{name.upper()} at {count}" for name, count in names)


def _span(axis: str, points: Sequence[Position]) -> str:
    return f"{axis[-1]} = {points[0].at:g} to {points[-1].at:g}"
