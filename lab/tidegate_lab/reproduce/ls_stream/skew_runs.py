"""Runs on Zipf streams behind figures 7 to 9 and 14: 20 instances, 5,000 tuples/s, capacity as in figure 8.

Paper: Ls-Stream, section VI-B. Capacity is such that BiStream sustains at Zipf 1.0 what the paper says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tidegate_lab.plots.plots import Panel, Plot
from tidegate_lab.reproduce.experiment import Options
from tidegate_lab.reproduce.ls_stream.measures import capacity_for, median_curves, ratios, sustained
from tidegate_lab.reproduce.ls_stream.streams import (
    FEW_KEYS,
    QUICK_SKEWS,
    SKEWS,
    Source,
    keys_text,
    many_keys,
    source,
)
from tidegate_lab.reproduce.ls_stream.systems import BISTREAM, BY_PARTITION, SYSTEMS, Run, System, run

RATE = 5_000
#: BiStream's throughput at Zipf 1.0 in the paper, rows per second: what capacity is chosen for.
BISTREAM_AT_ONE = 11_000.0
STEEPEST = 1.0
#: The bars are about 16 to 20 instances.
BAR_INSTANCES = (16, 20)
SKEW_LABEL = "Zipf coefficient"
_ABOUT = "20 instances, 16 partitions each, α = 1"


def skews_of(options: Options) -> tuple[float, ...]:
    return QUICK_SKEWS if options.quick else SKEWS


def sources(options: Options, keys: int, skew: float) -> list[Source]:
    return [source(options, seed, RATE, keys, skew) for seed in options.seeds]


def runs(system: System, options: Options, keys: int, skew: float, instances: int = 20) -> list[Run]:
    return [run(system, one, instances) for one in sources(options, keys, skew)]


def capacity_of(options: Options, keys: int, instances: int = 20) -> float:
    return capacity_for(runs(BISTREAM, options, keys, STEEPEST, instances), BISTREAM_AT_ONE)


def by_skew_plot(
    name: str, title: str, y_label: str, options: Options, value: Callable[[Run, int], float]
) -> Plot:
    """A panel per number of keys, a curve per system; `value` gets a run and the number of keys."""
    skews = skews_of(options)

    def panel(keys: int) -> Panel:
        curves = median_curves(
            (*SYSTEMS, BY_PARTITION),
            skews,
            lambda system, skew: (value(one, keys) for one in runs(system, options, keys, skew)),
        )
        curves[-1] = replace(curves[-1], style="dashed")
        return Panel(SKEW_LABEL, y_label, curves, title=keys_text(keys))

    panels = [panel(keys) for keys in (many_keys(options), FEW_KEYS)]
    return Plot(name, title, f"{_ABOUT}\n{options.seeds_text}", panels)


def gains(
    system: System, over: System, options: Options, keys: int, skew: float, instances: int = 20
) -> list[float]:
    """Throughput of one over that of the other, seed by seed."""
    ours, theirs = (runs(one, options, keys, skew, instances) for one in (system, over))
    return ratios(lambda one: sustained(one, 1.0), ours, theirs)
