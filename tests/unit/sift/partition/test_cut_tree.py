from __future__ import annotations

import numpy as np

from tidegate.sift.partition.cut_tree import CutTree
from tidegate.sift.regions import Domain

SQUARE = Domain(np.zeros(2), np.full(2, 8.0))


def test_a_tree_without_cuts_is_one_region() -> None:
    assert CutTree().regions(SQUARE).count == 1


def test_a_cut_keeps_the_number_below_and_gives_a_new_one_above() -> None:
    tree = CutTree()
    assert tree.cut(0, 0, 4.0) == 1
    assert tree.cut(0, 1, 2.0) == 2
    assert tree.cut(1, 1, 6.0) == 3
    low, high = tree.regions(SQUARE).bounds
    assert low.tolist() == [[0, 0], [4, 0], [0, 2], [4, 6]]
    assert high.tolist() == [[4, 2], [8, 6], [4, 8], [8, 8]]


def test_slabs_come_in_ascending_order_and_make_a_shallow_tree() -> None:
    tree = CutTree()
    slabs = tree.slabs(0, 1, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])
    regions = tree.regions(SQUARE)
    assert regions.bounds[0][slabs, 1].tolist() == [0, 1, 2, 3, 4, 5, 6, 7]
    depth = {0: 1}
    for node, children in enumerate(regions.children.tolist()):
        depth |= {child: depth[node] + 1 for child in children if child >= 0}
    assert max(depth.values()) == 3
