"""The two readings of "normals within hot spots", under which the same claims and bars are judged.

`lab/tidegate_lab/workloads/hot_spots.py` says what the readings are, and why skewed points lie within the hot
spots by default. What is measured like that has the plain names; what is measured with whole normals has
names that say so, in lines, in ids of bars and in pictures, and comes second. Targets are the same for both.
Where nothing is skewed the readings are one, and it is told once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tidegate_lab.reproduce.experiment import Outcome
from tidegate_lab.reproduce.sifters.runs.combinations import COMBINATIONS
from tidegate_lab.reproduce.sifters.runs.scene import Source
from tidegate_lab.workloads.sifters import Workload

Combination = tuple[str, str]

#: `whole_normals` of a workload: within spots comes first.
READINGS = (False, True)
#: The readings differ in these.
SKEWED = tuple(combination for combination in COMBINATIONS if "skew" in combination)


def under_both(measure: Callable[[bool], Outcome]) -> Outcome:
    """What a figure gives under one reading after the other; `measure` is told whether normals are whole."""
    found = [measure(whole_normals) for whole_normals in READINGS]
    return Outcome(
        [line for one in found for line in one.lines],
        [bar for one in found for bar in one.bars],
        [plot for one in found for plot in one.plots],
        [row for one in found for row in one.rows],
    )


def workload_of(combination: Combination, whole_normals: bool, **settings: Any) -> Workload:
    """Data and queries of these kinds, under this reading."""
    return Workload(*combination, whole_normals=whole_normals and combination in SKEWED, **settings)


def told_apart(whole_normals: bool) -> tuple[Combination, ...]:
    """Combinations that have lines under this reading: no line is told twice."""
    return SKEWED if whole_normals else COMBINATIONS


def id_ending(whole_normals: bool) -> str:
    """Of the ids of bars."""
    return ".whole_normals" if whole_normals else ""


def picture_ending(whole_normals: bool) -> str:
    """Of the names of pictures."""
    return "-whole-normals" if whole_normals else ""


def kinds(combination: Combination) -> str:
    """As the paper names combinations, data first."""
    return "/".join(combination).upper()


def words(whole_normals: bool) -> str:
    """What a claim or a heading adds."""
    return " with whole normals" if whole_normals else ""


def legend(whole_normals: bool) -> str:
    """What a picture says about where its points lie."""
    return "skewed points may lie out of hot spots" if whole_normals else "skewed points within hot spots"


def named(source: Source) -> str:
    """What a line adds to its claim."""
    return words(isinstance(source, Workload) and source.whole_normals)
