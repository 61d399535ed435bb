"""Figures 3, 4 and 11: throughput, latency and imbalance over time, FastJoin against both baselines.

Paper: FastJoin, section VI-B, 48 instances, Θ = 2.2. FastJoin starts with the same table as hash routing and
moves keys whenever LI exceeds Θ: one pair of instances a batch and group. The pause of a migration
(algorithm 2) is part of the latencies.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tidegate_lab.plots.plots import Curve, Panel, Plot
from tidegate_lab.reproduce.claims import number_line, percent_line
from tidegate_lab.reproduce.curves import band_curve
from tidegate_lab.reproduce.experiment import Line, Options, Outcome
from tidegate_lab.reproduce.fastjoin.scenarios import (
    COLOURS,
    CONTRAND,
    FASTJOIN,
    HASH,
    STRATEGIES,
    THETA,
    about,
    common_rate,
    run,
    scenario_of,
)
from tidegate_lab.reproduce.fastjoin.sweep import Position, latency_ms, ratios, throughput

TIME_LABEL = "time (batches of a second)"
THROUGHPUT_LABEL = "throughput (rows a second)"
LATENCY_LABEL = "latency (ms)"
#: LI of real data is far larger under hash routing, and nothing else could be seen.
DRAWN_MOST = 12.0


def figure_3(options: Options) -> Outcome:
    """Throughput over time."""
    scenario = scenario_of(options)
    lines = []
    for other, paper in ((HASH, 31.7), (CONTRAND, 16.0)):
        ratio = ratios(Position(0, scenario), FASTJOIN, other, options.seeds, throughput)
        lines.append(
            percent_line("3", f"throughput: {FASTJOIN} over {other}", f"+{paper:g} %", ratio, least=paper)
        )
    curves = [
        _curve(name, [run(scenario, strategy, seed).throughputs() for seed in options.seeds])
        for name, strategy in STRATEGIES.items()
    ]
    return _outcome(options, "3", "throughput over time", THROUGHPUT_LABEL, curves, lines)


def figure_4(options: Options) -> Outcome:
    """Latency over time, at a rate that all sustain."""
    scenario = scenario_of(options)
    lines = []
    for other, paper in ((HASH, -17.5), (CONTRAND, -15.3)):
        # Each claim at a rate of its own, or the slowest of the three would leave the others idle.
        pair = Position(0, scenario, {name: STRATEGIES[name] for name in (FASTJOIN, other)})
        ratio = ratios(pair, FASTJOIN, other, options.seeds, latency_ms([pair], options.seeds))
        claim = f"latency: {FASTJOIN} over {other}, at nine tenths of what {other} sustains"
        lines.append(percent_line("4", claim, f"{paper:g} %", ratio, most=paper))
    rates = {seed: common_rate([scenario], list(STRATEGIES.values()), seed) for seed in options.seeds}
    curves = [
        _curve(name, [1000 * run(scenario, strategy, seed).latencies(rates[seed]) for seed in options.seeds])
        for name, strategy in STRATEGIES.items()
    ]
    return _outcome(options, "4", "latency over time", LATENCY_LABEL, curves, lines)


def figure_11(options: Options) -> Outcome:
    """LI over time."""
    scenario = scenario_of(options)
    found = {
        name: [_finite(run(scenario, strategy, seed).trace.ratios()) for seed in options.seeds]
        for name, strategy in STRATEGIES.items()
    }
    settled = scenario.settled
    held = [float(np.mean(ratios[settled:] <= THETA)) for ratios in found[FASTJOIN]]
    lines = [
        number_line(
            "11",
            f"{HASH}: LI once windows are full",
            "about 2.5",
            [float(np.median(r[settled:])) for r in found[HASH]],
        ),
        number_line(
            "11",
            f"{FASTJOIN}: LI once settled",
            "about 1.9",
            middles := [float(np.median(ratios[settled:])) for ratios in found[FASTJOIN]],
            agrees=float(np.median(middles)) <= THETA,
        ),
        number_line(
            "11",
            f"{FASTJOIN}: share of batches with LI ≤ Θ, once settled",
            "all",
            held,
            agrees=float(np.median(held)) >= 0.9,
        ),
    ]
    curves = [_curve(name, np.minimum(found[name], DRAWN_MOST)) for name in found]
    curves.append(Curve("Θ", [curves[0].x[0], curves[0].x[-1]], [THETA, THETA], colour=7))
    return _outcome(
        options,
        "11",
        "degree of load imbalance LI over time",
        f"LI (drawn up to {DRAWN_MOST:g})",
        curves,
        lines,
    )


def _finite(ratios: NDArray[np.float64]) -> NDArray[np.float64]:
    """LI is infinite while an instance has nothing to do; that cannot be drawn, so it is the largest seen."""
    return np.minimum(ratios, np.max(ratios[np.isfinite(ratios)], initial=1.0))


def _curve(name: str, of_seeds: Sequence[NDArray[np.float64]] | NDArray[np.float64]) -> Curve:
    """Without the first batches, which join almost nothing."""
    counted = np.array(of_seeds)[:, 2:]
    return band_curve(name, (np.arange(counted.shape[1]) + 2).tolist(), counted, colour=COLOURS[name])


def _outcome(
    options: Options, figure: str, what: str, label: str, curves: Sequence[Curve], lines: Sequence[Line]
) -> Outcome:
    name = options.plot_name(figure)
    subtitle = about(options, told=f"; {scenario_of(options).instances} instances, Θ = {THETA:g}")
    panel = Panel(TIME_LABEL, label, curves)
    return Outcome(lines, plots=[Plot(name, f"Figure {figure}: {what}", subtitle, [panel])])
