"""Figure 4: overall QoS by global and local skew, for four combinations of data and queries.

Paper: sifters, section VI-B.1. With α = 1 the QoS is the mean completeness.

What we see differently:
- QEDP is not the worst of the four: a grid wastes more regions than queries mislead. Where data is SKEW and
  queries are UNIF, QEDP is even the best at most points.
- With whole normals UNIF/SKEW falls short of the paper's gain but for high L, and where data is skewed we
  gain more than it did. Within the hot spots (`readings.py`) UNIF/SKEW gains up to three times what it did.
  Both hang on how many queries have no data and are complete whatever is dropped; the paper does not tell how
  many rows it judges by. Better estimates would not help UNIF/SKEW: with thresholds made from the very rows
  that judge, the best of the four gains hardly more (`judging_claims.py`).
"""

from __future__ import annotations

from tidegate.papers.experiments.experiment import Options, Outcome
from tidegate.papers.experiments.sifters.combinations import COMBINATIONS
from tidegate.papers.experiments.sifters.gain_bars import gain_bars
from tidegate.papers.experiments.sifters.judging_claims import judging_claims
from tidegate.papers.experiments.sifters.reading_claims import reading_claims
from tidegate.papers.experiments.sifters.readings import READINGS, id_ending
from tidegate.papers.experiments.sifters.skew_claims import skew_claims
from tidegate.papers.experiments.sifters.skew_points import AXES, along, middle
from tidegate.papers.experiments.sifters.sweep import (
    ALPHA_NAMES,
    TABLE_1,
    qos_curves,
    setting_of,
)
from tidegate.report.frame import Bar
from tidegate.report.plots import Panel, Plot

#: Least gains of the best of the four at G = L = 4, in per cent.
TARGETS = {("unif", "skew"): 45, ("skew", "unif"): 45, ("skew", "skew"): 50, ("unif", "unif"): 15}


def figure_4(options: Options) -> Outcome:
    """QoS by skew: α as in Table I, and α = 1; normals whole, and within the hot spots."""
    lines = [
        line
        for within_spots in READINGS
        for claims in (skew_claims, reading_claims, judging_claims)
        for line in claims(options, within_spots)
    ]
    plots = [_plot(options, alphas, within_spots) for within_spots in READINGS for alphas in ALPHA_NAMES]
    return Outcome(lines, _bars(options), plots)


def _bars(options: Options) -> list[Bar]:
    return [
        bar
        for combination, target in TARGETS.items()
        for within_spots in READINGS
        for bar in gain_bars(
            "4",
            f"sifters.gain.{'_'.join(combination)}{id_ending(within_spots)}",
            middle(options, combination, within_spots=within_spots),
            target,
            options.seeds,
        )
    ]


def _plot(options: Options, alphas: tuple[float, float], within_spots: bool) -> Plot:
    panels = [
        Panel(
            axis,
            "overall QoS",
            qos_curves(
                along(options, (data, queries), axis, alphas, within_spots=within_spots), options.seeds
            ),
            title=f"Data: {data.capitalize()}, Query: {queries.capitalize()}",
        )
        for axis in AXES
        for data, queries in COMBINATIONS
    ]
    setting = setting_of(options)
    subtitle = (
        f"l = {setting.regions}, z = {setting.z:g}, Δ = {setting.fairness:g}; the skew that is not on the "
        f"axis is 4\n{options.seeds_text}, on {setting.fresh_rows:,} fresh rows"
    )
    name = "figure-4" + ("" if alphas == TABLE_1 else "-alpha-1") + ("-within-spots" if within_spots else "")
    skew = "skew within spots" if within_spots else "skew"
    heading = f"Figure 4: overall QoS by {skew}, {ALPHA_NAMES[alphas]}"
    return Plot(name, heading, subtitle, panels, same_height=True, columns=4, one_legend=True)
