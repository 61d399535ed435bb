"""Pruning against trying all subtrees: what is kept adds most, for every number of regions."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tidegate.sift.partition.auto.pruning import _best_subtree


def a_tree(random: np.random.Generator, leaves: int) -> np.ndarray:
    """Children of a random tree, parents before children."""
    children = np.full((2 * leaves - 1, 2), -1, np.int32)
    open_nodes = [0]
    for count in range(1, 2 * leaves - 1, 2):
        node = open_nodes.pop(int(random.integers(len(open_nodes))))
        children[node] = count, count + 1
        open_nodes += [count, count + 1]
    return children


def subtrees(children: np.ndarray, node: int) -> list[list[int]]:
    """The leaves of every way to cut below a node."""
    ways = [[node]]
    if children[node, 0] >= 0:
        below, above = (subtrees(children, int(child)) for child in children[node])
        ways += [left + right for left, right in product(below, above)]
    return ways


@pytest.mark.parametrize("seed", range(20))
def test_no_subtree_of_as_many_regions_adds_more(seed: int) -> None:
    random = np.random.default_rng(seed)
    children = a_tree(random, 8)
    added = random.normal(size=len(children))
    ways = subtrees(children, 0)
    for regions in range(1, 9):
        cut, leaves = _best_subtree(children, added, regions)
        assert len(leaves) == cut.sum() + 1 <= regions
        assert sorted(leaves.tolist()) in [sorted(way) for way in ways]
        best = max(added[way].sum() for way in ways if len(way) <= regions)
        assert added[leaves].sum() == pytest.approx(best)
