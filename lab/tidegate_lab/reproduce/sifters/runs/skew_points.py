"""The points of figure 4: four combinations of data and queries, along the global and the local skew.

Paper: sifters, section VI-B.1 and the axes of figure 4; the other skew is 4, its default. All of them can be
had under both readings of the skew (`readings.py`).
"""

from __future__ import annotations

from dataclasses import replace

from tidegate_lab.reproduce.experiment import Options
from tidegate_lab.reproduce.sifters.claims.readings import Combination, workload_of
from tidegate_lab.reproduce.sifters.runs.combinations import COMBINATIONS, CONTENDERS
from tidegate_lab.reproduce.sifters.runs.sweep import (
    ALPHA_NAMES,
    TABLE_1,
    Position,
    run_all,
    setting_of,
    with_alphas,
)

SKEWS, QUICK_SKEWS = (1.0, 2.0, 4.0, 6.0, 8.0, 10.0), (1.0, 4.0, 10.0)
GLOBAL, LOCAL = "global skew parameter, G", "local skew parameter, L"
AXES = (GLOBAL, LOCAL)


def along(
    options: Options,
    combination: Combination,
    axis: str,
    alphas: tuple[float, float] = TABLE_1,
    *,
    whole_normals: bool = False,
) -> list[Position]:
    """Along one skew."""
    workload = workload_of(combination, whole_normals, alphas=alphas)
    skews = QUICK_SKEWS if options.quick else SKEWS
    setting = setting_of(options)
    workloads = [
        replace(workload, global_skew=skew) if axis == GLOBAL else replace(workload, local_skew=skew)
        for skew in skews
    ]
    return [Position(skew, one, setting) for skew, one in zip(skews, workloads, strict=True)]


def middle(options: Options, combination: Combination, *, whole_normals: bool = False) -> Position:
    """Where both skews are 4."""
    return Position(4.0, workload_of(combination, whole_normals), setting_of(options))


def every_point(
    options: Options, alphas: tuple[float, float] = TABLE_1, *, whole_normals: bool = False
) -> dict[Combination, list[Position]]:
    """All points of the figure; they are measured once this returns."""
    found = {
        combination: [
            point
            for axis in AXES
            for point in along(options, combination, axis, alphas, whole_normals=whole_normals)
        ]
        for combination in COMBINATIONS
    }
    for points in found.values():
        for point in points:
            # Scenes do not differ in alphas: both are measured while a scene is at hand.
            run_all([with_alphas(point, one) for one in ALPHA_NAMES], CONTENDERS, options.seeds)
    return found
