"""Figures 12 and 13: latency over time and by instances, on the city.

Paper: Ls-Stream, section VI-C. Each instance is one core; its capacity is chosen so that BiStream sustains
what the paper says for 28 instances on 14 nodes, two instances to a node of two cores.

The first seconds have short queues because the windows are still filling, and pauses of migrations.
"""

from __future__ import annotations

from statistics import median

import numpy as np

from tidegate_lab.plots.plots import Curve, Panel, Plot
from tidegate_lab.reproduce.claims import shorter_line
from tidegate_lab.reproduce.experiment import Line, Options, Outcome
from tidegate_lab.reproduce.ls_stream.city_figures import city_runs
from tidegate_lab.reproduce.ls_stream.measures import capacity_for, latency, mean_ms, median_curves, ratios
from tidegate_lab.reproduce.ls_stream.streams import place_text
from tidegate_lab.reproduce.ls_stream.systems import (
    BISTREAM,
    BY_PARTITION,
    CONTRAND,
    FASTJOIN,
    LS_STREAM,
    SYSTEMS,
    System,
)

#: Rows per second that BiStream sustains with 28 instances on 14 nodes, in the paper.
BISTREAM_ON_FOURTEEN = 15_500.0
INSTANCES, QUICK_INSTANCES = (16, 20, 24, 28, 32, 40, 48), (16, 28)
OVER_TIME_RATE, BY_INSTANCES_RATE = 4_500, 3_000
MS_LABEL = "average latency (ms of comparing and waiting)"
_PAPER_MS = {BISTREAM.name: 10.3, CONTRAND.name: 8.5, FASTJOIN.name: 7.2, LS_STREAM.name: 5.4}


def core_capacity(options: Options) -> float:
    return capacity_for(city_runs(BISTREAM, options, 28), BISTREAM_ON_FOURTEEN)


def figure_12(options: Options) -> Outcome:
    """Latency over time at a steady rate, 28 instances."""
    capacity = core_capacity(options)
    curves, lines = [], []
    for system in SYSTEMS:
        found = [latency(one, capacity) for one in city_runs(system, options, 28, OVER_TIME_RATE)]
        curves.append(
            Curve(
                system.name,
                found[0].begins.tolist(),
                (1e3 * np.median([one.mean for one in found], axis=0)).tolist(),
                colour=system.colour,
            )
        )
        settled = [mean_ms(one, capacity) for one in city_runs(system, options, 28, OVER_TIME_RATE)]
        paper = f"{_PAPER_MS[system.name]:g} ms (with the network)"
        middle = median(settled)
        lines.append(
            Line(
                "12",
                f"average latency of {system.name}",
                paper,
                f"{middle:.3f} ms",
                middle,
                "ms",
                tuple(settled),
            )
        )
    lines += [
        shorter_line(
            "12",
            f"Ls-Stream against {over.name}",
            f"-{less:g} %",
            _ratios(over, options, 28, OVER_TIME_RATE),
            most=1 - less / 100,
        )
        for over, less in ((BISTREAM, 47.5), (CONTRAND, 36.4), (FASTJOIN, 25.0))
    ]
    by_routing = _ratios(BY_PARTITION, options, 28, OVER_TIME_RATE)
    lines.append(shorter_line("12", "of it by routing: against BiStream by partition", "-", by_routing))
    plot = Plot(
        options.plot_name("12"),
        f"Figure 12: system latency at {OVER_TIME_RATE:,} tuples/s",
        f"{place_text(options)}, 28 instances, 16 partitions each, α = 1\n{options.seeds_text}",
        [Panel("time (s)", MS_LABEL, curves)],
    )
    return Outcome(lines, plots=[plot])


def _ratios(over: System, options: Options, instances: int, rate: int) -> list[float]:
    capacity = core_capacity(options)
    ours, theirs = (city_runs(system, options, instances, rate) for system in (LS_STREAM, over))
    return ratios(lambda one: mean_ms(one, capacity), ours, theirs)


def figure_13(options: Options) -> Outcome:
    """Latency by instances at a steady rate."""
    numbers = QUICK_INSTANCES if options.quick else INSTANCES
    capacity = core_capacity(options)
    curves = median_curves(
        SYSTEMS,
        numbers,
        lambda system, n: (
            mean_ms(one, capacity) for one in city_runs(system, options, n, BY_INSTANCES_RATE)
        ),
    )
    plot = Plot(
        options.plot_name("13"),
        f"Figure 13: system latency by number of join instances at {BY_INSTANCES_RATE:,} tuples/s",
        f"{place_text(options)}, 16 partitions per instance, α = 1\n{options.seeds_text}",
        [Panel("number of join instances", MS_LABEL, curves)],
    )
    lines = [
        shorter_line(
            "13",
            f"Ls-Stream against {over.name}, worst of all numbers of instances",
            f"-{less:g} %",
            max((_ratios(over, options, n, BY_INSTANCES_RATE) for n in numbers), key=median),
            most=1 - less / 100,
        )
        for over, less in ((BISTREAM, 35.8), (CONTRAND, 23.8), (FASTJOIN, 18.0))
    ]
    falls = all(bool((np.diff(curve.y) < 0).all()) for curve in curves)
    lines.append(
        Line(
            "13",
            "more instances, shorter latency",
            "all systems",
            "all systems" if falls else "not all",
            agrees=falls,
        )
    )
    return Outcome(lines, plots=[plot])
