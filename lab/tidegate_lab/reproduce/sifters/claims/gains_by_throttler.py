"""Gains over random dropping along one setting, for several throttlers: what figures 5, 9 and 10 draw.

Paper: sifters, sections VI-B.2 and VI-B.3. Data is SKEW and queries are UNIF (Table I), partitioned by data
equi-depth, which the text calls the best for them (the table says query equi-depth, which the text calls the
worst), and by `auto`. Gains are those of α = 1: with α ~ U[1, 2] random dropping has a QoS about zero at high
load, and a ratio to that says nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tidegate_lab.plots.plots import Curve, Panel, Plot
from tidegate_lab.reproduce.experiment import Line, Options
from tidegate_lab.reproduce.sifters.claims.readings import legend, picture_ending, words
from tidegate_lab.reproduce.sifters.runs.combinations import AUTO, RANDOM
from tidegate_lab.reproduce.sifters.runs.sweep import ONE, Position, gains, percent, percents_line, run_all
from tidegate_lab.workloads.sifters import Workload

DEDP = "dedp"
SHOWN = (DEDP, AUTO)
#: Throttlers, and their places in the palette.
THROTTLERS = {0.1: 1, 0.3: 4, 0.5: 2, 0.7: 0, 0.9: 3}
#: Gains that differ by less, in points of per cent, are the same.
LITTLE = 5.0

#: Partitioner → throttler → gains in per cent along the axis.
Gains = Mapping[str, Mapping[float, Sequence[float]]]


def default_workload(whole_normals: bool) -> Workload:
    """SKEW data, UNIF queries, α = 1."""
    return Workload(alphas=ONE, whole_normals=whole_normals)


def measure(options: Options, throttlers: Sequence[float], along: Callable[[float], list[Position]]) -> Gains:
    """Medians over the seeds; `along` gives the positions for a throttler."""
    by_z = {z: along(z) for z in throttlers}
    # Place by place, because throttlers share their scenes.
    places = zip(*by_z.values(), strict=True)
    run_all([one for some in places for one in some], (RANDOM, *SHOWN), options.seeds)
    return {
        name: {z: percent(gains(positions, name, options.seeds)) for z, positions in by_z.items()}
        for name in SHOWN
    }


def told(
    figure: str, span: str, found: Gains, whole_normals: bool, names: Sequence[str] = SHOWN
) -> list[Line]:
    """Every curve as a line; the paper's text says nothing about these."""
    return [
        percents_line(figure, claim(name, z, span, whole_normals), "-", changes)
        for name in names
        for z, changes in found[name].items()
    ]


def claim(name: str, z: float, span: str, whole_normals: bool) -> str:
    """What a line says about a curve."""
    return f"{name.upper()}{words(whole_normals)}, z = {z:g}: over random, {span}"


def plot(
    options: Options, figure: str, label: str, places: Sequence[float], found: Gains, whole_normals: bool
) -> Plot:
    """A panel per partitioner, a curve per throttler."""
    panels = [
        Panel(
            label,
            "improvement over random dropping (%)",
            [
                Curve(f"z = {z:g}", list(places), list(changes), "points", colour=THROTTLERS[z])
                for z, changes in by_z.items()
            ],
            title=name.upper(),
            # As many as can be read.
            ticks=[(place, f"{place:g}") for place in places] if len(places) <= 6 else (),
        )
        for name, by_z in found.items()
    ]
    heading = f"Figure {figure}: improvement in overall QoS{words(whole_normals)} by {label}"
    subtitle = f"Data: Skew, Query: Unif, α = 1; {legend(whole_normals)}\n{options.seeds_text}"
    name = f"figure-{figure}{picture_ending(whole_normals)}"
    return Plot(name, heading, subtitle, panels, same_height=True, one_legend=True)
