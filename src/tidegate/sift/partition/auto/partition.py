"""`auto`: regions in which the distributions of data and queries differ as much as possible.

Paper: sifters, section VI-B: "none of the partitioning schemes we included in our study consistently perform
the best under all workloads. We leave it as a future work to come up with a partitioning algorithm that might
achieve this." This is one.

The paper's partitioners divide the space so that something (volume, rows, queries, hits) is even or
similar, without regard to the thresholds. Here the overall QoS of the configured sifter (equation 10) is
itself maximised. For any regions, the best thresholds are high where a row is worth less than its price and
low elsewhere (`configuration.py`). So regions are good if they separate data of low worth from data of high
worth, and both from space that no query intersects, where everything may be dropped regardless of fairness.
A tree is grown along the difference of the two distributions, data and worth, to several times the needed
size, and pruned exactly to the l regions that keep most QoS at this throttler z and fairness bound Δ.
QDPart comes nearest to it, but hits count queries without their share of data, and most sample rows have
none.

Worth is known from the boxes themselves, not only from sample rows inside them. Data is known from the
sample alone. To avoid overfitting to it, the sample is spread first (`spread.py`).

Guarantee: at most l regions; they tile the space; same input, same regions. By the sample, a sifter of
these regions is no worse than random dropping (equal thresholds are always possible), and no worse than
with any other l regions of the tree that was grown, at the prices it was pruned for. Fresh data differs
from the sample by sampling error.

A sifter built for another z or Δ than it is used with loses a little QoS, but is still a valid partitioning.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tidegate.sift.construct.covering import Bounds
from tidegate.sift.partition.auto.growth import Grown, Points, grow
from tidegate.sift.partition.auto.pruning import prune
from tidegate.sift.partition.auto.spread import spread
from tidegate.sift.partition.auto.worth import worth_points
from tidegate.sift.partition.cut_tree import CutTree, check, inside, whole_axes
from tidegate.sift.queries.boxes import Boxes
from tidegate.sift.regions import Domain, Regions

#: Ratio of grown to kept regions. More than this never helped.
OVERGROWN = 8
#: Least sample rows of a region, where the sample has enough for all regions. They give its share to about a
#: quarter; with fewer, the search would find regions that lack sample rows by chance.
ROWS_LEAST = 15


def auto_partition(
    domain: Domain,
    sample: NDArray[np.float64],
    hits: NDArray[np.int64],
    boxes: Boxes,
    regions: int,
    *,
    gain: NDArray[np.float64] | None = None,
    z: float = 0.5,
    fairness: float = 0.5,
) -> Regions:
    """At most this many regions. Hits are not used: boxes and gains determine the worth of rows.

    `gain`: weight times alpha of each query; None: all count equally. `z` and `fairness` are those of the
    configuration.
    """
    check(domain, sample, boxes, regions)
    whole = whole_axes(boxes)
    rows = inside(domain, whole, sample[np.isfinite(sample).all(axis=1)])
    extents, owner = _within(domain, boxes)
    if not len(rows) or not len(owner):
        return CutTree().regions(domain)
    gain = np.ones(boxes.queries) if gain is None else gain
    points = _points(domain, rows, extents, owner, gain, boxes)
    # Small samples have fewer rows for each region, down to one.
    least = min(ROWS_LEAST, max(1.0, len(rows) / (4 * regions))) / len(rows)
    grown = grow(points, extents, (domain.low, domain.high), whole, OVERGROWN * regions, least)
    return _regions(domain, grown, prune(grown, regions, z, fairness))


def _within(domain: Domain, boxes: Boxes) -> tuple[Bounds, NDArray[np.int32]]:
    """The boxes clipped to the domain, and their owners."""
    low, high = (np.clip(bound, domain.low, domain.high) for bound in boxes.extents)
    there = (low < high).all(axis=1)
    return (low[there], high[there]), boxes.owner[there]


def _points(
    domain: Domain,
    rows: NDArray[np.float64],
    extents: Bounds,
    owner: NDArray[np.int32],
    gain: NDArray[np.float64],
    boxes: Boxes,
) -> Points:
    """Data as a cloud around the rows, worth at the queries."""
    whole, widths = whole_axes(boxes), domain.high - domain.low
    fixed = np.array([axis.kind == "category" for axis in boxes.axes], np.bool_)
    # An integer fills its cell: points are spread around the middle of the cell.
    spread_out = spread(rows + 0.5 * (whole & ~fixed), fixed)
    cloud = inside(domain, whole, spread_out.points)
    carriers, worth = worth_points(rows, extents, owner, gain, widths, spread_out.reach)
    total = worth.sum()
    return Points(
        np.concatenate((cloud, inside(domain, whole, carriers))),
        np.concatenate((np.full(len(cloud), 1 / len(cloud)), np.zeros(len(worth)))),
        np.concatenate((np.zeros(len(cloud)), worth / total if total > 0 else worth)),
    )


def _regions(domain: Domain, grown: Grown, cut: NDArray[np.bool_]) -> Regions:
    tree = CutTree()
    waiting = [(0, 0)]
    while waiting:
        node, region = waiting.pop()
        if cut[node]:
            above = tree.cut(region, int(grown.axis[node]), float(grown.at[node]))
            waiting.append((int(grown.children[node, 0]), region))
            waiting.append((int(grown.children[node, 1]), above))
    return replace(tree.regions(domain), fitted=True)
