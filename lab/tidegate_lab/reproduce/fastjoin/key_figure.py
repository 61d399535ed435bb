"""Figure 1: keys of a city are skewed, and hash routing then loads instances unequally.

Paper: FastJoin, section I. (a), (b): about 20 % of the places have 80 % of the orders, 24 % have 80 % of the
tracks. (c): under hash routing instances that begin alike drift apart. (d): throughput suffers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidegate_lab.plots.plots import Curve, Panel, Plot
from tidegate_lab.reproduce.claims import number_line
from tidegate_lab.reproduce.experiment import Options, Outcome
from tidegate_lab.reproduce.fastjoin.scenarios import (
    COLOURS,
    HASH,
    STRATEGIES,
    Scenario,
    about,
    arrivals,
    run,
    scenario_of,
)
from tidegate_lab.workloads.skew import share_of_top_keys


def figure_1(options: Options) -> Outcome:
    """Skew of the keys; loads of the instances; throughput against perfect balance."""
    scenario = scenario_of(options)
    runs = [run(scenario, STRATEGIES[HASH], seed) for seed in options.seeds]
    counts = [_rows_by_key(scenario, seed) for seed in options.seeds]
    lines = []
    # The places of a city are all those where either stream ever was.
    for side, name, paper in ((0, "orders", 20), (1, "tracks", 24)):
        found = [100 * share_of_top_keys(rows[side], 0.8) for rows in counts]
        claim = f"places that have 80 % of the {name}"
        agrees = abs(float(np.median(found)) - paper) <= 8
        lines.append(number_line("1", claim, f"about {paper} %", found, agrees=agrees, unit="%"))
    first = runs[0]
    lost = [one.throughput / float(one.even_throughputs()[scenario.settled :].mean()) for one in runs]
    lines.append(
        number_line("1", f"{HASH}: throughput over that of perfect balance", "falls", lost, agrees=None)
    )
    skew = Panel(
        "share of places",
        "share of rows",
        [_cumulated(counts[0][side], name, side) for side, name in ((0, "orders"), (1, "tracks"))],
        title="(a), (b) keys",
    )
    seconds = np.arange(len(first.trace.batches)).tolist()
    loads = np.array([batch.groups[0].work for batch in first.trace.batches])
    order = np.argsort(loads[-1])
    chosen = order[np.linspace(0, order.size - 1, 6).round().astype(int)][::-1]
    work = Panel(
        "time (batches)",
        "comparisons a batch",
        [
            Curve(f"instance {instance}", seconds, loads[:, instance].tolist(), colour=number)
            for number, instance in enumerate(chosen.tolist())
        ],
        title="(c) loads, from heaviest to lightest",
    )
    speed = Panel(
        "time (batches)",
        "rows a second",
        [
            Curve(HASH, seconds[2:], first.throughputs()[2:].tolist(), colour=COLOURS[HASH]),
            Curve("perfect balance", seconds[2:], first.even_throughputs()[2:].tolist(), colour=7),
        ],
        title="(d) throughput",
    )
    title = "Figure 1: skewed keys make hash routing unequal and slow"
    name = options.plot_name("1")
    subtitle = about(options, told=f"; {scenario.instances} instances").replace(
        options.seeds_text, f"seed {options.seeds[0]}"
    )
    return Outcome(lines, plots=[Plot(name, title, subtitle, [skew, work, speed])])


def _rows_by_key(scenario: Scenario, seed: int) -> NDArray[np.int64]:
    """Rows of each side and key over the whole run."""
    stream = arrivals(scenario, seed)
    rows = np.zeros((2, stream.codes.size), np.int64)
    for sides in stream.batches:
        for side, counted in enumerate(sides):
            rows[side, counted.keys] += counted.rows
    return rows


def _cumulated(rows: NDArray[np.int64], name: str, colour: int) -> Curve:
    shares = np.cumsum(np.sort(rows)[::-1]) / max(int(rows.sum()), 1)
    at = np.unique(np.linspace(0, shares.size - 1, 200).astype(int))
    return Curve(name, ((at + 1) / shares.size).tolist(), shares[at].tolist(), colour=colour)
