"""Query consolidation: the value of the rows of each region to all queries together.

Paper: sifters, section IV-A.2 and IV-B, equations 5 to 9. The share of a query's rows that lie in a region
is estimated from the region's frequency f and the part of its volume that the query covers, as if rows were
spread evenly within a region:

    data(q, S) = f(S) · |S ∩ q| / |S|             rows of q in S, as a share of all rows
    C(q, S)    = data(q, S) / Σ_S data(q, S)      contribution of S to the completeness of q without drops
    A(S)       = Σ_q α·w·C(q, S)                  region QoS
    B          = Σ_q w·(1 − α)                    the QoS that remains even if nothing passes
    V*         = B + Σ_S (1 − d(S))·A(S)          the overall QoS under drop thresholds d (equation 9)

Several boxes of one query share its denominator. One pass over the queries suffices, and each query visits
only the regions that it intersects (`covering.py`).

Rows are not spread evenly: a query that crosses a cut may have its rows on one side of it. Where a sample
is given, its rows decide, and the estimate above counts as one more row:

    C(q, S)    = (sample rows of q in S + C by volume) / (sample rows of q + 1)

A query without sample rows, as most small ones are, is thus treated as in the paper; without a sample all
are.

Where else the paper is open, or we differ:

- A has no factor (1 − d): equation 5 carries it, but 9 applies it.
- A query without data (no row in any of its regions, or all of it outside of the domain) is complete whatever
  is dropped, as in the paper's experiments: all of its weight is in B. It still makes regions non-empty,
  which costs nothing: such a region has no rows, so any fair threshold will do.
- Where regions are cut at infinity (`partition/null_patterns.py`), the axis gets one more cell, as wide as
  the domain, which all boxes cover that accept a null. NaN counts as null.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import FlowError
from tidegate.kernels import compiled
from tidegate.sift.construct.covering import Bounds, Tree, clip, covered, meet
from tidegate.sift.placing import region_of
from tidegate.sift.queries.axes import NULL, places
from tidegate.sift.queries.boxes import Boxes
from tidegate.sift.regions import Domain, Regions

#: Tolerance of the sum of weights.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Consolidated:
    """The queries consolidated by region: the input of equation 9."""

    #: A, per region.
    region_qos: NDArray[np.float64]
    #: B.
    constant: float
    #: Which regions some query intersects.
    nonempty: NDArray[np.bool_]
    #: The share of all rows that each query contains, by its sample rows if there are any, else by volume.
    #: Zero: the query has no data.
    query_shares: NDArray[np.float64]

    def overall_qos(self, thresholds: NDArray[np.float64]) -> float:
        """V* under these drop thresholds: equation 9."""
        return float(self.constant + (1 - thresholds) @ self.region_qos)


def consolidate(
    regions: Regions,
    frequencies: NDArray[np.float64],
    boxes: Boxes,
    weights: NDArray[np.float64],
    alphas: NDArray[np.float64],
    sample: NDArray[np.float64] | None = None,
) -> Consolidated:
    """Region QoS A and constant B; weights and alphas are those of the queries, and weights add up to 1.

    With a sample, coordinates (rows, axes), its rows locate those of a query; without one, volumes do.
    """
    _check(boxes, weights, alphas)
    gain = alphas * weights
    rows = np.empty((0, len(boxes.axes))) if sample is None else sample
    order, at = by_first_axis(rows)
    space, extents = _with_null_cells(regions, boxes)
    region_qos, nonempty, query_shares = _consolidate(
        (space.axis, space.at, space.children),
        space.bounds,
        (space.domain.low, space.domain.high),
        frequencies,
        (at, region_of(regions, rows)[order], 1 / max(1, len(rows))),
        extents,
        (boxes.low, boxes.high),
        np.argsort(boxes.owner, kind="stable"),
        np.cumsum(np.bincount(boxes.owner, minlength=boxes.queries)),
        gain,
    )
    constant = weights.sum() - gain[query_shares > 0].sum()
    return Consolidated(region_qos, float(constant), nonempty, query_shares)


def _with_null_cells(regions: Regions, boxes: Boxes) -> tuple[Regions, Bounds]:
    """The regions with finite cuts only, and the boxes in that space; see the module docstring."""
    endless = np.isinf(regions.at)
    if not endless.any():
        return regions, boxes.extents
    low, high = regions.domain.low, regions.domain.high.copy()
    axes = np.unique(regions.axis[endless])
    edge = np.nextafter(high, np.inf)
    high[axes] = edge[axes] + (high - low)[axes]
    space = Regions(
        Domain(low, high), regions.axis, np.where(endless, edge[regions.axis], regions.at), regions.children
    )
    begin, end = (side.copy() for side in boxes.extents)
    accepts = (boxes.low <= NULL) & (boxes.high > NULL)
    begin[:, axes] = np.minimum(begin, edge)[:, axes]
    end[:, axes] = np.where(accepts, high, np.minimum(end, edge))[:, axes]
    return space, (begin, end)


def _check(boxes: Boxes, weights: NDArray[np.float64], alphas: NDArray[np.float64]) -> None:
    if not len(weights) == len(alphas) == boxes.queries:
        raise FlowError(
            "Weights, sensitivities and queries differ in number",
            code="INTERNAL_ARRAYS_INCONSISTENT",
            got=f"{boxes.queries} queries, {len(weights)} weights, {len(alphas)} sensitivities",
        )
    if boxes.queries and not ((weights >= 0).all() and abs(weights.sum() - 1) <= ROUNDING):
        raise FlowError(
            "The weights of queries must be zero or more and sum to 1",
            code="INTERNAL_ARRAYS_INCONSISTENT",
            got=f"weights from {weights.min()} that sum to {weights.sum()}",
        )
    wrong = ~((alphas >= 0) & (alphas < np.inf))
    if wrong.any():
        raise FlowError(
            "The loss_sensitivity of a query must be a finite number of at least 0",
            code="QUERY_SENSITIVITY_RANGE",
            got=alphas[wrong][0],
            do="Give for example loss_sensitivity=1.0: quality falls as fast as completeness",
        )


@compiled
def _consolidate(
    tree: Tree,
    bounds: Bounds,
    walls: Bounds,
    frequencies: NDArray[np.float64],
    sample: tuple[NDArray[np.int64], NDArray[np.int32], float],
    extents: Bounds,
    ranges: tuple[NDArray[np.int64], NDArray[np.int64]],
    order: NDArray[np.int64],
    ends: NDArray[np.int64],
    gain: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.float64]]:
    """Region QoS, non-empty regions, query shares; the boxes of query q are order[ends[q - 1] : ends[q]].

    The sample is the places of its rows, sorted by the first axis, their regions, and the share of a row.
    """
    count, n, (at, region_at, row_share) = len(frequencies), len(walls[0]), sample
    region_qos, nonempty, query_shares = np.zeros(count), np.zeros(count, np.bool_), np.zeros(len(ends))
    low, high, touched, waiting = (
        np.empty(n),
        np.empty(n),
        np.empty(count, np.int32),
        np.empty(count, np.int32),
    )
    rows = np.empty(len(region_at), np.int64)
    # Of the current query: its data by volume and its sample rows in each region, and the visited regions.
    data, seen = np.zeros(count), np.zeros(count)
    known, been = np.zeros(count, np.bool_), np.empty(count, np.int32)
    begin = 0
    for query in range(len(ends)):
        places, share, found = 0, 0.0, 0
        for box in order[begin : ends[query]]:
            steps = meet(tree, low, high, touched, waiting) if clip(extents, box, walls, low, high) else 0
            for step in range(steps):
                region = touched[step]
                part = covered(low, high, bounds, region, walls)
                if part > 0:
                    places = _visit(region, known, been, places)
                    data[region] += frequencies[region] * part
                    share += frequencies[region] * part
            steps = held(at, ranges[0], ranges[1], box, rows)
            found += steps
            for step in range(steps):
                region = region_at[rows[step]]
                places = _visit(region, known, been, places)
                seen[region] += 1
        begin = ends[query]
        query_shares[query] = found * row_share if found else share
        by_volume = 1 if share > 0 else 0
        for place in range(places):
            region = been[place]
            if by_volume:
                seen[region] += data[region] / share
            if found + by_volume:
                region_qos[region] += gain[query] * seen[region] / (found + by_volume)
            nonempty[region] = True
            data[region], seen[region], known[region] = 0.0, 0.0, False
    return region_qos, nonempty, query_shares


@compiled
def _visit(region: int, known: NDArray[np.bool_], been: NDArray[np.int32], places: int) -> int:
    """Record a region once; return the number of recorded regions."""
    if known[region]:
        return places
    known[region] = True
    been[places] = region
    return places + 1


def by_first_axis(rows: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The order of rows, coordinates (rows, axes), by their first axis, and their places (axes, rows).

    NaN stands for null, which no comparison accepts.
    """
    order = np.argsort(rows[:, 0])
    return order, np.ascontiguousarray(places(rows[order], np.isnan(rows[order])).T)


@compiled
def held(
    at: NDArray[np.int64],
    low: NDArray[np.int64],
    high: NDArray[np.int64],
    box: int,
    found: NDArray[np.int64],
) -> int:
    """Write the rows inside the box to `found` and return their number; `at` is sorted by its first axis.

    For the few rows of a sample. A stream uses the query index, which finds the boxes that contain a row.
    """
    begin, end = np.searchsorted(at[0], low[box, 0]), np.searchsorted(at[0], high[box, 0])
    count = 0
    for row in range(begin, end):
        inside = True
        for k in range(1, len(at)):
            inside &= low[box, k] <= at[k, row] < high[box, k]
        if inside:
            found[count] = row
            count += 1
    return count
