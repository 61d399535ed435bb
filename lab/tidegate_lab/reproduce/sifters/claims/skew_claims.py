"""What the paper's text says about figure 4, against what we measured.

Paper: sifters, section VI-B.1. "The best" of a point is the best of the paper's four partitioners there, seed
by seed; medians are taken of its gain over random dropping. All is told under both readings of the skew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from tidegate_lab.reproduce.claims import percent_line
from tidegate_lab.reproduce.experiment import Line, Options
from tidegate_lab.reproduce.sifters.claims.readings import Combination, kinds, told_apart, words
from tidegate_lab.reproduce.sifters.runs.combinations import PAPER
from tidegate_lab.reproduce.sifters.runs.skew_points import AXES, GLOBAL, along, every_point
from tidegate_lab.reproduce.sifters.runs.sweep import (
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
from tidegate_lab.workloads.sifters import Workload

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


def skew_claims(options: Options, whole_normals: bool) -> list[Line]:
    """All of them; those that do not name alphas have those of Table I."""
    points, combinations = every_point(options, whole_normals=whole_normals), told_apart(whole_normals)
    everywhere = [point for some in points.values() for point in some]
    return [
        *(
            line
            for alphas in ALPHA_NAMES
            for combination in combinations
            for line in _gain_lines(options, combination, alphas, whole_normals)
        ),
        *(_best_line(options, points[combination], paper) for combination, paper in PAPER_BEST.items()),
        _no_best(options, points, whole_normals),
        _worst_line(options, everywhere, whole_normals),
        _slightly(options, everywhere, whole_normals),
        *(_grid_line(options, combination, whole_normals) for combination in combinations),
        *_proportional_claims(options, whole_normals),
    ]


def _gain_lines(
    options: Options, combination: Combination, alphas: tuple[float, float], whole_normals: bool
) -> list[Line]:
    """Of the best over random dropping, along each axis; the paper tells both ends."""
    lines = []
    for axis in AXES:
        points, default = (
            along(options, one, axis, alphas, whole_normals=whole_normals)
            for one in (combination, ("skew", "unif"))
        )
        told, other = (percent(best_gains(some, options.seeds)) for some in (points, default))
        said, agrees = _paper_gains(combination, axis, told, other)
        claim = (
            f"{title(points[0].source)}, {ALPHA_NAMES[alphas]}: the best over random, {span(axis, points)}"
        )
        lines.append(percents_line("4", claim, said, told, agrees=agrees))
    return lines


def _paper_gains(
    combination: Combination, axis: str, told: Sequence[float], other: Sequence[float]
) -> tuple[str, bool | None]:
    """What the paper says, and whether ours is at least that; `other` are gains on SKEW/UNIF."""
    if combination in PAPER_GAINS:
        first, last = PAPER_GAINS[combination][AXES.index(axis)]
        return f"+{first} % to +{last} %", told[0] >= first and told[-1] >= last
    if combination == ("skew", "skew"):
        return "higher than SKEW/UNIF", bool(np.mean(told) > np.mean(other))
    return "-", None


def _best_line(options: Options, points: Sequence[Position], paper: tuple[str, str]) -> Line:
    """Which of the four leads at how many points."""
    leading = _leaders(options, points).most_common()
    claim = f"{title(points[0].source)}: the best of the four at {len(points)} points"
    said = f"{paper[0].upper()}, then {paper[1].upper()}"
    return Line("4", claim, said, _counted(leading), agrees=leading[0][0] == paper[0])


def _no_best(options: Options, points: Mapping[Combination, Sequence[Position]], whole_normals: bool) -> Line:
    leaders = [_leaders(options, some).most_common(1)[0][0] for some in points.values()]
    measured = ", ".join(
        f"{kinds(combination)}: {leader.upper()}" for combination, leader in zip(points, leaders, strict=True)
    )
    claim = f"one of the four that is best everywhere{words(whole_normals)}"
    return Line("4", claim, "none; left as future work", measured, agrees=len(set(leaders)) > 1)


def _worst_line(options: Options, points: Sequence[Position], whole_normals: bool) -> Line:
    found = medians(points, options.seeds)
    worst = Counter(PAPER[number] for number in np.argmin([found[name] for name in PAPER], axis=0))
    claim = f"the worst of the four at {len(points)} points{words(whole_normals)}"
    return Line(
        "4", claim, "QEDP, always", _counted(worst.most_common()), agrees=worst["qedp"] == len(points)
    )


def _slightly(options: Options, points: Sequence[Position], whole_normals: bool) -> Line:
    """Medians over all points, seed by seed."""
    ratios = np.median(gains(points, "qedp", options.seeds), axis=1).tolist()
    claim = f"QEDP over random, all points{words(whole_normals)}"
    return percent_line("4", claim, "slightly better", ratios, least=0.1, most=10)


def _grid_line(options: Options, combination: Combination, whole_normals: bool) -> Line:
    """What is left of UGRID's gain as the space gets empty."""
    points = along(options, combination, GLOBAL, whole_normals=whole_normals)
    told = percent(gains(points, "ugrid", options.seeds))
    claim = f"{title(points[0].source)}: UGRID over random, {span(GLOBAL, points)}"
    return percents_line("4", claim, "degrades", told, agrees=told[-1] < told[0])


def _proportional_claims(options: Options, whole_normals: bool) -> list[Line]:
    together = Workload("skew", "skew", same_normals=True, whole_normals=whole_normals)
    what = f"{title(together)}, data and queries around the same means"
    uniform = [] if whole_normals else _proportional_lines(options, Workload("unif", "unif"), "UNIF/UNIF")
    return [*uniform, *_proportional_lines(options, together, what)]


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


def span(axis: str, points: Sequence[Position]) -> str:
    """From where to where a line goes."""
    return f"{axis[-1]} = {points[0].at:g} to {points[-1].at:g}"
