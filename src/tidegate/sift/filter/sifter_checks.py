"""Validates a sifter whenever one is made, and so also when it arrives over the network."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import FlowError

if TYPE_CHECKING:
    from tidegate.sift.queries.axes import Axis
    from tidegate.sift.regions import Regions


def check_sifter(
    axes: tuple[Axis, ...],
    regions: Regions,
    thresholds: NDArray[np.float64],
    order: tuple[int, int],
    shares: tuple[float, float, float],
    name: str,
) -> None:
    """Raise a FlowError for an invalid part.

    `order` is epoch and version; `shares` are z, the fairness bound and the share of samples.
    """
    columns = [axis.column for axis in axes]
    if len(set(columns)) < len(columns) or len(columns) != len(regions.domain.low):
        raise _unfit(
            "columns",
            f"{columns}"[:200] + f" for {len(regions.domain.low)} dimensions",
            "Name each column once",
        )
    for share, what in zip(shares, ("z", "fairness", "sample_share"), strict=True):
        if not 0 <= share <= 1:
            raise _unfit(what, share, "Give a share between 0 and 1")
    for number, what in zip(order, ("epoch", "version"), strict=True):
        if not (isinstance(number, int) and 0 <= number < 2**63):
            raise _unfit(what, str(number)[:40], "Give a whole number of at least 0")
    texts = (name, *columns, *(text for axis in axes for text in axis.categories))
    if not all(isinstance(text, str) for text in texts):
        raise _unfit("names", f"{texts}"[:200], "Name stream, columns and categories by text")
    if thresholds.shape != (regions.count,) or not ((thresholds >= 0) & (thresholds <= 1)).all():
        raise _unfit(
            "thresholds",
            f"{thresholds.tolist()}"[:200] + f" for {regions.count} regions",
            "Give each region the share of its rows to drop, between 0 and 1",
        )
    _check_tree(regions, len(axes))


def _check_tree(regions: Regions, axes: int) -> None:
    """Every cut but the first, and every region, is the child of one cut and reachable from the first."""
    cuts = len(regions.axis)
    if len(regions.at) != cuts or regions.children.shape != (cuts, 2):
        raise _unfit("cuts", f"{cuts} axes, {len(regions.at)} points", "Give each cut an axis and a point")
    if not (regions.at > -np.inf).all() or (
        cuts and not 0 <= regions.axis.min() <= regions.axis.max() < axes
    ):
        raise _unfit(
            "cuts",
            "a cut at NaN or below all numbers, or on an unknown axis",
            "Cut a known axis at a number",
        )
    once = np.sort(regions.children, axis=None)
    if cuts and not np.array_equal(once, np.r_[-regions.count : 0, 1:cuts]):
        raise _unfit("cuts", "a cut or region without a parent, or with two", "Make the cuts one tree")
    children = regions.children.tolist()
    waiting, reached = [0] if cuts else [], 0
    while waiting:
        reached += 1
        waiting.extend(child for child in children[waiting.pop()] if child >= 0)
    if reached != cuts:
        raise _unfit("cuts", f"{cuts - reached} of {cuts} unreachable", "Make the cuts one tree")


def _unfit(what: str, got: object, do: str) -> FlowError:
    return FlowError(
        f"A sifter has invalid {what}",
        code="SIFTER_INVALID",
        got=got,
        why="It would drop rows that should pass",
        do=do,
    )


def foreign(found: str) -> FlowError:
    """The error for bytes or JSON that do not contain a readable sifter."""
    return FlowError(
        "This is not a sifter of this version, or it is damaged",
        code="SIFTER_UNREADABLE",
        got=found,
        why="A misread sifter would drop the wrong rows",
        do="Copy it again from the directory of publish_to=…, and run the same version of Tidegate there",
    )
