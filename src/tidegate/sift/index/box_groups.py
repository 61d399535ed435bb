"""Groups boxes that bound the same axes, each group for a tree of its own.

Queries over many columns often name only a few of them each. In a single tree every cut would duplicate the
boxes that are unbounded on its axis. So the axis on which most boxes are narrow takes all boxes that bound
it. These are grouped by the other axes in the same manner, and so are the boxes that do not bound it. Boxes
that are narrow nowhere stay together, and so do small groups: one more tree costs every row as much as
comparing a hundred boxes. Queries that all name the same columns are one group.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidegate.sift.queries.axes import END, FIRST

#: Fewer boxes than this, or than the part below of all, do not get a tree of their own.
SMALL = 128
SMALL_PART = 1 / 64
#: A box is narrow on an axis where it covers at most this part of the bounds of all boxes.
NARROW = 0.125
#: The number of steps in which an axis is measured, and the most boxes used for it.
STEPS = 64
JUDGES = 4096


def narrow_groups(low: NDArray[np.int64], high: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """The boxes of each group, ascending; low and high are (boxes, axes). There is at least one group."""
    if len(low) < 2 * SMALL:
        return [np.arange(len(low))]
    narrow = np.array([_parts(low[:, k], high[:, k]) <= NARROW for k in range(low.shape[1])])
    bounded = ((low > FIRST) | (high < END)).T
    small = max(SMALL, int(len(low) * SMALL_PART))
    return _split(np.arange(len(low)), narrow, bounded, list(range(len(narrow))), small)


def _split(
    boxes: NDArray[np.int64],
    narrow: NDArray[np.bool_],
    bounded: NDArray[np.bool_],
    axes: list[int],
    small: int,
) -> list[NDArray[np.int64]]:
    groups: list[NDArray[np.int64]] = []
    while axes and boxes.size >= 2 * small:
        best = max(axes, key=lambda k: np.count_nonzero(narrow[k, boxes]))
        if np.count_nonzero(narrow[best, boxes]) < small:
            break
        axes = [k for k in axes if k != best]
        takes = bounded[best, boxes]
        if boxes.size - np.count_nonzero(takes) >= small:
            groups += _split(boxes[takes], narrow, bounded, axes, small)
            boxes = boxes[~takes]
    return [*groups, boxes]


def _parts(low: NDArray[np.int64], high: NDArray[np.int64]) -> NDArray[np.float64]:
    """The part of an axis that each box covers, in steps that contain equally many distinct bounds."""
    every = (len(low) - 1) // JUDGES + 1
    bounds = np.unique(np.concatenate([low[::every], high[::every]]))
    steps = bounds[:: (len(bounds) - 1) // STEPS + 1]
    inside = np.searchsorted(steps, high, "left") - np.searchsorted(steps, low, "right")
    return (inside + 1) / (len(steps) + 1)
