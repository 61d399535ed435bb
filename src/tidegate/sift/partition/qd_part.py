"""QDPart (`flexp`): cuts where both the positions of rows and their hits differ.

Paper: sifters, section V-B, equation 11; the frame is `flexible.py`. The hits of a row are the queries that
it satisfies. The diversity of a part along an axis is

    H = SSE of the hits of its rows × SSE of their positions on this axis        (SSE: sum of squared errors)

The *roof* is H of the part, the *floor* the least sum of H over the two sides of a cut between consecutive
rows. Roof minus floor is the benefit; the best axis counts. Sums of squares are updated row by row, so that
a forward and a backward scan of the sorted rows give all floors.

What the paper leaves open:

- Positions are shares of the domain's width: otherwise the unit of a column would choose the axis.
- Rows at the same position are not separated.
- Among equal floors the most even cut is taken, among equal benefits the axis with the larger spread. So
  where hits do not differ and every benefit is zero, the fullest part is cut near its middle instead of at
  its edge.

Guarantee: benefits are never negative, since (a + b)(c + d) >= ac + bd. As many regions as requested, as
long as positions differ. Time: one sort per axis, then two scans per axis for every part.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import FlowError
from tidegate.kernels import compiled
from tidegate.sift.partition.cut_tree import between, check, inside, whole_axes
from tidegate.sift.partition.flexible import Division, FlexiblePart, flexible
from tidegate.sift.queries.boxes import Boxes
from tidegate.sift.regions import Domain, Regions


def qd_part(
    domain: Domain, sample: NDArray[np.float64], hits: NDArray[np.int64], boxes: Boxes, regions: int
) -> Regions:
    """This many regions, each with rows of similar positions and hits; queries matter by their hits only."""
    check(domain, sample, boxes, regions)
    if len(hits) != len(sample):
        raise FlowError(
            "Every sample row needs one hit count",
            code="INTERNAL_ARRAYS_INCONSISTENT",
            got=f"{len(sample)} rows and {len(hits)} hit counts",
        )
    whole = whole_axes(boxes)
    finite = np.isfinite(sample).all(axis=1)
    points = inside(domain, whole, sample[finite])
    scaled = (points - domain.low) / (domain.high - domain.low)
    hits_seen = hits[finite].astype(np.float64)

    def divide(part: FlexiblePart) -> Division | None:
        axis, end, benefit = best_division(scaled, hits_seen, part.orders)
        if axis < 0:
            return None
        below, above = points[part.orders[axis, end - 1 : end + 1], axis]
        return Division(benefit, axis, between(below, above, bool(whole[axis])))

    return flexible(domain, points, divide, regions)


@compiled
def best_division(
    positions: NDArray[np.float64], hits: NDArray[np.float64], orders: NDArray[np.int64]
) -> tuple[int, int, float]:
    """Axis, number of rows below the cut, benefit (equation 11); axis −1 where all positions are equal."""
    axes, rows = orders.shape
    diversity_below = np.empty(rows)
    best_axis, best_end, best_benefit, best_spread = -1, 0, 0.0, 0.0
    for k in range(axes):
        spread = _scan_below(positions, hits, orders, k, diversity_below)
        end, floor = _scan_above(positions, hits, orders, k, diversity_below)
        if end == 0:
            continue
        benefit = diversity_below[rows - 1] - floor
        better = benefit > best_benefit or (benefit == best_benefit and spread > best_spread)
        if best_axis < 0 or better:
            best_axis, best_end, best_benefit, best_spread = k, end, benefit, spread
    return best_axis, best_end, best_benefit


@compiled
def _scan_below(
    positions: NDArray[np.float64],
    hits: NDArray[np.float64],
    orders: NDArray[np.int64],
    k: int,
    diversity: NDArray[np.float64],
) -> float:
    """Forward: set `diversity[j]` to H of rows 0 … j along axis k; return the SSE of all positions."""
    mean_hits = mean_position = sse_hits = sse_position = 0.0
    for j in range(orders.shape[1]):
        row = orders[k, j]
        off_hits, off_position = hits[row] - mean_hits, positions[row, k] - mean_position
        # Welford's update: exactly zero for equal values, and no subtraction of large sums.
        mean_hits += off_hits / (j + 1)
        mean_position += off_position / (j + 1)
        sse_hits += off_hits * (hits[row] - mean_hits)
        sse_position += off_position * (positions[row, k] - mean_position)
        diversity[j] = sse_hits * sse_position
    return sse_position


@compiled
def _scan_above(
    positions: NDArray[np.float64],
    hits: NDArray[np.float64],
    orders: NDArray[np.int64],
    k: int,
    diversity_below: NDArray[np.float64],
) -> tuple[int, float]:
    """Backward: the number of rows below the best cut, and its floor; 0 where no cut is possible."""
    rows = orders.shape[1]
    mean_hits = mean_position = sse_hits = sse_position = 0.0
    best, least = 0, np.inf
    for j in range(rows - 1, 0, -1):
        row = orders[k, j]
        count = rows - j
        off_hits, off_position = hits[row] - mean_hits, positions[row, k] - mean_position
        mean_hits += off_hits / count
        mean_position += off_position / count
        sse_hits += off_hits * (hits[row] - mean_hits)
        sse_position += off_position * (positions[row, k] - mean_position)
        if positions[orders[k, j - 1], k] == positions[row, k]:
            continue
        floor = diversity_below[j - 1] + sse_hits * sse_position
        if floor < least or (floor == least and abs(2 * j - rows) < abs(2 * best - rows)):
            best, least = j, floor
    return best, least
