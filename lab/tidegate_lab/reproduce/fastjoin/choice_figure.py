"""Figure 14: latency of FastJoin when GreedyFit chooses the keys, and when SAFit does.

Paper: FastJoin, section VI-B: both are nearly the same. Choosing is part of the pause of a migration, so that
SAFit's longer search counts: some 5 µs a key against a tenth of one (`lab/scripts/key_choice_speed.py`).

SAFit as printed anneals on a ratio that a single key makes largest, and so may leave most of a gap open; the
same annealing on the sum of benefits stands beside it.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import median

import numpy as np

from tidegate.route.fastjoin.strategy import ANNEALING, ANNEALING_SUM, GREEDY, FastJoinStrategy
from tidegate_lab.plots.plots import Curve, Panel, Plot
from tidegate_lab.reproduce.claims import number_line, percent_line
from tidegate_lab.reproduce.experiment import Options, Outcome
from tidegate_lab.reproduce.fastjoin.over_time_figures import LATENCY_LABEL, TIME_LABEL
from tidegate_lab.reproduce.fastjoin.scenarios import (
    GREEDY_SECONDS,
    THETA,
    about,
    common_rate,
    run,
    scenario_of,
)

ANNEALING_SECONDS = 5e-6
#: Latencies that differ by less are nearly the same.
NEARLY = 0.05
CHOICES = {
    "GreedyFit": (FastJoinStrategy(THETA, chooser=GREEDY), GREEDY_SECONDS),
    "SAFit, as printed": (FastJoinStrategy(THETA, chooser=ANNEALING), ANNEALING_SECONDS),
    "SAFit, on the sum of benefits": (FastJoinStrategy(THETA, chooser=ANNEALING_SUM), ANNEALING_SECONDS),
}


def figure_14(options: Options) -> Outcome:
    """Latency over time, by who chooses."""
    scenario = scenario_of(options)
    strategies = [strategy for strategy, _ in CHOICES.values()]
    rates = {seed: common_rate([scenario], strategies, seed) for seed in options.seeds}
    found = {
        name: np.array(
            [run(scenario, strategy, seed).latencies(rates[seed], seconds) for seed in options.seeds]
        )
        for name, (strategy, seconds) in CHOICES.items()
    }
    means = {name: all_[:, scenario.settled :].mean(axis=1) for name, all_ in found.items()}
    greedy, *others = CHOICES
    lines = []
    for other in others:
        ratios = (means[greedy] / means[other]).tolist()
        line = percent_line("14", f"latency: {greedy} over {other}", "nearly the same", ratios)
        lines.append(replace(line, agrees=abs(median(ratios) - 1) <= NEARLY))
    for name, strategy in zip(CHOICES, strategies, strict=True):
        traces = [run(scenario, strategy, seed).trace for seed in options.seeds]
        moved = [float(trace.series("migrations").sum()) for trace in traces]
        lines.append(number_line("14", f"migrations, {name}", "-", moved))
    curves = [
        Curve(
            f"{name} (mean {median(means[name]) * 1000:.2f} ms)",
            (np.arange(all_.shape[1] - 2) + 2).tolist(),
            (1000 * np.median(all_[:, 2:], axis=0)).tolist(),
            colour=number,
        )
        for number, (name, all_) in enumerate(found.items())
    ]
    name = options.plot_name("14")
    title = "Figure 14: latency with GreedyFit and with SAFit"
    subtitle = about(options, told=f"; {scenario.instances} instances, Θ = {THETA:g}")
    return Outcome(lines, plots=[Plot(name, title, subtitle, [Panel(TIME_LABEL, LATENCY_LABEL, curves)])])
