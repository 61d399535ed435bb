"""Figure 6: how long it takes to construct a sifter, by number of regions.

Paper: sifters, section VI-B.2. Construction is partitioning, query consolidation and configuration, from a
sample whose hits the server knows.

What we see differently: configuration needs no solver and takes no time to speak of, so it is not what makes
one partitioner slower than another. `auto` takes the longest, because it looks at many more cuts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

from tidegate.observe.json_frame import Bar
from tidegate_lab.plots.bars import at_most
from tidegate_lab.plots.plots import Plot
from tidegate_lab.reproduce.claims import number_line
from tidegate_lab.reproduce.experiment import Line, Options, Outcome
from tidegate_lab.reproduce.sifters.region_figure import region_counts
from tidegate_lab.reproduce.sifters.runs.combinations import SIFTERS, Setting, build
from tidegate_lab.reproduce.sifters.runs.scene import Scene, scene
from tidegate_lab.reproduce.sifters.runs.sweep import setting_of
from tidegate_lab.reproduce.sifters.runs.timing import (
    Times,
    about,
    by_regions,
    least_seconds,
    timed_seeds,
    times_panel,
)
from tidegate_lab.workloads.sifters import Workload

#: Many queries, and the numbers of regions with which they are tried.
MANY, QUICK_MANY, MANY_REGIONS = 100_000, 10_000, (16, 49, 100)
#: Most milliseconds of the slowest partitioner.
TARGETS = {"l16": 5, "l100": 50, "l100.many_queries": 300}
LABEL = "construction time (ms)"


def figure_6(options: Options) -> Outcome:
    """Construction by number of regions, with the paper's number of queries and with many."""
    regions = region_counts(options)
    count = QUICK_MANY if options.quick else MANY
    few = _milliseconds(options, Workload(), regions, timed_seeds(options))
    many = _milliseconds(options, Workload(query_count=count), MANY_REGIONS, options.seeds[:1])
    panels = [
        times_panel(few, regions, LABEL, "1,000 queries"),
        times_panel(many, MANY_REGIONS, LABEL, f"{count:,} queries (one seed)"),
    ]
    heading = "Figure 6: construction time by number of regions"
    plot = Plot("figure-6", heading, about(options), panels, one_legend=True)
    at = {place: {name: few[name][number] for name in SIFTERS} for number, place in enumerate(regions)}
    last = [many[name][-1] for name in SIFTERS]
    bars = [
        _bar("l16", at[16].values()),
        _bar("l100", at[100].values()),
        _bar("l100.many_queries", last),
    ]
    return Outcome([*_lines(at), _line(f"l = 100, {count:,} queries", "-", last)], bars, [plot])


def _milliseconds(
    options: Options, workload: Workload, regions: Sequence[int], seeds: Sequence[int]
) -> Times:
    # Nobody is judged here: a single fresh row will do.
    rows = setting_of(options).sample_rows
    scenes = {seed: scene(replace(workload, seed=seed), rows, 1) for seed in seeds}
    least = least_seconds(
        {
            (name, place, seed): partial(_build, there, setting_of(options, regions=place), name)
            for name in SIFTERS
            for place in regions
            for seed, there in scenes.items()
        }
    )
    found = by_regions(least, SIFTERS)
    return {name: [1e3 * one for one in seconds] for name, seconds in found.items()}


def _build(there: Scene, setting: Setting, name: str) -> None:
    # Boxes remember their coordinates once asked; a construction begins without them.
    anew = replace(there.queries, boxes=replace(there.queries.boxes))
    build(replace(there, queries=anew), setting, name)


def _lines(at: dict[int, dict[str, float]]) -> list[Line]:
    slowest = max(at[100], key=lambda name: at[100][name])
    below_50 = [ms for place, found in at.items() if place < 50 for ms in found.values()]
    return [
        _line("l = 16", "about 150 ms", list(at[16].values()), 150),
        _line("l below 50", "under 300 ms", below_50, 300),
        _line("l = 100", "up to 2.7 s", list(at[100].values()), 2700),
        Line("6", "l = 100: the slowest", "DEDP", slowest.upper(), agrees=slowest == "dedp"),
    ]


def _line(claim: str, paper: str, found: Sequence[float], most: float | None = None) -> Line:
    """From the fastest partitioner to the slowest."""
    agrees = None if most is None else max(found) <= most
    line = number_line("6", f"{claim}: fastest to slowest", paper, found, agrees=agrees, unit="ms")
    return replace(line, measured=f"{min(found):.3g} to {max(found):.3g} ms", value=max(found))


def _bar(name: str, found: Iterable[float]) -> Bar:
    return at_most(f"sifters.construction.{name}", max(found), "ms", TARGETS[name])
