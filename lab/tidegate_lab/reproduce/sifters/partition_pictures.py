"""Figure 3: what partitionings look like, for ten regions of a plane.

Paper: sifters, section V-C. The approximations of the uniform grid (benefit: volume) and of data equi-depth
(benefit: rows), QDPart, and ours. Circles are sample rows, their area the number of queries that each
satisfies (the paper shows hits for QDPart alone); the darker a region, the more of its rows are dropped.
"""

from __future__ import annotations

import numpy as np

from tidegate.sift.construction import Constructed
from tidegate.sift.placing import frequencies
from tidegate_lab.plots.plots import Map, Plot
from tidegate_lab.reproduce.claims import number_line
from tidegate_lab.reproduce.experiment import Line, Options, Outcome
from tidegate_lab.reproduce.sifters.runs.combinations import AUTO, build
from tidegate_lab.reproduce.sifters.runs.pickups import Pickups
from tidegate_lab.reproduce.sifters.runs.scene import Scene, Source, scene
from tidegate_lab.reproduce.sifters.runs.sweep import setting_of
from tidegate_lab.workloads.sifters import Workload

REGIONS = 10
#: Few enough to tell circles apart.
SAMPLE_ROWS = 300
NAMES = {
    "volume": "approximate uniform grid",
    "count": "approximate data equi-depth",
    "flexp": "QDPart",
    AUTO: "auto",
}


def figure_3(options: Options) -> Outcome:
    """A picture of each partitioning, of the first seed."""
    source = _source(options)
    setting = setting_of(options, regions=REGIONS, sample_rows=SAMPLE_ROWS)
    there = scene(source, setting.sample_rows, setting.fresh_rows)
    sifters = {name: build(there, setting, name) for name in NAMES}
    maps = [_map(there, sifter, NAMES[name], options) for name, sifter in sifters.items()]
    what = "pick-ups in New York" if options.real else "SKEW data, SKEW queries"
    subtitle = (
        f"{what}, l = {REGIONS}, z = {setting.z:g}, {SAMPLE_ROWS} sample rows (seed {options.seeds[0]})\n"
        "circles: sample rows, by the number of queries that each satisfies"
    )
    plot = Plot(
        options.plot_name("3"), "Figure 3: partitionings and drop thresholds", subtitle, columns=2, maps=maps
    )
    # Real rows share places, where no cut can halve them.
    return Outcome([] if options.real else _lines(there, sifters), plots=[plot])


def _source(options: Options) -> Source:
    seed = options.seeds[0]
    if options.real:
        return Pickups(options.real, query_sides=(0.01, 0.02), seed=seed)
    # Larger queries than elsewhere, or hardly any circle would have a size.
    return Workload("skew", "skew", global_skew=2.0, query_sides=(0.02, 0.04), seed=seed)


def _map(there: Scene, sifter: Constructed, title: str, options: Options) -> Map:
    # Latitudes go up and longitudes to the right; made-up axes as they come.
    x, y = (1, 0) if options.real else (0, 1)
    low, high = (side[:, [x, y]] for side in sifter.regions.bounds)
    areas = np.column_stack((low, high, sifter.thresholds)).tolist()
    dots = np.column_stack((there.sample.rows[:, [x, y]], there.sample.hits)).tolist()
    labels = [axis.column for axis in there.queries.boxes.axes]
    return Map(labels[x], labels[y], areas, dots, title, "drop threshold d")


def _lines(there: Scene, sifters: dict[str, Constructed]) -> list[Line]:
    """What the paper promises about the two approximations."""
    low, high = sifters["volume"].regions.bounds
    volumes = ((high - low) / (there.domain.high - there.domain.low)).prod(axis=1)
    rows = frequencies(sifters["count"].regions, there.sample.rows)
    grid, depth = float(volumes.max() / volumes.min()), float(rows.max() / rows.min())
    return [
        _at_most_twice("approximate uniform grid: largest region over the smallest", grid),
        _at_most_twice("approximate data equi-depth: fullest region over the emptiest", depth),
    ]


def _at_most_twice(claim: str, ratio: float) -> Line:
    # An odd number of rows cannot be halved: one row more is still twice.
    return number_line("3", claim, "at most 2", [ratio], agrees=ratio <= 2 + 2 * REGIONS / SAMPLE_ROWS)
