"""The two readings of "normals within hot spots", under which the same claims and bars are judged.

`papers/hot_spots.py` says what the readings are. Whole normals have the plain names; what is measured within
the hot spots has names that say so, in lines and in ids of bars. Targets are the same for both. Where nothing
is skewed the readings are one, and it is measured once.
"""

from __future__ import annotations

from typing import Any

from tidegate.papers.experiments.sifters.combinations import COMBINATIONS
from tidegate.papers.experiments.sifters.scene import Source
from tidegate.papers.sifters import Workload

Combination = tuple[str, str]

#: `within_spots` of a workload: whole normals come first.
READINGS = (False, True)
#: The readings differ in these.
SKEWED = tuple(combination for combination in COMBINATIONS if "skew" in combination)


def workload_of(combination: Combination, within_spots: bool, **settings: Any) -> Workload:
    """Data and queries of these kinds, under this reading."""
    return Workload(*combination, within_spots=within_spots and combination in SKEWED, **settings)


def told_apart(within_spots: bool) -> tuple[Combination, ...]:
    """Combinations that have lines under this reading: no line is told twice."""
    return SKEWED if within_spots else COMBINATIONS


def id_ending(within_spots: bool) -> str:
    """Of the ids of bars."""
    return ".within_spots" if within_spots else ""


def named(source: Source) -> str:
    """What a line adds to its claim."""
    return " within spots" if isinstance(source, Workload) and source.within_spots else ""
