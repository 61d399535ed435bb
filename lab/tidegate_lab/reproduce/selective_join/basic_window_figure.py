"""Figure 9: average output by the size of basic windows, without an index and with one, both orders of lists.

Paper: selective join, experiments, basic window size. 500 tuples a second; 20 s windows without an index,
200 s windows with one, whose lists are sorted by time or by identifier. "none": no basic windows, the newest
part of the window is taken.

What the paper does not say and we had to choose: the machine (200 tuples a second just fit, as in the other
figures), the sizes, and what a look-up costs (as much as ten list entries; a dearer one moves the point where
small basic windows stop paying to the right).

What lists sorted by identifier lose, they lose by rounding: a basic window that does not fit into a row's
budget is skipped, the row finds less than it could pay for, and rate adaptation swings between too little and
too much. If some rows take it whole instead, by lot, so that the budget is used up on average
(`whole_or_nothing`), nothing is lost; that line is ours.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import median
from typing import TYPE_CHECKING

from tidegate.control.actuators.adaptive import AdaptiveShedding
from tidegate.control.actuators.paper_rate import FixedRate, RateAdaptation
from tidegate.control.actuators.policy import RandomDropPolicy
from tidegate.join.sets.bitset_pairs import Bitsets
from tidegate.join.sets.inverted_lists import InvertedLists
from tidegate.join.sets.item_sets import ItemSets, item_sets
from tidegate.join.sets.pair_finders import PairFinder
from tidegate.join.sets.thresholds import Overlap
from tidegate_lab.plots.plots import Curve, Panel, Plot
from tidegate_lab.reproduce.experiment import Line, Options, Outcome
from tidegate_lab.reproduce.selective_join.scenarios import SHIFT, both_windows
from tidegate_lab.simulate.join.period_join import BY_LOT, PART_OF_IT, SKIPPED, PeriodJoin, PeriodMachine
from tidegate_lab.workloads.selective_join import Steps, Workload, draw

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SKEWS = (0.6, 0.8)
#: Seconds of a basic window; 0 is "none".
PLAIN_SIZES = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 0.0)
INDEXED_SIZES = (0.5, 1.0, 2.0, 5.0, 20.0, 50.0, 100.0, 0.0)
QUICK_SIZES = (0.5, 10.0, 0.0)
#: Runs over 200 s windows take long, and no bar hangs on them.
SEEDS_MOST = 2
#: Periods of 5 s: first the order of basic windows is learnt, then output is counted. It is counted longer
#: where basic windows are large: where in its own a row probes makes a difference, and when they cannot be
#: read in part, rate adaptation swings between nothing and too much.
LEARNT, COUNTED, COUNTED_LARGE = 2, 4, 20
_LARGE_SECONDS, _PERIOD_SECONDS = 20.0, 5.0
MATCH = Overlap(3)


@dataclass(frozen=True)
class Setting:
    """One kind of join; its curves are points over the size of basic windows."""

    window_seconds: float
    rate: float
    #: Rows a second that just fit.
    fits: float
    indexed: bool = False
    remainder: str = PART_OF_IT

    @property
    def matcher(self) -> PairFinder:
        return InvertedLists(MATCH) if self.indexed else Bitsets(MATCH)


@lru_cache(maxsize=4)
def _streams(
    seconds: float, rate: float, skew: float, seed: int
) -> tuple[tuple[NDArray[np.int64], NDArray[np.int64]], tuple[ItemSets, ItemSets]]:
    period = 2 * seconds
    workload = Workload(
        skew=skew, period_seconds=period, shift_seconds=Steps(((1.0, SHIFT * period),)), seed=seed
    )
    steps = Steps(((seconds + _PERIOD_SECONDS * (LEARNT + COUNTED_LARGE), rate),))
    left, right = draw(workload, (steps, steps))
    first, second = (item_sets(rows.bounds, rows.items, workload.items) for rows in (left, right))
    return (left.times_us, right.times_us), (first, second)


@lru_cache(maxsize=64)
def capacity(setting: Setting, skew: float, seed: int) -> float:
    """Work a second of joining everything, scaled to the rate that fits: work grows with its square."""
    windows = both_windows(setting.window_seconds, 0.0)
    streams = _streams(setting.window_seconds, setting.rate, skew, seed)
    join = PeriodJoin(*streams, windows, setting.matcher, PeriodMachine(float("inf"), seed=seed))
    begin = setting.window_seconds
    (period,) = join.run(RandomDropPolicy(windows, FixedRate(1.0)), begin, begin + _PERIOD_SECONDS)
    return period.cost / _PERIOD_SECONDS * (setting.fits / setting.rate) ** 2


def output_rate(setting: Setting, size: float, skew: float, seed: int) -> float:
    """Output tuples a second with all three adaptations, once the order of basic windows is learnt."""
    windows = both_windows(setting.window_seconds, size)
    by_time = replace(setting, remainder=PART_OF_IT)
    machine = PeriodMachine(capacity(by_time, skew, seed), remainder=setting.remainder, seed=seed)
    streams = _streams(setting.window_seconds, setting.rate, skew, seed)
    join = PeriodJoin(*streams, windows, setting.matcher, machine)
    # The first period would only find out that r = 1 is too much; start near what fits.
    rate = RateAdaptation(fraction=(setting.fits / setting.rate) ** 2)
    large = setting.indexed and (size == 0 or size >= _LARGE_SECONDS)
    begin, counted = setting.window_seconds, COUNTED_LARGE if large else COUNTED
    end = begin + _PERIOD_SECONDS * (LEARNT + counted)
    periods = join.run(AdaptiveShedding(windows, rate), begin, end)
    return sum(period.outputs for period in periods[LEARNT:]) / (_PERIOD_SECONDS * counted)


def figure_9(options: Options) -> Outcome:
    """Non-indexed and indexed, by the size of basic windows."""
    rate, fits = (125.0, 50.0) if options.quick else (500.0, 200.0)
    long = 40.0 if options.quick else 200.0
    plain = Setting(20.0, rate, fits)
    by_time = Setting(long, rate, fits, indexed=True)
    by_identifier = replace(by_time, remainder=SKIPPED)
    sizes = (QUICK_SIZES,) * 2 if options.quick else (PLAIN_SIZES, INDEXED_SIZES)
    seeds = options.seeds[:SEEDS_MOST]
    found = {
        (setting, skew): [median(output_rate(setting, size, skew, seed) for seed in seeds) for size in own]
        for setting, own in ((plain, sizes[0]), (by_time, sizes[1]), (by_identifier, sizes[1]))
        for skew in SKEWS
    }
    panels = [
        _panel("non-indexed, 20 s windows", sizes[0], [("", found[plain, k], k, 0) for k in SKEWS]),
        _panel(
            f"indexed, {long:g} s windows",
            sizes[1],
            [(", time sorted", found[by_time, k], k, 0) for k in SKEWS]
            + [(", identifier sorted", found[by_identifier, k], k, 2) for k in SKEWS],
        ),
    ]
    text = f"seeds {seeds[0]} and {seeds[-1]}" if len(seeds) > 1 else f"seed {seeds[0]}"
    plot = Plot(
        "figure-9",
        "Figure 9: average output rate by basic window size",
        f"overlap join, threshold 3, τ = 5/8·φ, all three adaptations, {rate:g} tuples/s\n"
        f"machine: {fits:g} tuples/s just fit · a look-up costs 10 list entries · means of {text}",
        panels,
    )
    settings = (plain, by_time, by_identifier)
    lines = [line for k in SKEWS for line in _lines(k, sizes, [found[s, k] for s in settings])]
    by_lot, widest = replace(by_time, remainder=BY_LOT), sizes[1][-2]
    for k in SKEWS:
        lots = [output_rate(by_lot, widest, k, seed) for seed in seeds]
        lines.append(_by_lot(k, widest, lots, found[by_time, k][-2]))
    return Outcome(lines, plots=[plot])


def _panel(title: str, sizes: tuple[float, ...], curves: list[tuple[str, list[float], float, int]]) -> Panel:
    places = list(range(len(sizes)))
    names = [f"{size:g}" if size else "none" for size in sizes]
    return Panel(
        "basic window size (s)",
        "average output rate (tuples/s)",
        [
            Curve(
                f"κ = {skew:g}{name}",
                places,
                values,
                "dashed" if colour else "points",
                colour=colour + SKEWS.index(skew),
            )
            for name, values, skew, colour in curves
        ],
        title=title,
        ticks=list(zip(places, names, strict=True)),
    )


def _lines(skew: float, sizes: tuple[tuple[float, ...], ...], found: list[list[float]]) -> list[Line]:
    plain, by_time, by_identifier = found
    best = max(range(len(by_time)), key=by_time.__getitem__)
    widest = len(sizes[1]) - 2
    lower = [100 * (b / a - 1) for a, b in zip(by_time, by_identifier, strict=True)]
    return [
        Line(
            "9",
            f"κ = {skew:g}, non-indexed: smallest, largest and no basic windows, tuples/s",
            "small basic windows give more output",
            f"{plain[0]:.0f} ({sizes[0][0]:g} s), {plain[-2]:.0f} ({sizes[0][-2]:g} s), "
            f"{plain[-1]:.0f} (none)",
            samples=tuple(plain),
            agrees=plain[0] > plain[-2] > plain[-1],
        ),
        Line(
            "9",
            f"κ = {skew:g}, indexed, time sorted: very small basic windows against the best, tuples/s",
            "output drops for very small ones: look-ups",
            f"{by_time[0]:.0f} ({sizes[1][0]:g} s), best {by_time[best]:.0f} ({sizes[1][best]:g} s)",
            samples=tuple(by_time),
            agrees=best > 0 and by_time[0] < 0.95 * by_time[best],
        ),
        Line(
            "9",
            f"κ = {skew:g}, indexed: identifier sorted against time sorted",
            "significantly lower, especially with large ones",
            f"{lower[0]:+.0f} % ({sizes[1][0]:g} s), {lower[widest]:+.0f} % ({sizes[1][widest]:g} s), "
            f"{lower[-1]:+.0f} % (none)",
            samples=tuple(by_identifier),
            agrees=lower[widest] < -5 and lower[widest] < lower[0],
        ),
    ]


def _by_lot(skew: float, size: float, found: list[float], by_time: float) -> Line:
    gains = tuple(100 * (rate / by_time - 1) for rate in found)
    return Line(
        "9",
        f"κ = {skew:g}, indexed: identifier sorted, remainder by lot, against time sorted",
        "-",
        f"{median(gains):+.0f} % ({size:g} s)",
        median(gains),
        "%",
        gains,
    )
