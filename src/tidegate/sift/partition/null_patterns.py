"""Null patterns: rows that lack a number on the same axes share a region, which has a threshold like any
other.

Ours, not in the paper, whose rows have all coordinates. A pattern says on which axes a row has null, NaN or
+inf. Cuts at infinity, the first of the tree, send the frequent patterns of a sample to regions of their own.
Rows of any other pattern are above all cuts of their missing axes, and belong to the region that they reach
there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tidegate.sift.partition.cut_tree import CutTree
from tidegate.sift.regions import Regions


def null_patterns(sample: NDArray[np.float64], most: int) -> NDArray[np.bool_]:
    """The patterns (patterns, axes) of sample rows that lack a number, the most frequent first."""
    lacking = ~(sample < np.inf)
    found, counts = np.unique(lacking[lacking.any(axis=1)], axis=0, return_counts=True)
    return found[np.argsort(-counts, kind="stable")[:most]]


def with_null_patterns(parts: Regions, patterns: NDArray[np.bool_]) -> Regions:
    """A region for each pattern; all other rows belong to the regions of `parts`."""
    if not len(patterns):
        return parts
    tree = CutTree()
    _separate(tree, 0, np.concatenate([np.zeros((1, patterns.shape[1]), np.bool_), patterns]))
    # Rows without nulls are below every cut so far, which is region 0.
    waiting = [(0, 0)] if len(parts.axis) else []
    while waiting:
        node, region = waiting.pop()
        above = tree.cut(region, int(parts.axis[node]), float(parts.at[node]))
        children = zip(parts.children[node].tolist(), (region, above), strict=True)
        waiting.extend((child, place) for child, place in children if child >= 0)
    return replace(tree.regions(parts.domain), fitted=parts.fitted)


def _separate(tree: CutTree, region: int, patterns: NDArray[np.bool_]) -> None:
    """Cut a region until each of its patterns has one of its own."""
    differ = patterns.any(axis=0) & ~patterns.all(axis=0)
    if not differ.any():
        return
    axis = int(np.flatnonzero(differ)[0])
    lacking = patterns[:, axis]
    above = tree.cut(region, axis, np.inf)
    _separate(tree, region, patterns[~lacking])
    _separate(tree, above, patterns[lacking])
