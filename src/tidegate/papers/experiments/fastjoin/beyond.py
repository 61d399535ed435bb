"""The bars of FastJoin: Zipf 1.0 on 16 to 20 instances, in the paper's cost model, both topologies.

No figure of the paper. Co-located: so many instances, each with both sides of its keys. Biclique: so many in
both groups together, so half of them share a stream. ContRand is the better of subgroups of two and of four.

LI is held where, once settled, no two batches in a row exceed Θ: crossing it is what starts a migration.
Batches in which a key prevents balance do not count: those whose heaviest instance would exceed Θ with
nothing but the keys that are too large for its gap to the lightest (equation 9 forbids to move them).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import median

import numpy as np

from tidegate.papers.experiments.experiment import Line, Options, Outcome, bar
from tidegate.papers.experiments.fastjoin.claims import more_line, number_line
from tidegate.papers.experiments.fastjoin.over_time_figures import THROUGHPUT_LABEL
from tidegate.papers.experiments.fastjoin.scenarios import (
    CAPACITY,
    COLOURS,
    CONTRAND,
    FASTJOIN,
    HASH,
    STRATEGIES,
    THETA,
    Run,
    Scenario,
    run,
)
from tidegate.papers.skew import ZipfStreams
from tidegate.report.bars import at_most
from tidegate.report.frame import Bar
from tidegate.report.plots import Curve, Panel, Plot
from tidegate.route.contrand import ContRand
from tidegate.route.imbalance import imbalance

INSTANCES = (16, 18, 20)
GROUPS_OF = (ContRand(2), ContRand(4))


@dataclass(frozen=True)
class Held:
    """LI of one run, once settled."""

    middle: float
    most: float
    #: Batches above Θ with no key to blame: the longest stretch of them.
    in_a_row: int


def imbalance_held(one: Run) -> Held:
    """The worse of the groups of instances."""
    found = []
    for group in one.decisions:
        ratios, stretch, longest = [], 0, 0
        for decision in group[one.scenario.settled :]:
            loads = decision.work.loads
            ratios.append(imbalance(loads))
            excused = decision.unmovable > THETA * loads.min()
            stretch = stretch + 1 if ratios[-1] > THETA and not excused else 0
            longest = max(longest, stretch)
        found.append(Held(median(ratios), max(ratios), longest))
    return Held(max(h.middle for h in found), max(h.most for h in found), max(h.in_a_row for h in found))


def beyond(options: Options) -> Outcome:
    """Gains over both baselines, and LI."""
    lines: list[Line] = []
    bars: list[Bar] = []
    panels = []
    numbers = INSTANCES[:1] if options.quick else INSTANCES
    for biclique in (False, True):
        scenarios = [_scenario(options, number, biclique) for number in numbers]
        topology = "biclique" if biclique else "co-located"
        for id, name, paper in (("over_hash", HASH, 31.7), ("over_contrand", CONTRAND, 16.0)):
            worst = None
            for scenario in scenarios:
                claim = f"{topology}, {scenario.instances} instances: throughput over {name}"
                line = more_line(
                    "beyond", claim, f"+{paper:g} %", _gains(scenario, name, options), least=paper
                )
                lines.append(line)
                worst = min(worst or line, line, key=lambda one: one.value or 0.0)
            if worst is not None:
                bars.append(bar(worst, _id(id, biclique), paper))
        held = [
            imbalance_held(run(s, STRATEGIES[FASTJOIN], seed)) for s in scenarios for seed in options.seeds
        ]
        middles, rows = [one.middle for one in held], [float(one.in_a_row) for one in held]
        lines.append(number_line("beyond", f"{topology}: LI, once settled", f"≤ {THETA:g}", middles))
        most = max(one.most for one in held)
        lines.append(number_line("beyond", f"{topology}: largest LI of any batch", "-", [most]))
        claim = f"{topology}: batches in a row above Θ that no key explains, at most"
        lines.append(number_line("beyond", claim, "at most 1", [max(rows)], agrees=max(rows) <= 1))
        bars.append(at_most(_id("batches_above_theta", biclique), max(rows), "batches", 1))
        panels.append(_panel(scenarios, topology, options))
    streams = _scenario(options, numbers[0], False).streams
    keys = streams.keys if isinstance(streams, ZipfStreams) else 0
    subtitle = f"both streams Zipf 1.0 over {keys} keys, Θ = {THETA:g}\n{options.seeds_text}"
    title = "Throughput of the strategies, Zipf 1.0"
    return Outcome(lines, bars, [Plot("beyond-throughput", title, subtitle, panels, same_height=True)])


def _id(name: str, biclique: bool) -> str:
    return f"fastjoin.{name}.biclique" if biclique else f"fastjoin.{name}"


def _scenario(options: Options, instances: int, biclique: bool) -> Scenario:
    if options.quick:
        small = ZipfStreams(keys=5_000, rows=(2_000, 2_000), batches=24)
        return Scenario(small, instances, biclique, settled=12)
    return Scenario(ZipfStreams(), instances, biclique)


def _throughput(scenario: Scenario, name: str, seed: int) -> float:
    if name == CONTRAND:
        return max(run(scenario, group, seed).throughput for group in GROUPS_OF)
    return run(scenario, STRATEGIES[name], seed).throughput


def _gains(scenario: Scenario, over: str, options: Options) -> list[float]:
    return [
        _throughput(scenario, FASTJOIN, seed) / _throughput(scenario, over, seed) for seed in options.seeds
    ]


def _panel(scenarios: Sequence[Scenario], topology: str, options: Options) -> Panel:
    numbers = [float(scenario.instances) for scenario in scenarios]
    curves = [
        Curve(
            name,
            numbers,
            [median(_throughput(scenario, name, seed) for seed in options.seeds) for scenario in scenarios],
            "points",
            colour=COLOURS[name],
        )
        for name in STRATEGIES
    ]
    even = [
        median(_even(run(scenario, STRATEGIES[HASH], seed)) for seed in options.seeds)
        for scenario in scenarios
    ]
    curves.append(Curve("perfect balance", numbers, even, colour=7))
    return Panel("instances", THROUGHPUT_LABEL, curves, title=topology)


def _even(one: Run) -> float:
    return float(
        np.mean([sqrt(CAPACITY / b.even) * b.rows for b in one.trace.batches[one.scenario.settled :]])
    )
