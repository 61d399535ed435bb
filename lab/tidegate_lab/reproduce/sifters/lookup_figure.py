"""Figure 7: lookups with decisions a second, by number of regions; and what a sifter weighs on the wire.

Paper: sifters, section VI-B.2: "this includes the decision to drop or forward a data item". Rows come in
batches of columns, as at an edge node.

What we see differently: a lookup takes constant time per axis (`sift/filter/lookup.py`), so the number of
regions hardly matters, whatever the partitioner.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tidegate.sift.filter.decision import Gate
from tidegate.sift.filter.sifter import Sifter
from tidegate_lab.plots.bars import at_least, at_most
from tidegate_lab.plots.plots import Plot
from tidegate_lab.reproduce.claims import number_line
from tidegate_lab.reproduce.experiment import Line, Options, Outcome
from tidegate_lab.reproduce.sifters.region_figure import region_counts
from tidegate_lab.reproduce.sifters.runs.combinations import AUTO, SIFTERS, build
from tidegate_lab.reproduce.sifters.runs.scene import scene
from tidegate_lab.reproduce.sifters.runs.sweep import setting_of
from tidegate_lab.reproduce.sifters.runs.timing import (
    Times,
    about,
    by_regions,
    least_seconds,
    timed_seeds,
    times_panel,
)
from tidegate_lab.workloads.sifters import Workload, draw_rows

BATCH_ROWS, BATCHES = 65_536, 4
#: Million rows a second at 100 regions; bytes per region and dimension from 16 regions on.
LOOKUP_TARGET, BYTES_TARGET = 50, 24
#: What lookups lose from 16 to 100 regions, in per cent, as the paper saw it.
PAPER_LOSS = {"dedp": 27, "qedp": 27, "flexp": 40}


def figure_7(options: Options) -> Outcome:
    """The slowest and the heaviest decide."""
    regions = region_counts(options)
    sifters = {
        (name, place, seed): _sifter(options, name, place, seed)
        for name in SIFTERS
        for place in regions
        for seed in timed_seeds(options)
    }
    found = by_regions(_millions(sifters), SIFTERS)
    weights = [bytes_of(one) for (_, place, _), one in sifters.items() if place >= 16]
    slowest = min(values[-1] for values in found.values())
    bars = [
        at_least("sifters.lookup", slowest, "M rows/s", LOOKUP_TARGET),
        at_most("sifters.bytes", max(weights), "bytes per region and dimension", BYTES_TARGET),
    ]
    panel = times_panel(found, regions, "lookups with decisions (million per second)")
    plot = Plot(
        "figure-7", "Figure 7: lookups by number of regions", about(options), [panel], one_legend=True
    )
    return Outcome(_lines(found, regions, slowest), bars, [plot])


def _millions(sifters: Mapping[tuple[str, int, int], Sifter]) -> dict[tuple[str, int, int], float]:
    """Rows a second, in millions, of hot spots."""
    columns = list(np.ascontiguousarray(draw_rows(Workload(), BATCH_ROWS, part=2).T))
    least = least_seconds({key: partial(_decide, Gate(sifter), columns) for key, sifter in sifters.items()})
    return {key: BATCHES * BATCH_ROWS / seconds / 1e6 for key, seconds in least.items()}


def _decide(gate: Gate, columns: Sequence[NDArray[np.float64]]) -> None:
    for _ in range(BATCHES):
        gate.decide(columns)


def bytes_of(sifter: Sifter) -> float:
    """Per region and dimension, in binary form."""
    return len(sifter.to_bytes()) / (sifter.regions.count * len(sifter.axes))


def _sifter(options: Options, name: str, regions: int, seed: int) -> Sifter:
    setting = setting_of(options, regions=regions)
    there = scene(Workload(seed=seed), setting.sample_rows, 1)
    built = build(there, setting, name)
    return Sifter(there.queries.boxes.axes, built.regions, built.thresholds, z=setting.z)


def _lines(found: Times, regions: Sequence[int], slowest: float) -> list[Line]:
    first, last = regions.index(16), regions.index(100)
    lines = []
    for name in (*PAPER_LOSS, AUTO):
        change = 100 * (found[name][last] / found[name][first] - 1)
        said, agrees = "-", None
        if name in PAPER_LOSS:
            said, agrees = f"-{PAPER_LOSS[name]} %", change >= -PAPER_LOSS[name]
        claim = f"{name.upper()}: lookups at l = 100 against l = 16"
        measured = f"{change:+.0f} %"
        lines.append(Line("7", claim, said, measured, change, "%", tuple(found[name]), agrees))
    claim = "l = 100: lookups of the slowest, in millions a second"
    return [*lines, number_line("7", claim, "around 5 (FLEXP)", [slowest], agrees=slowest >= 5, unit="M/s")]
