"""How much the gains of figure 4 hang on how one judges, where the paper leaves it open; what bounds them.

Paper: sifters, section VI-B.1, tells neither by how many rows it judges nor how it averages. Both matter:

- The fewer fresh rows, the more queries are without data by chance. They count as complete whatever is
  dropped, which lifts random dropping most, so that gains shrink. Equation 1 speaks of densities, of which
  many rows are the better picture; bars are judged by the most rows told here.
- The best of the four can be chosen for each seed, as elsewhere in these figures, or one for all seeds by its
  median: the gain is then that of medians, and mostly smaller.

Whether the server drops what passes beyond z matters as well: `gain_bars.py` judges both ways, and says what
the most is that the regions could give.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tidegate_lab.reproduce.claims import percent_line
from tidegate_lab.reproduce.experiment import Line, Options
from tidegate_lab.reproduce.sifters.claims.gain_bars import known_gains
from tidegate_lab.reproduce.sifters.claims.readings import told_apart
from tidegate_lab.reproduce.sifters.runs.combinations import PAPER, RANDOM
from tidegate_lab.reproduce.sifters.runs.skew_points import middle
from tidegate_lab.reproduce.sifters.runs.sweep import (
    Position,
    best_gains,
    medians,
    percent,
    percents_line,
    run_all,
    title,
)

#: Shares of the fresh rows that everything else is judged by.
SHARES = (0.2, 0.5, 1.0)


def judging_claims(options: Options, whole_normals: bool) -> list[Line]:
    """Three lines for each combination, where both skews are 4."""
    return [
        line
        for combination in told_apart(whole_normals)
        for line in _lines(options, middle(options, combination, whole_normals=whole_normals))
    ]


def _lines(options: Options, point: Position) -> list[Line]:
    points = [_judged_by(point, share) for share in SHARES]
    run_all(points, (RANDOM, *PAPER), options.seeds)
    rows = ", ".join(f"{point.at:,.0f}" for point in points)
    name = title(points[0].source)
    each, one = percent(best_gains(points, options.seeds)), _one_for_all(options, points)
    most = known_gains(points[-1:], options.seeds)[:, 0].tolist()
    return [
        percents_line("4", f"{name}: the best over random, judged by {rows} rows", "not told", each),
        percents_line("4", f"{name}: the same, one partitioner for all seeds", "not told", one),
        percent_line("4", f"{name}: the same, thresholds by the rows that judge", "not told", most),
    ]


def _judged_by(point: Position, share: float) -> Position:
    rows = round(share * point.setting.fresh_rows)
    return replace(point, at=float(rows), setting=replace(point.setting, fresh_rows=rows))


def _one_for_all(options: Options, points: list[Position]) -> list[float]:
    """Gains of medians, in per cent."""
    found = medians(points, options.seeds, (RANDOM, *PAPER))
    ratios = np.max([found[name] for name in PAPER], axis=0) / found[RANDOM]
    return [float(100 * (ratio - 1)) for ratio in ratios]
