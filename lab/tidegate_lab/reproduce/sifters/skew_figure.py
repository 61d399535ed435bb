"""Figure 4: overall QoS by global and local skew, for four combinations of data and queries.

Paper: sifters, section VI-B.1. With α = 1 the QoS is the mean completeness.

What we see differently:
- QEDP is not the worst of the four: a grid wastes more regions than queries mislead. Where data is SKEW and
  queries are UNIF, QEDP is even the best at most points.
- UNIF/SKEW gains up to three times what it did in the paper, and grows along G where that fell. SKEW/UNIF
  gains more along G, and less at low L.
- With whole normals (`readings.py`) UNIF/SKEW falls short of the paper's gain but for high L, and SKEW/UNIF
  gains more than it did. Better estimates would not help UNIF/SKEW: with thresholds made from the very rows
  that judge, the best of the four gains hardly more (`judging_claims.py`).
- All of it hangs on how many queries have no data and are complete whatever is dropped; the paper does not
  tell how many rows it judges by.
"""

from __future__ import annotations

from functools import partial

from tidegate.observe.json_frame import Bar
from tidegate_lab.plots.plots import Panel, Plot
from tidegate_lab.reproduce.experiment import Options, Outcome
from tidegate_lab.reproduce.sifters.claims.gain_bars import gain_bars
from tidegate_lab.reproduce.sifters.claims.judging_claims import judging_claims
from tidegate_lab.reproduce.sifters.claims.reading_claims import reading_claims
from tidegate_lab.reproduce.sifters.claims.readings import (
    id_ending,
    legend,
    picture_ending,
    told_apart,
    under_both,
    words,
)
from tidegate_lab.reproduce.sifters.claims.skew_claims import skew_claims
from tidegate_lab.reproduce.sifters.runs.combinations import COMBINATIONS
from tidegate_lab.reproduce.sifters.runs.skew_points import AXES, along, middle
from tidegate_lab.reproduce.sifters.runs.sweep import ALPHA_NAMES, TABLE_1, qos_curves, setting_of

#: Least gains of the best of the four at G = L = 4, in per cent.
TARGETS = {("unif", "skew"): 45, ("skew", "unif"): 45, ("skew", "skew"): 50, ("unif", "unif"): 15}


def figure_4(options: Options) -> Outcome:
    """QoS by skew: α as in Table I, and α = 1; within the hot spots, and with whole normals."""
    return under_both(partial(_under, options))


def _under(options: Options, whole_normals: bool) -> Outcome:
    lines = [
        line
        for claims in (skew_claims, reading_claims, judging_claims)
        for line in claims(options, whole_normals)
    ]
    plots = [_plot(options, alphas, whole_normals) for alphas in ALPHA_NAMES]
    return Outcome(lines, _bars(options, whole_normals), plots)


def _bars(options: Options, whole_normals: bool) -> list[Bar]:
    return [
        bar
        for combination in told_apart(whole_normals)
        for bar in gain_bars(
            "4",
            f"sifters.gain.{'_'.join(combination)}{id_ending(whole_normals)}",
            middle(options, combination, whole_normals=whole_normals),
            TARGETS[combination],
            options.seeds,
        )
    ]


def _plot(options: Options, alphas: tuple[float, float], whole_normals: bool) -> Plot:
    panels = [
        Panel(
            axis,
            "overall QoS",
            qos_curves(
                along(options, (data, queries), axis, alphas, whole_normals=whole_normals), options.seeds
            ),
            title=f"Data: {data.capitalize()}, Query: {queries.capitalize()}",
        )
        for axis in AXES
        for data, queries in COMBINATIONS
    ]
    setting = setting_of(options)
    subtitle = (
        f"{legend(whole_normals)}; l = {setting.regions}, z = {setting.z:g}, Δ = {setting.fairness:g}; "
        f"the skew that is not on the axis is 4\n{options.seeds_text}, on {setting.fresh_rows:,} fresh rows"
    )
    name = f"figure-4{'' if alphas == TABLE_1 else '-alpha-1'}{picture_ending(whole_normals)}"
    heading = f"Figure 4: overall QoS by skew{words(whole_normals)}, {ALPHA_NAMES[alphas]}"
    return Plot(name, heading, subtitle, panels, same_height=True, columns=4, one_legend=True)
