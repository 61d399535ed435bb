"""Which of the two readings the paper's own figures speak for: order and trend of the gains of figure 4.

Paper: sifters, section VI-B.1, tells gains at both ends of the global and of the local skew for two
combinations. Apart from how large they are, that says which combination gains more at each end, and whether
a gain grows along the skew. A line agrees where ours has the same signs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tidegate_lab.reproduce.experiment import Line, Options
from tidegate_lab.reproduce.sifters.claims.readings import words
from tidegate_lab.reproduce.sifters.claims.skew_claims import PAPER_GAINS, span
from tidegate_lab.reproduce.sifters.runs.skew_points import AXES, along
from tidegate_lab.reproduce.sifters.runs.sweep import best_gains, percent, title


def reading_claims(options: Options, whole_normals: bool) -> list[Line]:
    """Three lines for each skew."""
    return [line for axis in AXES for line in _lines(options, axis, whole_normals)]


def _lines(options: Options, axis: str, whole_normals: bool) -> list[Line]:
    lines, ours, papers = [], [], []
    for combination, said in PAPER_GAINS.items():
        points = along(options, combination, axis, whole_normals=whole_normals)
        gains, paper = percent(best_gains(points, options.seeds)), said[AXES.index(axis)]
        where = span(axis, points)
        growth = f"{title(points[0].source)}: points that the gain grows by, {where}"
        lines.append(_signs(growth, [paper[1] - paper[0]], [gains[-1] - gains[0]]))
        ours.append(np.array([gains[0], gains[-1]]))
        papers.append(np.array(paper))
    more = f"UNIF/SKEW{words(whole_normals)}: points that it gains more than SKEW/UNIF, {where}"
    return [*lines, _signs(more, (papers[0] - papers[1]).tolist(), (ours[0] - ours[1]).tolist())]


def _signs(claim: str, paper: Sequence[float], ours: Sequence[float]) -> Line:
    said, measured = (" → ".join(f"{one:+.0f}" for one in some) for some in (paper, ours))
    agrees = bool((np.sign(paper) == np.sign(ours)).all())
    return Line("4", claim, said, measured, samples=tuple(ours), agrees=agrees)
