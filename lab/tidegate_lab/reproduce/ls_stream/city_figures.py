"""Figures 2, 10 and 11: rows per instance, throughput by nodes and by instances, on the made-up city.

Paper: Ls-Stream, sections I and VI-C. DiDi's orders and tracks are replaced by a made-up city whose busy
places are as busy as FastJoin's figure 1 says, or by the taxis of San Francisco (`--real`).

Instances share nodes (instance number modulo nodes), and the busiest node decides. A node's capacity is
chosen so that BiStream sustains what the paper says for 28 instances on 6 nodes.

Where we see something else: the paper's throughput falls beyond 48 instances on 14 nodes, because instances
cost something by themselves. Counted comparisons do not see that.
"""

from __future__ import annotations

from statistics import median

import numpy as np

from tidegate_lab.plots.plots import Curve, Panel, Plot
from tidegate_lab.reproduce.claims import times_line
from tidegate_lab.reproduce.experiment import Line, Options, Outcome
from tidegate_lab.reproduce.ls_stream.measures import capacity_for, median_curves, ratios, sustained
from tidegate_lab.reproduce.ls_stream.streams import place_text, source
from tidegate_lab.reproduce.ls_stream.systems import (
    BISTREAM,
    BY_PARTITION,
    CONTRAND,
    FASTJOIN,
    LS_STREAM,
    SYSTEMS,
    Run,
    System,
    run,
)

RATE = 5_000
NODES, QUICK_NODES = (6, 8, 10, 12, 14), (6, 14)
INSTANCES, QUICK_INSTANCES = (16, 28, 32, 48, 64), (16, 28)
#: Rows per second that BiStream sustains with 28 instances on 6 nodes, in the paper.
BISTREAM_ON_SIX = 9_500.0
_ABOUT = "16 partitions per instance, α = 1"


def city_runs(system: System, options: Options, instances: int, rate: int = RATE) -> list[Run]:
    return [run(system, source(options, seed, rate), instances) for seed in options.seeds]


def node_capacity(options: Options) -> float:
    return capacity_for(city_runs(BISTREAM, options, 28), BISTREAM_ON_SIX, nodes=6)


def figure_2(options: Options) -> Outcome:
    """Join instances ranked by the rows that they get, 100 of them, hash routing."""
    ranked = np.median([_ranked_shares(one) for one in city_runs(BISTREAM, options, 100)], axis=0)
    top, bottom = float(100 * ranked[:10].sum()), float(100 * ranked[-10:].sum())
    curve = Curve("BiStream", list(range(1, 101)), (100 * ranked).tolist(), "line", colour=BISTREAM.colour)
    plot = Plot(
        options.plot_name("2"),
        "Figure 2: join instances ranked by the data they process",
        f"{place_text(options)}, hash routing, 100 instances\n{options.seeds_text}",
        [Panel("rank of the instance", "share of all rows (%)", [curve])],
    )
    lines = [
        Line("2", "rows of the top 10 % of instances", "39.6 %", f"{top:.1f} %", top, "%", (top,), top >= 30),
        Line(
            "2",
            "rows of the last 10 % of instances",
            "none",
            f"{bottom:.1f} %",
            bottom,
            "%",
            (bottom,),
            bottom < 1,
        ),
    ]
    return Outcome(lines, plots=[plot])


def _ranked_shares(one: Run) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Work of an instance is its stored rows times the rows that come, so rows go with its root."""
    work = np.sum([np.sqrt(batch.work) for batch in one.trace.batches], axis=0)
    return np.sort(work / work.sum())[::-1]


def figure_10(options: Options) -> Outcome:
    """Throughput by nodes, 28 instances."""
    nodes = QUICK_NODES if options.quick else NODES
    capacity = node_capacity(options)
    curves = median_curves(
        SYSTEMS,
        nodes,
        lambda system, n: (sustained(one, capacity, n) for one in city_runs(system, options, 28)),
    )
    plot = Plot(
        options.plot_name("10"),
        "Figure 10: system bottleneck by number of nodes",
        f"{place_text(options)}, {_ABOUT}, 28 instances\n{options.seeds_text}",
        [Panel("number of nodes", "maximum throughput (tuples/s)", curves)],
    )
    lines = [
        _rises(BISTREAM, options, "9,500 → 15,500"),
        _rises(LS_STREAM, options, "15,000 → 25,500"),
        *(
            times_line(
                "10",
                f"Ls-Stream over {over.name}, {n} nodes",
                f"{paper:.2f} ×",
                _gain(over, options, 28, n),
                least=1.0,
            )
            for over, n, paper in (
                (BISTREAM, 6, 15 / 9.5),
                (BISTREAM, 14, 25.5 / 15.5),
                (CONTRAND, 14, 25.5 / 19.5),
                (FASTJOIN, 14, 25.5 / 21.5),
            )
        ),
        times_line(
            "10",
            "of it by routing: over BiStream by partition, 14 nodes",
            "-",
            _gain(BY_PARTITION, options, 28, 14),
        ),
    ]
    return Outcome(lines, plots=[plot])


def _gain(over: System, options: Options, instances: int, nodes: int) -> list[float]:
    ours, theirs = (city_runs(system, options, instances) for system in (LS_STREAM, over))
    return ratios(lambda one: sustained(one, 1.0, nodes), ours, theirs)


def _rises(system: System, options: Options, paper: str) -> Line:
    capacity = node_capacity(options)
    few, many = (
        median(sustained(one, capacity, n) for one in city_runs(system, options, 28)) for n in (6, 14)
    )
    return Line(
        "10",
        f"throughput of {system.name}, 6 and 14 nodes, tuples/s",
        paper,
        f"{few:,.0f} → {many:,.0f}",
        samples=(few, many),
        agrees=many > few,
    )


def figure_11(options: Options) -> Outcome:
    """Throughput by instances, 14 nodes."""
    numbers = QUICK_INSTANCES if options.quick else INSTANCES
    capacity = node_capacity(options)
    curves = median_curves(
        SYSTEMS,
        numbers,
        lambda system, n: (sustained(one, capacity, 14) for one in city_runs(system, options, n)),
    )
    plot = Plot(
        options.plot_name("11"),
        "Figure 11: system bottleneck by number of join instances",
        f"{place_text(options)}, {_ABOUT}, 14 nodes\n{options.seeds_text}",
        [Panel("number of join instances", "maximum throughput (tuples/s)", curves)],
    )
    lines = [
        times_line(
            "11",
            f"Ls-Stream over {over.name}, least of up to 48 instances",
            f"more than {paper:.2f} ×",
            found,
            least=paper,
        )
        for over, paper in ((BISTREAM, 1.52), (CONTRAND, 1.27), (FASTJOIN, 1.06))
        for found in [min((_gain(over, options, n, 14) for n in numbers if n <= 48), key=median)]
    ]
    peak = numbers[int(np.argmax(curves[-1].y))]
    lines.append(
        Line(
            "11",
            "instances at which Ls-Stream is best",
            "48, then falling",
            f"{peak} (of {numbers[-1]} at most)",
            float(peak),
            "instances",
            (float(peak),),
            peak == 48,
        )
    )
    return Outcome(lines, plots=[plot])
