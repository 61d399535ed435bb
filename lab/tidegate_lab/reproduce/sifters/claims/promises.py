"""What sifters promise, against what fresh rows give: the overall QoS, and the volume that passes.

Equation 9 foresees the overall QoS from regions alone. It is held against fresh rows over queries that have
data; of queries without data it knows nothing, and they are complete. What passes is held against z, as a
share of all rows. Both in the middle of figure 4 (G = L = 4), for each combination and partitioner; the worst
of their medians counts. Both under both readings of the skew (`readings.py`). What passes at other z is drawn
by `volume_picture.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median

from tidegate.observe.json_frame import Bar
from tidegate_lab.plots.bars import at_most
from tidegate_lab.reproduce.experiment import Line, Options
from tidegate_lab.reproduce.sifters.claims.readings import id_ending, words
from tidegate_lab.reproduce.sifters.runs.combinations import AUTO, COMBINATIONS, PAPER, SIFTERS, Measured
from tidegate_lab.reproduce.sifters.runs.skew_points import middle
from tidegate_lab.reproduce.sifters.runs.sweep import found, title

FORESEEN_TARGET, VOLUME_TARGET = 0.02, 0.01

#: Combination and partitioner → how far off, seed by seed.
Off = dict[tuple[str, str], list[float]]


def promise_lines(options: Options, whole_normals: bool) -> list[Line]:
    """By partitioner: medians of the combinations, in the order of figure 4."""
    lines = []
    for what, off in (
        ("QoS of queries with data, off equation 9", _off(options, _quality_off, whole_normals)),
        ("share of rows that pass, off z = 0.5", _off(options, _volume_off, whole_normals)),
    ):
        for name in SIFTERS:
            by_combination = [median(values) for key, values in off.items() if key[1] == name]
            claim = f"{name.upper()}{words(whole_normals)}: {what}, UNIF/SKEW to UNIF/UNIF"
            measured = " → ".join(f"{one:.4f}" for one in by_combination)
            lines.append(Line("beyond", claim, "-", measured, samples=tuple(by_combination)))
    return lines


def promise_bars(options: Options, whole_normals: bool) -> list[Bar]:
    """The worst combination decides; of the paper's partitioners the worst one as well."""
    return [
        at_most(f"sifters.{promise}{ending}{id_ending(whole_normals)}", _worst(off, names), "", target)
        for promise, off, target in (
            ("foreseen", _off(options, _quality_off, whole_normals), FORESEEN_TARGET),
            ("volume", _off(options, _volume_off, whole_normals), VOLUME_TARGET),
        )
        for ending, names in (("", PAPER), (".auto", (AUTO,)))
    ]


def _quality_off(one: Measured) -> float:
    return abs(one.qos_with_data - one.foreseen)


def _volume_off(one: Measured) -> float:
    return abs(one.passed - 0.5)


def _off(options: Options, read: Callable[[Measured], float], whole_normals: bool) -> Off:
    points = [middle(options, combination, whole_normals=whole_normals) for combination in COMBINATIONS]
    return {
        (title(point.source), name): found([point], name, options.seeds, read)[:, 0].tolist()
        for point in points
        for name in SIFTERS
    }


def _worst(off: Off, names: Sequence[str]) -> float:
    return max(median(values) for (_, name), values in off.items() if name in names)
