#!/usr/bin/env python3
"""Measures, on one core, how fast the query index is built and how many rows and pairs a second it finds.

    lab/scripts/match_speed.py [rows]      (with the Python that has Tidegate; 20,000 rows unless said)

Printed are medians of the rounds in processor time. `cells` is how many boxes a row is compared with or given
unseen; beside `hits`, the queries found, it says how much is looked at in vain, on every machine the same.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from statistics import median
from time import process_time

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tidegate.sift.index.box_rows import cells_of
from tidegate.sift.index.query_index import QueryIndex
from tidegate.sift.queries.axes import END, FIRST, Axis, places
from tidegate.sift.queries.boxes import Boxes

ROUNDS = 7
#: Pairs that a measurement may find: fewer rows are taken where queries hold thousands of them.
MOST_PAIRS = 10_000_000
Points = NDArray[np.float64]
#: Lower and upper corners of queries, and rows.
Drawn = tuple[Points, Points, Points]


def around(random: Generator, centre: Points, least: float, most: float) -> tuple[Points, Points]:
    half = random.uniform(least, most, centre.shape) / 2
    return centre - half, centre + half


def even(random: Generator, queries: int, rows: int) -> Drawn:
    return *around(random, random.random((queries, 2)), 0.005, 0.01), random.random((rows, 2))


def hot_spots(random: Generator, queries: int, rows: int) -> Drawn:
    """The paper's SKEW for queries and data alike: five normal hot spots, global and local skew 4."""
    centre, spread = random.random((5, 2)), random.uniform(0.5, 1, (5, 2)) / 16
    spot = random.integers(0, 5, queries + rows)
    points = (centre[spot] + spread[spot] * random.normal(size=(len(spot), 2))) % 1.0
    return *around(random, points[:queries], 0.005, 0.01), points[queries:]


def large(random: Generator, queries: int, rows: int) -> Drawn:
    side = random.uniform(0.5, 0.9, (queries, 2))
    low = random.random((queries, 2)) * (1 - side)
    return low, low + side, random.random((rows, 2))


def mixed(random: Generator, queries: int, rows: int) -> Drawn:
    """One query of a hundred takes a quarter of the space."""
    side = np.where(random.random((queries, 1)) < 0.01, 0.5, random.uniform(0.005, 0.01, (queries, 2)))
    low = random.random((queries, 2)) * (1 - side)
    return low, low + side, random.random((rows, 2))


def one_sided(random: Generator, queries: int, rows: int) -> Drawn:
    low = 1 - 0.01 * random.random((queries, 1))
    return low, np.full_like(low, np.inf), random.random((rows, 1))


def category(random: Generator, queries: int, rows: int) -> Drawn:
    """A range of a tenth on two axes, and one of a thousand categories."""
    low, high = around(random, random.random((queries, 3)), 0.1, 0.1)
    low[:, 2] = random.integers(0, 1000, queries)
    high[:, 2] = low[:, 2] + 1
    points = random.random((rows, 3))
    points[:, 2] = random.integers(0, 1000, rows)
    return low, high, points


def six_axes(random: Generator, queries: int, rows: int) -> Drawn:
    return *around(random, random.random((queries, 6)), 0.2, 0.4), random.random((rows, 6))


def two_of_six(random: Generator, queries: int, rows: int) -> Drawn:
    """Each query names two of six axes; on the others it is free (NaN here)."""
    low, high = around(random, random.random((queries, 6)), 0.005, 0.02)
    free = random.random((queries, 6)).argsort(axis=1)[:, :4]
    np.put_along_axis(low, free, np.nan, axis=1)
    return low, high, random.random((rows, 6))


WORKLOADS: tuple[Callable[[Generator, int, int], Drawn], ...] = (
    even,
    hot_spots,
    large,
    mixed,
    one_sided,
    category,
    six_axes,
    two_of_six,
)


def prepared(drawn: Drawn) -> tuple[Boxes, NDArray[np.int64]]:
    low, high, points = drawn
    free = np.isnan(low)
    lower, upper = (places(bound.ravel()).reshape(bound.shape) for bound in (low, high))
    lower[free], upper[free] = FIRST, END
    axes = tuple(Axis(f"c{k}") for k in range(low.shape[1]))
    boxes = Boxes(axes, lower, upper, np.arange(len(low), dtype=np.int32), len(low))
    return boxes, np.stack([places(column) for column in points.T])


def seconds(work: Callable[[], object]) -> float:
    times = []
    for _ in range(ROUNDS):
        began = process_time()
        work()
        times.append(process_time() - began)
    return median(times)


def drain(index: QueryIndex, rows: NDArray[np.int64]) -> int:
    return sum(piece.query.size for piece in index.pieces(rows))


def measure(workload: Callable[[Generator, int, int], Drawn], queries: int, rows: int) -> str:
    boxes, points = prepared(workload(np.random.default_rng(1), queries, rows))
    index = QueryIndex.of(boxes)
    few = points[:, :100].copy()
    points = points[:, : max(100, int(MOST_PAIRS / (1 + index.hits(few).mean())))].copy()
    taken = points.shape[1]
    found = drain(index, points)
    listed = sum(int(tree.size[cells_of(tree, points)].sum()) for tree in index.trees)
    building, finding = seconds(lambda: QueryIndex.of(boxes)), seconds(lambda: drain(index, points))
    size = sum(array.nbytes for tree in index.trees for array in tree)
    return (
        f"{workload.__name__:>10} {queries:>8} {building * 1e3:>9.1f} {size / 1e6:>7.1f} "
        f"{len(index.trees):>6} {listed / taken:>9.1f} {found / taken:>9.1f} "
        f"{taken / finding / 1e6:>9.3f} {found / finding / 1e6:>9.1f}"
    )


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    print("  workload  queries  build ms      MB  trees     cells      hits  M rows/s M pairs/s")
    for workload in WORKLOADS:
        for queries in (1000, 10_000, 100_000):
            print(measure(workload, queries, rows), flush=True)


if __name__ == "__main__":
    main()
