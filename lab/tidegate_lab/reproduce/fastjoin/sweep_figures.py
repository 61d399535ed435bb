"""Figures 5 to 10: throughput and latency by number of instances, size of the data, and Θ.

Paper: FastJoin, section VI-B. Latencies of a figure are all measured at one rate, which the slowest setting
in it still sustains.

What we see differently:
- On few instances the paper gains far more than on many (+258 % on 16). In the cost model nothing makes 16
  instances worse off than their share: keys per instance are more, so hashing them is more even, not less.
- More instances make latency shorter here. The paper explains its longer latencies by the network, which this
  model does not have.
- The size of the data is how much arrives in a second, from 10 to 70 parts of which 30 are the default. The
  paper cut its data by time, which makes runs shorter and not fuller.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tidegate_lab.plots.plots import Panel, Plot
from tidegate_lab.reproduce.claims import number_line, percent_line
from tidegate_lab.reproduce.experiment import Line, Options, Outcome
from tidegate_lab.reproduce.fastjoin.over_time_figures import LATENCY_LABEL, THROUGHPUT_LABEL
from tidegate_lab.reproduce.fastjoin.positions import by_instances, by_size, by_theta
from tidegate_lab.reproduce.fastjoin.scenarios import CONTRAND, FASTJOIN, HASH, STRATEGIES, about
from tidegate_lab.reproduce.fastjoin.sweep import (
    Measure,
    Position,
    curves,
    latency_ms,
    measured,
    ratios,
    throughput,
)


def figure_5(options: Options) -> Outcome:
    """Throughput by number of instances."""
    positions = by_instances(options)
    first, last = positions[0], positions[-1]
    lines = []
    for other, paper in ((HASH, 258), (CONTRAND, 186)):
        few, many = (ratios(p, FASTJOIN, other, options.seeds, throughput) for p in (first, last))
        claim = f"throughput: {FASTJOIN} over {other}"
        lines.append(percent_line("5", f"{claim}, {first.at:g} instances", f"+{paper} %", few, least=paper))
        lines.append(
            percent_line("5", f"{claim}, {last.at:g} instances", "more, but closer", many, least=0.1)
        )
    return _outcome(
        options, "5", "throughput by number of instances", "instances", positions, throughput, lines
    )


def figure_6(options: Options) -> Outcome:
    """Latency by number of instances."""
    positions = by_instances(options)
    lines = []
    for other, paper in ((HASH, -33.1), (CONTRAND, -19.4)):
        # Each claim at a rate of its own, or the slowest of the three would leave the others idle.
        pair = {name: STRATEGIES[name] for name in (FASTJOIN, other)}
        first = replace(positions[0], strategies=pair)
        ratio = ratios(first, FASTJOIN, other, options.seeds, latency_ms([first], options.seeds))
        claim = f"latency: {FASTJOIN} over {other}, {first.at:g} instances"
        lines.append(percent_line("6", claim, f"{paper:g} %", ratio, most=paper))
    measure = latency_ms(positions, options.seeds)
    return _outcome(options, "6", "latency by number of instances", "instances", positions, measure, lines)


def figure_7(options: Options) -> Outcome:
    """Throughput by size of the data."""
    positions = by_size(options)
    found = measured(positions, FASTJOIN, options.seeds, throughput)
    steady = (found[:, -1] / found[:, 0]).tolist()
    lines = [
        number_line(
            "7",
            f"{FASTJOIN}: throughput with the most data over that with the least",
            "no large effect; least gain on small data",
            steady,
            agrees=bool(0.8 <= np.median(steady) <= 1.5),
        ),
        *_gains("7", positions, options, throughput),
    ]
    return _outcome(
        options, "7", "throughput by size of the data", "data (30 = default)", positions, throughput, lines
    )


def figure_8(options: Options) -> Outcome:
    """Latency by size of the data."""
    positions = by_size(options)
    measure = latency_ms(positions, options.seeds)
    lines = _gains("8", positions, options, measure)
    return _outcome(
        options, "8", "latency by size of the data", "data (30 = default)", positions, measure, lines
    )


def figure_9(options: Options) -> Outcome:
    """Throughput by Θ."""
    positions = by_theta(options)
    found = np.median(measured(positions, FASTJOIN, options.seeds, throughput), axis=0)
    best = positions[int(found.argmax())].at
    worst = min(
        float(np.median(ratios(p, FASTJOIN, other, options.seeds, throughput)))
        for p in positions
        for other in (HASH, CONTRAND)
    )
    lines = [
        number_line(
            "9", f"Θ with the highest throughput of {FASTJOIN}", "near 2.2", [best], agrees=1.8 <= best <= 2.6
        ),
        number_line(
            "9",
            f"{FASTJOIN} over the better baseline, at the worst Θ",
            "always more",
            [worst],
            agrees=worst > 1,
        ),
    ]
    return _outcome(options, "9", "throughput by threshold Θ", "Θ", positions, throughput, lines)


def figure_10(options: Options) -> Outcome:
    """Latency by Θ."""
    positions = by_theta(options)
    measure = latency_ms(positions, options.seeds)
    worst = max(
        float(np.median(ratios(p, FASTJOIN, other, options.seeds, measure)))
        for p in positions
        for other in (HASH, CONTRAND)
    )
    lines = [
        number_line(
            "10",
            f"{FASTJOIN} over the better baseline, at the worst Θ",
            "always less",
            [worst],
            agrees=worst < 1,
        )
    ]
    return _outcome(options, "10", "latency by threshold Θ", "Θ", positions, measure, lines)


def _gains(figure: str, positions: Sequence[Position], options: Options, measure: Measure) -> list[Line]:
    """At the smallest and at the largest."""
    sign, told = ("more", "throughput") if measure is throughput else ("less", "latency")
    return [
        percent_line(
            figure,
            f"{told}: {FASTJOIN} over {other}, size {position.at:g}",
            sign if number else f"little {sign}",
            ratios(position, FASTJOIN, other, options.seeds, measure),
        )
        for number, position in ((0, positions[0]), (1, positions[-1]))
        for other in (HASH, CONTRAND)
    ]


def _outcome(
    options: Options,
    figure: str,
    what: str,
    x_label: str,
    positions: Sequence[Position],
    measure: Measure,
    lines: Sequence[Line],
) -> Outcome:
    label = THROUGHPUT_LABEL if measure is throughput else LATENCY_LABEL
    panel = Panel(x_label, label, curves(positions, options.seeds, measure))
    name = options.plot_name(figure)
    return Outcome(lines, plots=[Plot(name, f"Figure {figure}: {what}", about(options), [panel])])
