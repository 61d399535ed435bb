"""Figures 3 to 7 once more, on real news items in place of the paper's workload (`news.py`).

Paper: selective join, experiments and motivation. There is no κ to vary: news are as skewed as they are, so
figure 5 is by window size only and figure 8 has no counterpart. In figures 6 and 7 the right source lags
behind by half a window, as a slower agency would. The paper measured nothing of this; its claims on made-up
streams stand next to our figures for comparison. A seed is another part of the year.

What we see: the adaptations gain far less than on the paper's workload, and between desks nothing. Stories
that repeat at once are few next to subjects that come up all the time, so most of a window is worth about the
same. The settings (feeds, parts, threshold) were chosen after a first try in which a window spanned weeks of
news; benchmarks/reproduce-selective-join-real.json has both.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tidegate_lab.plots.plots import Curve, Panel, Plot
from tidegate_lab.reproduce.claims import percent_line
from tidegate_lab.reproduce.experiment import Line, Options, Outcome
from tidegate_lab.reproduce.selective_join.news import DESKS, WIRE, News, item_count
from tidegate_lab.reproduce.selective_join.over_time import fraction_curve, output_curve, rate_curve, spans
from tidegate_lab.reproduce.selective_join.policies import (
    COLOURS,
    DIRECTION,
    RANDOM_DROP,
    RATE,
    RATE_MODEL,
    SELECTIVE,
    TIME,
)
from tidegate_lab.reproduce.selective_join.rate_figures import (
    OUTPUT_LABEL,
    QUICK_WINDOW_SECONDS,
    TIME_LABEL,
    WINDOW_SECONDS,
    rush_of,
    settings_text,
)
from tidegate_lab.reproduce.selective_join.scenarios import (
    Rush,
    Scenario,
    both_windows,
    one_window,
    output_rate,
    ratios,
)

LAG_SECONDS = 10.0


def scaled(rush: Rush, items: int) -> Rush:
    """The same steps with so many items of both sources in all; what fits shrinks alike."""
    factor = items / (2 * sum(s * r for s, r in rush.steps.levels))
    calm, high, middle, after = (rate * factor for rate in rush.rates)
    return replace(rush, rates=(calm, high, middle, after), fits=rush.fits * factor)


def _scenario(options: Options, *, lag: float = 0.0, both: bool = False, sources: str = WIRE) -> Scenario:
    news = News(options.real or Path(), sources, lag_seconds=lag)
    rush = scaled(rush_of(options), item_count(news))
    return Scenario(rush, both_windows() if both else one_window(), news=news)


def _about(scenario: Scenario, options: Options, told: str = "medians") -> str:
    news = scenario.news
    lag = f", right source {news.lag_seconds:g} s behind" if news and news.lag_seconds else ""
    least = f"{news.at_least:g}" if news else ""
    about = f"Reuters items on two feeds, inner product of terms ≥ {least}{lag}"
    parts = settings_text(scenario.rush, options).replace("seed", "part").replace("medians", told)
    return f"{about}\n{parts}"


def _curve(scenario: Scenario, policy: str, options: Options) -> Curve:
    """Matches are few and parts of the year differ: their mean, over longer stretches."""
    return output_curve(scenario, policy, options.seeds, bin_seconds=5, differ=True)


def figure_3(options: Options) -> Outcome:
    """Rates and r over time."""
    scenario = _scenario(options)
    curves = [
        rate_curve(scenario.rush),
        fraction_curve(scenario, RATE, options.seeds, 0, "r, algorithm 1"),
        fraction_curve(scenario, RATE_MODEL, options.seeds, 0, "r, by model"),
    ]
    panel = Panel(TIME_LABEL, "items a second and source", curves, right_label="fraction parameter r")
    title = "Figure 3 on news: rates and fraction parameter r"
    return Outcome(plots=[Plot("real-figure-3", title, _about(scenario, options), [panel])])


def figure_4(options: Options) -> Outcome:
    """Output over time, with rate adaptation and with random drop."""
    scenario = _scenario(options)
    rush, lines = scenario.rush, []
    stretches = (("rush", rush.rush, "around +100 %"), ("long part", rush.long, "around +50 %"))
    for sources in (WIRE, DESKS):
        own = _scenario(options, sources=sources)
        for policy in (RATE, RATE_MODEL):
            for name, stretch, paper in stretches:
                found = ratios(own, policy, RANDOM_DROP, stretch, options.seeds)
                claim = f"{sources}, {name}: {policy} over {RANDOM_DROP}"
                lines.append(percent_line("4", claim, paper, found))
    curves = [_curve(scenario, policy, options) for policy in (RATE, RATE_MODEL, RANDOM_DROP)]
    panel = Panel(TIME_LABEL, OUTPUT_LABEL, curves, spans=spans(rush))
    title = "Figure 4 on news: output rate with and without rate adaptation"
    return Outcome(lines, plots=[Plot("real-figure-4", title, _about(scenario, options, "means"), [panel])])


def figure_5(options: Options) -> Outcome:
    """Average output by window size."""
    base = _scenario(options)
    whole = (0.0, base.rush.steps.seconds)
    lengths = QUICK_WINDOW_SECONDS if options.quick else WINDOW_SECONDS
    scenarios = [replace(base, windows=one_window(w), fitted_seconds=20.0) for w in lengths]
    policies = (RATE, RATE_MODEL, RANDOM_DROP)
    curves = [
        Curve(
            policy,
            lengths,
            [output_rate(scenario, policy, whole, options.seeds) for scenario in scenarios],
            "points",
            colour=COLOURS[policy],
        )
        for policy in policies
    ]
    lines: list[Line] = []
    for length, scenario in zip(lengths, scenarios, strict=True):
        found = ratios(scenario, RATE, RANDOM_DROP, whole, options.seeds)
        lines.append(
            percent_line(
                "5", f"{WIRE}, {length:g} s window: {RATE} over {RANDOM_DROP}", "grows with the window", found
            )
        )
    panel = Panel("window (s)", f"average {OUTPUT_LABEL}", curves)
    title = "Figure 5 on news: average output rate by window size"
    return Outcome(lines, plots=[Plot("real-figure-5", title, _about(base, options), [panel])])


def figure_6(options: Options) -> Outcome:
    """r₁ and r₂ over time."""
    scenario = _scenario(options, lag=LAG_SECONDS, both=True)
    curves = [
        rate_curve(scenario.rush),
        fraction_curve(scenario, DIRECTION, options.seeds, 0, "r₁ (window of the leading source)", colour=0),
        fraction_curve(scenario, DIRECTION, options.seeds, 1, "r₂ (window of the source behind)", colour=1),
    ]
    panel = Panel(TIME_LABEL, "items a second and source", curves, right_label="fraction parameters r₁, r₂")
    title = "Figure 6 on news: rates and fraction parameters r₁ and r₂"
    return Outcome(plots=[Plot("real-figure-6", title, _about(scenario, options), [panel])])


def figure_7(options: Options) -> Outcome:
    """Output over time of the join settings."""
    scenario = _scenario(options, lag=LAG_SECONDS, both=True)
    lines = []
    for sources in (WIRE, DESKS):
        own = _scenario(options, lag=LAG_SECONDS, both=True, sources=sources)
        for policy, over, paper in (
            (TIME, RATE, "around +50 %"),
            (DIRECTION, TIME, "around +40 %"),
            (SELECTIVE, DIRECTION, "-"),
            (SELECTIVE, RANDOM_DROP, "-"),
        ):
            found = ratios(own, policy, over, own.rush.shedding, options.seeds)
            claim = f"{sources}, while shedding: {policy} over {over}"
            lines.append(percent_line("7", claim, paper, found))
    shown = (DIRECTION, TIME, RATE, SELECTIVE, RANDOM_DROP)
    curves = [_curve(scenario, policy, options) for policy in shown]
    panel = Panel(TIME_LABEL, OUTPUT_LABEL, curves, spans=spans(scenario.rush))
    title = "Figure 7 on news: output rate of the join settings"
    return Outcome(lines, plots=[Plot("real-figure-7", title, _about(scenario, options, "means"), [panel])])
