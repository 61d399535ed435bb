"""Pruning: of all cuts that were grown, the at most l − 1 with the highest value at this load.

The contribution of a region to the finished sifter follows from the optimum of equation 10
(`configuration.py`): with the lowest threshold t, the fairness bound Δ and the price λ of a row (the cost
to queries of dropping one more row elsewhere), a region with the share f of the data and the worth A
contributes

    t·(λf − A) + Δ·max(0, λf − A)      where some query intersects it: threshold t, or t + Δ if cheaper
    λf                                 where none does: everything is dropped

The sum over regions is largest for one subtree of each size, and a pass from the leaves to the root finds
it exactly: the best use of j regions below a node is the best division of them between its two children.
The price and t depend on the regions, which depend on them. So, starting with the mean worth of a row, they
are set and the tree is pruned a few times, and the regions with the least loss are kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.kernels import compiled
from tidegate.sift.construct.configuration import configure
from tidegate.sift.partition.auto.growth import Grown

#: Rounds of setting price and lowest threshold; they converge after two or three.
ROUNDS = 3
#: Thresholds closer than this are equal.
SAME = 1e-9


@dataclass(frozen=True)
class Price:
    """λ, the cost of dropping one more row elsewhere, and t, the lowest threshold."""

    row: float
    lowest: float


def prune(grown: Grown, regions: int, z: float, fairness: float) -> NDArray[np.bool_]:
    """The nodes that are cut; the other reachable nodes are the regions, at most this many."""
    best, least = np.zeros(len(grown.axis), np.bool_), np.inf
    # Data and worth add up to 1, so on average a row is worth 1.
    price = Price(1.0, max(0.0, 1 - z - fairness / 2))
    for _ in range(ROUNDS):
        cut, leaves = _best_subtree(grown.children, _added(grown, price, fairness), regions)
        thresholds = configure(grown.worth[leaves], _shares(grown, leaves), grown.asked[leaves], z, fairness)
        lost = float(thresholds @ grown.worth[leaves])
        if lost < least:
            best, least = cut, lost
        price = _price(grown, leaves, thresholds, fairness)
        if price.row <= 0:
            # Dropping rows that no query contains is enough, and nothing is lost.
            break
    return best


def _shares(grown: Grown, leaves: NDArray[np.int64]) -> NDArray[np.float64]:
    """Data of the leaves, normalised to remove the rounding of sums."""
    data = np.maximum(grown.data[leaves], 0.0)
    return np.asarray(data / data.sum())


def _added(grown: Grown, price: Price, fairness: float) -> NDArray[np.float64]:
    """The contribution of each node to the sifter as a region."""
    gained = price.row * grown.data - grown.worth
    asked = price.lowest * gained + fairness * np.maximum(0.0, gained)
    return np.where(grown.asked, asked, price.row * grown.data)


def _price(
    grown: Grown, leaves: NDArray[np.int64], thresholds: NDArray[np.float64], fairness: float
) -> Price:
    """The price at which these thresholds are optimal."""
    asked = grown.asked[leaves]
    data, worth, d = grown.data[leaves][asked], grown.worth[leaves][asked], thresholds[asked]
    if not data.sum() > 0 or d.max() <= 0:
        return Price(0.0, 0.0)
    lowest = float(d.min())
    raised = (d > lowest + SAME) & (data > 0)
    at_a_wall = lowest <= SAME or lowest + fairness >= 1 - SAME
    if at_a_wall and raised.any():
        # The most expensive raised region: the next row to drop comes from it.
        return Price(float((worth[raised] / data[raised]).max()), lowest)
    return Price(float(worth.sum() / data.sum()), lowest)


def _best_subtree(
    children: NDArray[np.int32], added: NDArray[np.float64], regions: int
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """The nodes to cut, and the resulting leaves."""
    value, left = _share_out(children, added, regions)
    cut, leaves = np.zeros(len(children), np.bool_), []
    waiting = [(0, int(np.argmax(value[0])))]
    while waiting:
        node, count = waiting.pop()
        if count == 1:
            leaves.append(node)
            continue
        cut[node] = True
        waiting.append((int(children[node, 0]), int(left[node, count])))
        waiting.append((int(children[node, 1]), count - int(left[node, count])))
    return cut, np.array(leaves)


@compiled
def _share_out(
    children: NDArray[np.int32], added: NDArray[np.float64], regions: int
) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """For each node and number of regions: the largest contribution, and the regions below its cut."""
    nodes = len(children)
    value, left = np.full((nodes, regions + 1), -np.inf), np.zeros((nodes, regions + 1), np.int32)
    most = np.ones(nodes, np.int64)
    for node in range(nodes - 1, -1, -1):
        value[node, 1] = added[node]
        below, above = children[node]
        if below < 0:
            continue
        most[node] = min(regions, most[below] + most[above])
        for i in range(1, most[below] + 1):
            for j in range(1, min(most[above], regions - i) + 1):
                together = value[below, i] + value[above, j]
                if together > value[node, i + j]:
                    value[node, i + j], left[node, i + j] = together, i
    return value, left
