"""The partitioners on pick-ups of a real city: the sample is one day, what comes is the next.

No figure of the paper, which had no real data. Queries lie around the pick-ups of another company, around
those of another day, or anywhere on the map (most of it water, parks and suburbs: many have no data).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tidegate_lab.plots.plots import Curve, Panel, Plot
from tidegate_lab.reproduce.claims import number_line, percent_line
from tidegate_lab.reproduce.experiment import Line, Options, Outcome
from tidegate_lab.reproduce.sifters.runs.combinations import AUTO, COLOURS, CONTENDERS, RANDOM, SIFTERS
from tidegate_lab.reproduce.sifters.runs.pickups import ANYWHERE, LYFT, UBER, Pickups
from tidegate_lab.reproduce.sifters.runs.sweep import (
    ONE,
    Position,
    best_qos,
    found,
    gains,
    percent,
    run_all,
    setting_of,
)

THROTTLERS, QUICK_THROTTLERS = (0.1, 0.3, 0.5, 0.7, 0.9), (0.1, 0.5)
NAMES = {LYFT: "around Lyft's pick-ups", UBER: "around another day's", ANYWHERE: "anywhere"}


def pickups(options: Options) -> Outcome:
    """Gains over random dropping by throttler, for three kinds of queries."""
    lines: list[Line] = []
    panels = []
    for queries, told in NAMES.items():
        points = _points(options, queries)
        run_all(points, CONTENDERS, options.seeds)
        half = next(point for point in points if point.at == 0.5)
        lines += _lines(options, half, f"queries {told}, z = 0.5")
        panels.append(_panel(options, points, f"queries {told}"))
    subtitle = (
        "New York, April 2014: a sample of one day, judged by the whole next day; l = 16, Δ = 0.5, α = 1\n"
        f"{options.seeds_text}, each another day"
    )
    heading = "Sifters on pick-ups of a real city: improvement by throttler"
    plot = Plot("real-pickups", heading, subtitle, panels, same_height=True, one_legend=True)
    return Outcome(lines, plots=[plot])


def _points(options: Options, queries: str) -> list[Position]:
    source = Pickups(options.real or Path(), queries, alphas=ONE)
    throttlers = QUICK_THROTTLERS if options.quick else THROTTLERS
    return [Position(z, source, setting_of(options, z=z)) for z in throttlers]


def _lines(options: Options, point: Position, what: str) -> list[Line]:
    """All of them over random dropping, and ours over the best of the paper's four."""
    seeds = options.seeds
    ours = found([point], AUTO, seeds)[:, 0]
    best = best_qos([point], seeds)[:, 0]
    random = found([point], RANDOM, seeds)[:, 0]
    passed = found([point], AUTO, seeds, lambda one: one.passed)[:, 0]
    over_random = {name.upper(): gains([point], name, seeds)[:, 0] for name in SIFTERS}
    over_random["the best of the four"] = best / random
    return [
        number_line("pickups", f"{what}: overall QoS of random dropping", "-", random.tolist()),
        *(
            percent_line("pickups", f"{what}: {name} over random", "-", ratios.tolist())
            for name, ratios in over_random.items()
        ),
        percent_line("pickups", f"{what}: AUTO over the best of the four", "-", (ours / best).tolist()),
        number_line("pickups", f"{what}: share of rows that AUTO lets pass", "-", passed.tolist()),
    ]


def _panel(options: Options, points: Sequence[Position], title: str) -> Panel:
    places = [point.at for point in points]
    curves = [
        Curve(
            name.upper(),
            places,
            percent(gains(points, name, options.seeds)),
            "points",
            colour=COLOURS[name],
        )
        for name in SIFTERS
    ]
    return Panel("throttle fraction, z", "improvement over random dropping (%)", curves, title=title)
