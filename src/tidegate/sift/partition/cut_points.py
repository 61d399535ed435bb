"""Where space may be cut: between two rows of a sample that lie apart, and inside the domain.

All partitioners keep to the same rules, whatever they aim at:

- A cut between two neighbouring values lies halfway; on whole-number and category axes it is rounded up to a
  whole number. Rows with the same value are never parted, so that ties can make unequal parts.
- Rows outside of the domain count as rows at its border: `regions.py` gives them to the region there. So
  every cut is strictly inside the domain, and every region has a volume.
- Rows with a coordinate that is infinite or no number say nothing about where to cut, and are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidegate.errors import FlowError, explain
from tidegate.sift.queries.boxes import Boxes
from tidegate.sift.regions import Domain

if TYPE_CHECKING:
    from numpy.typing import NDArray


def check(domain: Domain, sample: NDArray[np.float64], boxes: Boxes, regions: int) -> None:
    """Refuse what no partitioner can use."""
    if regions < 1:
        raise FlowError(
            explain("A sifter needs at least one region", got=regions, do="Ask for 1 region or more")
        )
    if sample.ndim != 2 or not sample.shape[1] == len(domain.low) == len(boxes.axes):
        raise FlowError(
            explain(
                "Domain, sample and queries do not have the same axes",
                got=f"{len(domain.low)}, a sample of shape {sample.shape}, and {len(boxes.axes)}",
                do="Give the sample as (rows, axes), with the axes of the queries in their order",
            )
        )


def whole_axes(boxes: Boxes) -> NDArray[np.bool_]:
    """Which axes have whole numbers for cuts."""
    return np.array([axis.kind != "number" for axis in boxes.axes], np.bool_)


def inside(domain: Domain, whole: NDArray[np.bool_], rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rows as points that lie in the domain; on whole axes they are the numbers of cells."""
    last = np.where(whole, np.ceil(domain.high) - 1, np.nextafter(domain.high, domain.low))
    points = np.minimum(np.maximum(rows, domain.low), last)
    return np.where(whole, np.floor(points), points)


def between(below: float, above: float, whole: bool) -> float:
    """The cut between two values: greater than the one below, at most the one above."""
    middle = below + (above - below) / 2
    if whole:
        return float(np.ceil(middle))
    # Between neighbouring floats there is no middle.
    return float(middle if middle > below else above)


def gaps(ordered: NDArray[np.float64]) -> NDArray[np.int64]:
    """Where ascending values may be parted: g means between values g − 1 and g."""
    return np.flatnonzero(ordered[1:] > ordered[:-1]) + 1


def nearest(allowed: NDArray[np.int64], wanted: NDArray[np.float64]) -> NDArray[np.int64]:
    """The gap nearest to each wanted one, the lower of two; several may want the same, which comes once."""
    if not allowed.size:
        return allowed
    behind = np.minimum(np.searchsorted(allowed, wanted), allowed.size - 1)
    before = np.maximum(behind - 1, 0)
    lower = wanted - allowed[before] <= allowed[behind] - wanted
    return np.unique(allowed[np.where(lower, before, behind)])
