"""Figures 14 and 15: throughput and latency by the threshold α, for several skews.

Paper: Ls-Stream, section VI-D: above the imbalance of the data nothing moves and the threshold does not
matter any more; below it, a higher threshold means less balance, so less throughput and more latency. α from
1 to 2 is advised. Thresholds below 1 are ours: they show what is left to gain.

Few keys (300): with 10 million, hash routing is within α = 1 up to Zipf 0.6, and the threshold has nothing to
decide. Where we see something else: at Zipf 0.8 the paper's throughput keeps falling with α. Here one key is
most of the load, whatever α is: the curve is flat. And at 3,000 tuples/s instances that sustain tens of
thousands are hardly busy: latency is comparing, which does not depend on who else lies on an instance. So
figure 15 has a second panel, of a machine so slow that the heaviest instance is 90 % busy when nothing moves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median

import numpy as np

from tidegate_lab.plots.plots import Curve, Panel, Plot
from tidegate_lab.reproduce.experiment import Line, Options, Outcome
from tidegate_lab.reproduce.ls_stream.measures import imbalance, mean_ms, sustained
from tidegate_lab.reproduce.ls_stream.skew_runs import capacity_of
from tidegate_lab.reproduce.ls_stream.streams import FEW_KEYS, source
from tidegate_lab.reproduce.ls_stream.systems import BY_PARTITION, Run, ls_stream, run

ALPHAS, QUICK_ALPHAS = (0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0), (0.25, 2.0)
SKEWS, QUICK_SKEWS = (0.2, 0.4, 0.6, 0.8), (0.4,)
THROUGHPUT_RATE, LATENCY_RATE = 5_000, 3_000
#: How busy the heaviest instance is without moving, where waiting is to be seen.
BUSY = 0.9
#: Throughputs that differ by less are the same.
SAME = 0.005


def figure_14(options: Options) -> Outcome:
    """Throughput by α."""
    capacity = capacity_of(options, FEW_KEYS)
    found = _by_skew(options, THROUGHPUT_RATE, lambda one: sustained(one, capacity))
    panel = _panel(options, "maximum throughput (tuples/s)", found)
    plot = Plot("figure-14", "Figure 14: system bottleneck by threshold", _about(options), [panel])
    lines = [_line("14", options, THROUGHPUT_RATE, skew, values) for skew, values in found.items()]
    lines += [
        _settles(options, skew, paper, found[skew])
        for skew, paper in ((0.4, 2.0), (0.6, 4.0), (0.8, None))
        if skew in found
    ]
    return Outcome(lines, plots=[plot])


def figure_15(options: Options) -> Outcome:
    """Latency by α: at the paper's rate, and on a machine that has to work hard at it."""
    capacity = capacity_of(options, FEW_KEYS)
    calm = _by_skew(options, LATENCY_RATE, lambda one: mean_ms(one, capacity))
    hard = _by_skew(options, LATENCY_RATE, _share_of_unmoved)
    panels = [
        _panel(options, "average latency (ms of comparing and waiting)", calm, "capacity as in figure 14"),
        _panel(options, "average latency, of that without moving", hard, "90 % busy without moving"),
    ]
    title = f"Figure 15: system latency by threshold at {LATENCY_RATE:,} tuples/s"
    plot = Plot("figure-15", title, _about(options), panels)
    lines = [
        _line("15", options, LATENCY_RATE, skew, [1 / value for value in values], what)
        for what, found in (("", calm), (", 90 % busy", hard))
        for skew, values in found.items()
    ]
    return Outcome(lines, plots=[plot])


def _share_of_unmoved(one: Run) -> float:
    """On a machine on which the heaviest instance is 90 % busy if nothing moves."""
    unmoved = run(BY_PARTITION, one.source, one.instances)
    busiest = np.mean([batch.makespan for batch in unmoved.trace.batches[one.source.settled :]])
    capacity = float(busiest) / BUSY
    return mean_ms(one, capacity) / mean_ms(unmoved, capacity)


def _by_skew(options: Options, rate: int, value: Callable[[Run], float]) -> dict[float, list[float]]:
    """Skew → a value per α, medians over the seeds."""
    return {
        skew: [
            median(
                value(run(ls_stream(alpha), source(options, seed, rate, FEW_KEYS, skew)))
                for seed in options.seeds
            )
            for alpha in _alphas(options)
        ]
        for skew in (QUICK_SKEWS if options.quick else SKEWS)
    }


def _alphas(options: Options) -> tuple[float, ...]:
    return QUICK_ALPHAS if options.quick else ALPHAS


def _about(options: Options) -> str:
    return f"Ls-Stream, {FEW_KEYS} keys, 20 instances, 16 partitions each\n{options.seeds_text}"


def _panel(options: Options, y_label: str, found: dict[float, list[float]], title: str = "") -> Panel:
    curves = [
        Curve(f"Zipf {skew:g}", _alphas(options), values, "points", colour=number)
        for number, (skew, values) in enumerate(found.items())
    ]
    return Panel("threshold α of load imbalance", y_label, curves, title)


def _line(
    figure: str, options: Options, rate: int, skew: float, values: Sequence[float], what: str = ""
) -> Line:
    """The imbalance without moving, and what the lowest threshold gains over the highest."""
    lowest, highest = _alphas(options)[0], _alphas(options)[-1]
    unmoved = median(
        imbalance(run(BY_PARTITION, source(options, seed, rate, FEW_KEYS, skew))) for seed in options.seeds
    )
    gain = values[0] / values[-1]
    return Line(
        figure,
        f"Zipf {skew:g} (LI {unmoved:.1f} unmoved){what}: α = {lowest:g} over {highest:g}",
        "a lower threshold is better",
        f"{gain:.2f} × as good",
        gain,
        "×",
        tuple(values),
        gain > 1.01,
    )


def _settles(options: Options, skew: float, paper: float | None, values: Sequence[float]) -> Line:
    """From which threshold on throughput stays what it is at the highest."""
    alphas = _alphas(options)
    same = [abs(value / values[-1] - 1) < SAME for value in values]
    first = next(alpha for place, alpha in enumerate(alphas) if all(same[place:]))
    return Line(
        "14",
        f"Zipf {skew:g}: from which α on nothing changes",
        f"{paper:g}" if paper else "keeps falling",
        f"{first:g}",
        first,
        "",
        (first,),
        first == paper,
    )
