"""The bars of FastJoin: Zipf 1.0 on 16 to 20 instances, in the paper's cost model, both topologies.

No figure of the paper. Co-located: so many instances, each with both sides of its keys; a group of the
biclique with so many of its own does the same. Biclique: so many in both groups together, so that half of
them share a stream. ContRand is the better of subgroups of two and of four.

How LI is judged: `imbalance_bars.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from tidegate.observe.json_frame import Bar
from tidegate.route.baselines import ContRandStrategy
from tidegate.route.fastjoin.strategy import FastJoinStrategy
from tidegate_lab.plots.plots import Curve, Panel, Plot
from tidegate_lab.reproduce.claims import bar, number_line, percent_line
from tidegate_lab.reproduce.experiment import Line, Options, Outcome
from tidegate_lab.reproduce.fastjoin.imbalance_bars import imbalance_bars, imbalance_lines
from tidegate_lab.reproduce.fastjoin.over_time_figures import THROUGHPUT_LABEL
from tidegate_lab.reproduce.fastjoin.scaling_gain import scaling_gain_ratio
from tidegate_lab.reproduce.fastjoin.scenarios import (
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
from tidegate_lab.reproduce.fastjoin.sweep import Position, run_all
from tidegate_lab.workloads.skew import ZipfStreams

INSTANCES = (16, 20)
#: Of a stored row, and of what is known about a key: its code, its rows and its probes.
ROW_BYTES, KEY_BYTES = 100, 24
LOWER_THETA = 1.5
GROUPS_OF = (ContRandStrategy(2), ContRandStrategy(4))


def beyond(options: Options) -> Outcome:
    """Gains over both baselines, and LI."""
    lines: list[Line] = []
    bars: list[Bar] = []
    panels = []
    numbers = INSTANCES[:1] if options.quick else INSTANCES
    for biclique in (False, True):
        scenarios = [_scenario(options, number, biclique) for number in numbers]
        topology = "biclique" if biclique else "co-located"
        compared = {**STRATEGIES, **{repr(group): group for group in GROUPS_OF}}
        run_all([Position(one.instances, one, compared) for one in scenarios], options.seeds)
        for id, name, paper in (("over_hash", HASH, 31.7), ("over_contrand", CONTRAND, 16.0)):
            worst = None
            for scenario in scenarios:
                claim = f"{topology}, {scenario.instances} instances: throughput over {name}"
                line = percent_line(
                    "beyond", claim, f"+{paper:g} %", _gains(scenario, name, options), least=paper
                )
                lines.append(line)
                worst = min(worst or line, line, key=lambda one: one.value or 0.0)
            if worst is not None:
                bars.append(bar(worst, _id(id, biclique), paper))
        runs = [run(one, STRATEGIES[FASTJOIN], seed) for one in scenarios for seed in options.seeds]
        lines += imbalance_lines(runs, topology)
        if biclique:
            bars += imbalance_bars(runs)
            lines += [_lower_threshold(scenarios[0], options), _gain_ratio(runs)]
        panels.append(_panel(scenarios, topology, options))
    streams = _scenario(options, numbers[0], False).streams
    keys = streams.keys if isinstance(streams, ZipfStreams) else 0
    subtitle = f"both streams Zipf 1.0 over {keys} keys, Θ = {THETA:g}\n{options.seeds_text}"
    title = "Throughput of the strategies, Zipf 1.0"
    return Outcome(lines, bars, [Plot("beyond-throughput", title, subtitle, panels, same_height=True)])


def _lower_threshold(scenario: Scenario, options: Options) -> Line:
    """Θ = 2.2 leaves much to gain where hash routing is not that unequal."""
    ratio = [
        run(scenario, FastJoinStrategy(LOWER_THETA), seed).throughput / _throughput(scenario, HASH, seed)
        for seed in options.seeds
    ]
    claim = f"biclique, {scenario.instances} instances, Θ = {LOWER_THETA:g}: throughput over {HASH}"
    return percent_line("beyond", claim, "-", ratio)


def _gain_ratio(runs: Sequence[Run]) -> Line:
    """Equation 12, after the last batch of each run: how much of a new instance's memory holds rows."""
    found = []
    for one in runs:
        last = [group[-1] for group in one.decisions]
        rows = sum(float(decision.work.stored.sum()) for decision in last)
        keys = sum(int(decision.keys.sum()) for decision in last)
        found.append(scaling_gain_ratio(rows, keys, ROW_BYTES, KEY_BYTES))
    claim = f"scaling gain ratio, rows of {ROW_BYTES} bytes, {KEY_BYTES} bytes of statistics a key"
    return number_line("beyond", claim, "> 0.9 from 10 rows a key on", found)


def _id(name: str, biclique: bool) -> str:
    return f"fastjoin.{name}.biclique" if biclique else f"fastjoin.{name}"


def _scenario(options: Options, instances: int, biclique: bool) -> Scenario:
    if options.quick:
        small = ZipfStreams(keys=5_000, rows=(2_000, 2_000), batches=24)
        return Scenario(small, instances, biclique, settled=12)
    return Scenario(ZipfStreams(batches=50), instances, biclique)


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
        median(
            float(run(scenario, STRATEGIES[HASH], seed).even_throughputs()[scenario.settled :].mean())
            for seed in options.seeds
        )
        for scenario in scenarios
    ]
    curves.append(Curve("perfect balance", numbers, even, colour=7))
    return Panel("instances", THROUGHPUT_LABEL, curves, title=topology)
