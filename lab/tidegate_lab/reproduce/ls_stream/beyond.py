"""What the paper leaves open: how many partitions, how the routing table grows, and a join with an index.

Paper: Ls-Stream, section V-B: the table has one entry per partition, "regardless of the increasing number of
migrated tuples", while FastJoin's has one more for every key that moved.

With an index a row costs its matches, not all rows of its partition
(`lab/tidegate_lab/simulate/balance/join_costs.py`, Indexed: counted in the ratios of our kernels, not timed).
Strategies still decide by their own load models, which count too much: Ls-Stream's by the square of a
partition's rows, FastJoin's by that of an instance's.
"""

from __future__ import annotations

import numpy as np

from tidegate_lab.plots.bars import at_most
from tidegate_lab.plots.plots import Curve, Panel, Plot
from tidegate_lab.reproduce.claims import series_line
from tidegate_lab.reproduce.experiment import Line, Options, Outcome
from tidegate_lab.reproduce.ls_stream.measures import median_curves, ratios, sustained
from tidegate_lab.reproduce.ls_stream.skew_runs import STEEPEST, runs, skews_of, sources
from tidegate_lab.reproduce.ls_stream.streams import FEW_KEYS, keys_text, many_keys
from tidegate_lab.reproduce.ls_stream.systems import (
    BISTREAM,
    BY_PARTITION,
    FASTJOIN,
    LS_STREAM,
    Run,
    System,
    indexed,
    ls_stream,
    run,
)

EACH, QUICK_EACH = (1, 2, 4, 8, 16, 32, 64, 128), (4, 16)


def partitions(options: Options) -> Outcome:
    """Throughput by partitions per instance, Zipf 1.0."""
    each = QUICK_EACH if options.quick else EACH
    panels = [
        _by_partitions(options, each, keys, skew)
        for keys, skew in ((many_keys(options), STEEPEST), (FEW_KEYS, 0.4))
    ]
    claim = f"Ls-Stream over BiStream with {each[0]} … {each[-1]} partitions per instance"
    lines = [
        series_line(
            "partitions", f"{claim}, {panel.title}", "number not printed", panel.curves[0].y, unit=" ×"
        )
        for panel in panels
    ]
    about = f"20 instances, α = 1\n{options.seeds_text}"
    plot = Plot("partitions", "Throughput by partitions per instance", about, panels)
    return Outcome(lines, plots=[plot])


def _by_partitions(options: Options, each: tuple[int, ...], keys: int, skew: float) -> Panel:
    curves = median_curves(
        (LS_STREAM, BY_PARTITION),
        each,
        lambda system, number: _over_hash(system, options, keys, skew, number),
        x=list(range(len(each))),
    )
    ticks = [(float(place), str(number)) for place, number in enumerate(each)]
    title = f"Zipf {skew:g}, {keys:,} keys"
    return Panel("partitions per instance", "throughput over BiStream's", curves, title, ticks=ticks)


def _over_hash(system: System, options: Options, keys: int, skew: float, each: int) -> list[float]:
    found = [run(system, one, 20, each) for one in sources(options, keys, skew)]
    return ratios(lambda one: sustained(one, 1.0), found, runs(BISTREAM, options, keys, skew))


def with_index(options: Options) -> Outcome:
    """The heaviest instance over perfect balance, by skew, where a row costs its matches."""
    skews = tuple(skew for skew in skews_of(options) if skew >= 0.6)
    keys, compared = many_keys(options), (BISTREAM, FASTJOIN, LS_STREAM)
    curves = median_curves(
        compared,
        skews,
        lambda system, skew: map(_over_even, runs(indexed(system), options, keys, skew)),
    )
    plot = Plot(
        "index",
        "Heaviest instance over perfect balance, with an index",
        f"20 instances, {keys_text(keys)}; counted: rows and matches\n{options.seeds_text}",
        [Panel("Zipf coefficient", "work of the heaviest over the mean", curves)],
    )
    claim = f"heaviest over perfect balance with an index, Zipf {skews[0]:g} to {skews[-1]:g}"
    lines = [series_line("index", f"{claim}: {curve.name}", "-", curve.y, unit=" ×") for curve in curves]
    return Outcome(lines, plots=[plot])


def _over_even(one: Run) -> float:
    return float(one.trace.series("overload")[one.source.settled :].mean())


def table(options: Options) -> Outcome:
    """Entries of the routing table by rows moved."""
    alphas = (0.25, 1.0) if options.quick else (0.05, 0.1, 0.25, 0.5, 1.0)
    keys, skew = many_keys(options), STEEPEST
    ls = [one for alpha in alphas for one in runs(ls_stream(alpha), options, keys, skew)]
    ls += [one for alpha in alphas for one in runs(ls_stream(alpha), options, FEW_KEYS, 0.4)]
    fast = [*runs(FASTJOIN, options, keys, skew), *runs(FASTJOIN, options, FEW_KEYS, 0.4)]
    growth, fast_growth = (max(_growth(one) for one in some) for some in (ls, fast))
    moved = [float(_moved(one)[-1]) for one in ls]
    shown = [(LS_STREAM, max(ls, key=lambda one: _moved(one)[-1])), (FASTJOIN, fast[0])]
    curves = [
        Curve(system.name, _moved(one).tolist(), _entries(one).tolist(), "points", colour=system.colour)
        for system, one in shown
    ]
    plot = Plot(
        "table",
        "Size of the routing table by rows moved",
        f"20 instances; of each system the run that is told about\n{options.seeds_text}",
        [Panel("rows moved so far", "entries of the routing table", curves)],
    )
    lines = [
        Line(
            "table",
            f"Ls-Stream's table after {min(moved):,.0f} to {max(moved):,.0f} rows moved, over the first",
            "constant",
            f"{growth:.2f} ×",
            growth,
            "×",
            tuple(moved),
            growth == 1,
        ),
        Line(
            "table",
            "FastJoin's",
            "grows",
            f"up to {fast_growth:.2f} ×",
            fast_growth,
            "×",
            agrees=fast_growth > 1,
        ),
    ]
    return Outcome(lines, [at_most("ls_stream.table_growth", growth, "×", 1.0)], [plot])


def _growth(one: Run) -> float:
    entries = _entries(one)
    return float(entries[-1] / entries[0])


def _entries(one: Run) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([batch.groups[0].entries for batch in one.trace.batches], np.float64)


def _moved(one: Run) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.cumsum(one.trace.series("moved_rows"))
