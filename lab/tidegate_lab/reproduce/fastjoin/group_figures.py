"""Figures 12 and 13: the nine groups Gxy, streams of Zipf exponents x and y.

Paper: FastJoin, section VI-B: FastJoin outperforms both baselines even on uniform keys (G00), and by far
where a stream is skewed. Latencies of a group are measured at a rate of its own: groups differ too much.

What we see differently: at exponent 2 one key has 61 % of a stream. No instance can give half of a key, so
moving others gains little, and ContRand, which shares every key between two instances, does better. On G00
hash routing is within Θ already, so nothing moves and FastJoin is hash routing.
"""

from __future__ import annotations

from typing import cast

from tidegate_lab.plots.plots import Panel, Plot
from tidegate_lab.reproduce.claims import percent_line
from tidegate_lab.reproduce.experiment import Options, Outcome
from tidegate_lab.reproduce.fastjoin.over_time_figures import LATENCY_LABEL, THROUGHPUT_LABEL
from tidegate_lab.reproduce.fastjoin.scenarios import CONTRAND, FASTJOIN, HASH, THETA, Scenario
from tidegate_lab.reproduce.fastjoin.sweep import (
    Measure,
    Position,
    curves,
    latency_ms_each,
    ratios,
    run_all,
    throughput,
)
from tidegate_lab.workloads.skew import GROUPS, ZipfStreams


def positions(options: Options) -> list[Position]:
    """One per group, in the paper's order."""
    quick = options.quick
    names = ("G00", "G11") if quick else tuple(GROUPS)
    keys, rows, batches, settled = (5_000, 1_500, 24, 12) if quick else (20_000, 5_000, 40, 20)
    places = [
        Position(number, Scenario(ZipfStreams(GROUPS[name], keys, (rows, rows), batches), settled=settled))
        for number, name in enumerate(names)
    ]
    run_all(places, options.seeds)
    return places


def figure_12(options: Options) -> Outcome:
    """Throughput of each group."""
    return _outcome(options, "12", "throughput by skew of the two streams", THROUGHPUT_LABEL, throughput)


def figure_13(options: Options) -> Outcome:
    """Latency of each group."""
    return _outcome(options, "13", "latency by skew of the two streams", LATENCY_LABEL, latency_ms_each())


def _outcome(options: Options, figure: str, what: str, label: str, measure: Measure) -> Outcome:
    places = positions(options)
    names = [f"G{x:g}{y:g}" for x, y in (_streams(place).exponents for place in places)]
    lines = []
    for name, place in zip(names, places, strict=True):
        for other in (HASH, CONTRAND):
            found = ratios(place, FASTJOIN, other, options.seeds, measure)
            told = "throughput" if measure is throughput else "latency"
            claim = f"{name}, {told}: {FASTJOIN} over {other}"
            much = "" if name == "G00" else "much "
            if measure is throughput:
                lines.append(
                    percent_line(figure, claim, f"{much}more", found, least=0.1 if name == "G00" else 10)
                )
            else:
                lines.append(
                    percent_line(figure, claim, f"{much}less", found, most=-0.1 if name == "G00" else -10)
                )
    panel = Panel(
        "group (Zipf exponents of the two streams)",
        label,
        curves(places, options.seeds, measure),
        ticks=list(enumerate(names)),
    )
    keys, instances = _streams(places[0]).keys, places[0].scenario.instances
    subtitle = f"{keys} keys, {instances} instances, Θ = {THETA:g}\n{options.seeds_text}"
    return Outcome(lines, plots=[Plot(f"figure-{figure}", f"Figure {figure}: {what}", subtitle, [panel])])


def _streams(position: Position) -> ZipfStreams:
    return cast(ZipfStreams, position.scenario.streams)
