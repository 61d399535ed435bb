"""Figures 3 to 5: rate adaptation against random drop, without a time shift, a window on one stream only.

Paper: selective join, experiments, rate adaptation.

Figure 3 shows the rates and r over time, figure 4 the output over time with and without rate adaptation,
figure 5 the average output by κ for different window sizes (on the same machine).

Where we see something else: algorithm 1 is blind for the first of the three periods of the rush and needs the
other two to come down, so over the whole rush it gains less than in its last third. Our rule by model is as
blind, but comes down at once, because it knows what a comparison costs. Both are reported.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import median

import numpy as np
from numpy.typing import NDArray

from tidegate_lab.plots.plots import Curve, Panel, Plot
from tidegate_lab.reproduce.claims import bar, percent_line
from tidegate_lab.reproduce.experiment import Line, Options, Outcome
from tidegate_lab.reproduce.selective_join.over_time import (
    fraction_curve,
    fractions,
    output_curve,
    rate_curve,
    spans,
)
from tidegate_lab.reproduce.selective_join.policies import COLOURS, RANDOM_DROP, RATE, RATE_MODEL
from tidegate_lab.reproduce.selective_join.scenarios import (
    PAPER_RUSH,
    QUICK_RUSH,
    SKEW,
    Rush,
    Scenario,
    one_window,
    output_rate,
    ratios,
    run,
)
from tidegate_lab.simulate.join.machine import SECOND_US

SKEWS, QUICK_SKEWS = (0.0, 0.4, 0.6, 0.8, 1.0), (0.4, 1.0)
WINDOW_SECONDS, QUICK_WINDOW_SECONDS = (10.0, 20.0, 40.0), (10.0, 20.0)
_ABOUT = f"overlap join, threshold 3, κ = {SKEW:g}, τ = 0, 20 s window on one stream\n"
TIME_LABEL, OUTPUT_LABEL = "time (s)", "output rate (tuples/s)"


def rush_of(options: Options) -> Rush:
    return QUICK_RUSH if options.quick else PAPER_RUSH


def settings_text(rush: Rush, options: Options, fit_how: str = "") -> str:
    return f"machine: {rush.fits:.3g} tuples/s just fit{fit_how} · {options.seeds_text}"


def figure_3(options: Options) -> Outcome:
    """Stream rates and r over time."""
    rush = rush_of(options)
    scenario = Scenario(rush, one_window())
    curves = [
        rate_curve(rush),
        fraction_curve(scenario, RATE, options.seeds, 0, "r, algorithm 1"),
        fraction_curve(scenario, RATE_MODEL, options.seeds, 0, "r, by model"),
    ]
    plot = Plot(
        "figure-3",
        "Figure 3: stream rates and fraction parameter r",
        _ABOUT + settings_text(rush, options),
        [Panel(TIME_LABEL, "stream rates (tuples/s)", curves, right_label="fraction parameter r")],
    )
    return Outcome([_r_over_time(scenario, rule, options) for rule in (RATE, RATE_MODEL)], plots=[plot])


def _r_over_time(scenario: Scenario, rule: str, options: Options) -> Line:
    """r before the rush, at its end, at the end of the long part, and at the end of the run."""
    r = fractions(scenario, rule, options.seeds, 0)
    rush = scenario.rush
    moments = (rush.rush[0], rush.rush[1], rush.long[1], rush.steps.seconds)
    calm, rushed, long, after = (
        float(r[round(moment * SECOND_US / scenario.tick_us) - 1]) for moment in moments
    )
    return Line(
        "3",
        f"r follows the rates: {rule}",
        "r adapts to the changing stream rates",
        f"{calm:.2f} calm, {rushed:.2f} after the rush, {long:.2f} after the long part, {after:.2f} last",
        samples=(calm, rushed, long, after),
        agrees=rushed < long < calm == 1.0 and after > long,
    )


def figure_4(options: Options) -> Outcome:
    """Output over time, with rate adaptation and with random drop."""
    rush = rush_of(options)
    scenario = Scenario(rush, one_window())
    at_rush, at_long = (f"output at {rate:g} tuples/s" for rate in rush.rates[1:3])

    def gain(policy: str, stretch: tuple[float, float], claim: str, paper: str, least: float) -> Line:
        over = ratios(scenario, policy, RANDOM_DROP, stretch, options.seeds)
        return percent_line("4", f"{claim}: {policy} over {RANDOM_DROP}", paper, over, least=least)

    # "Around" in the paper is read as: not much less. Bars have targets of their own.
    lines = [
        gain(RATE, rush.rush, at_rush, "around +100 %", 80),
        gain(RATE, rush.adapted, f"{at_rush}, last third", "around +100 %", 80),
        gain(RATE_MODEL, rush.rush, at_rush, "around +100 %", 80),
        gain(RATE, rush.long, at_long, "around +50 %", 40),
        gain(RATE_MODEL, rush.long, at_long, "around +50 %", 40),
    ]
    lines.append(_calm(scenario, options))
    bars = [
        bar(lines[0], "figure4-500", 100),
        bar(lines[1], "figure4-500-last-third", 100),
        bar(lines[2], "figure4-500-model", 100),
        bar(lines[3], "figure4-300", 50),
        bar(lines[4], "figure4-300-model", 50),
    ]
    curves = [output_curve(scenario, policy, options.seeds) for policy in (RATE, RATE_MODEL, RANDOM_DROP)]
    plot = Plot(
        "figure-4",
        "Figure 4: output rate with and without rate adaptation",
        _ABOUT + settings_text(rush, options),
        [Panel(TIME_LABEL, OUTPUT_LABEL, curves, spans=spans(rush))],
    )
    return Outcome(lines, bars, [plot])


def _calm(scenario: Scenario, options: Options) -> Line:
    """Before the rush there is nothing to adapt to, and nothing is dropped."""
    calm = scenario.rush.stretch(0)
    found = ratios(scenario, RATE, RANDOM_DROP, calm, options.seeds)
    line = percent_line("4", f"output before the rush: {RATE} over {RANDOM_DROP}", "no difference", found)
    lost = sum(run(scenario, RANDOM_DROP, seed).total("dropped", *calm) for seed in options.seeds)
    return replace(line, agrees=line.value == 0 and lost == 0)


def figure_5(options: Options) -> Outcome:
    """Average output over the whole run, by κ and window size."""
    rush = rush_of(options)
    skews = QUICK_SKEWS if options.quick else SKEWS
    windows = QUICK_WINDOW_SECONDS if options.quick else WINDOW_SECONDS
    whole = (0.0, rush.steps.seconds)
    panels, gains = [], np.zeros((len(windows), len(skews)))
    for row, seconds in enumerate(windows):
        scenarios = [Scenario(rush, one_window(seconds), skew, fitted_seconds=20.0) for skew in skews]
        curves = []
        for policy in (RATE, RATE_MODEL, RANDOM_DROP):
            found = [output_rate(scenario, policy, whole, options.seeds) for scenario in scenarios]
            curves.append(Curve(policy, skews, found, "points", colour=COLOURS[policy]))
        panels.append(Panel("skew κ", f"average {OUTPUT_LABEL}", curves, title=f"{seconds:g} s window"))
        for column, scenario in enumerate(scenarios):
            over = ratios(scenario, RATE, RANDOM_DROP, whole, options.seeds)
            gains[row, column] = 100 * (median(over) - 1)
    plot = Plot(
        "figure-5",
        "Figure 5: average output rate by skew κ and window size",
        "overlap join, threshold 3, τ = 0, window on one stream\n"
        + settings_text(rush, options, " with a window of 20 s"),
        panels,
        same_height=True,
    )
    rows = [
        {"kind": "gain", "figure": "5", "window_seconds": w, "skews": skews, "gain_percent": line.tolist()}
        for w, line in zip(windows, gains, strict=True)
    ]
    return Outcome(
        [_by_skew(windows, skews, gains), _by_window(windows, skews, gains)], plots=[plot], rows=rows
    )


def _by_skew(windows: tuple[float, ...], skews: tuple[float, ...], gains: NDArray[np.float64]) -> Line:
    parts = [f"{g[0]:+.0f} → {g[-1]:+.0f} % ({w:g} s)" for w, g in zip(windows, gains, strict=True)]
    return Line(
        "5",
        f"gain of rate adaptation, κ from {skews[0]:g} to {skews[-1]:g}",
        "the improvement increases with skewness",
        ", ".join(parts),
        samples=tuple(gains.ravel().tolist()),
        agrees=bool((gains[:, -1] > gains[:, 0]).all()),
    )


def _by_window(windows: tuple[float, ...], skews: tuple[float, ...], gains: NDArray[np.float64]) -> Line:
    steep = gains[:, -1]
    return Line(
        "5",
        f"gain of rate adaptation by window at κ = {skews[-1]:g}",
        "the improvement increases with the size of the windows",
        ", ".join(f"{g:+.0f} % ({w:g} s)" for w, g in zip(windows, steep, strict=True)),
        samples=tuple(steep.tolist()),
        agrees=bool((np.diff(steep) > 0).all()),
    )
