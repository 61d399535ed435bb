"""Consolidation against its equations, written out for every query and every region."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tidegate.sift.construct.consolidation import consolidate
from tidegate.sift.placing import region_of
from tidegate.sift.queries.axes import Axis, places
from tidegate.sift.queries.boxes import Boxes
from tidegate.sift.regions import Domain, Regions


def random_regions(random: np.random.Generator, count: int, n: int) -> Regions:
    """Cuts anywhere in and around the domain [0, 1]^n, so that some regions have no volume."""
    axis, at = random.integers(0, n, count - 1), np.round(random.uniform(-0.2, 1.2, count - 1), 1)
    children = np.zeros((count - 1, 2), np.int32)
    open_ends = [(0, 0), (0, 1)]
    for node in range(1, count - 1):
        parent, side = open_ends.pop(random.integers(len(open_ends)))
        children[parent, side] = node
        open_ends += [(node, 0), (node, 1)]
    for region, (parent, side) in enumerate(open_ends[: count if count > 1 else 0]):
        children[parent, side] = ~region
    return Regions(Domain(np.zeros(n), np.ones(n)), axis.astype(np.int32), at, children)


def random_boxes(random: np.random.Generator, count: int, queries: int, n: int) -> Boxes:
    """Boxes with sides on the grid of cuts and off it, reaching out of the domain, some wholly outside."""
    ends = np.sort(np.round(random.uniform(-0.5, 1.5, (2, count, n)), random.choice([1, 3])), axis=0)
    low = np.where(ends[0] == 1, 1.1, ends[0])  # what only touches the upper wall has points there, no volume
    high = np.maximum(ends[1], low + 0.1)
    axes = tuple(Axis(f"x{k}") for k in range(n))
    owner = random.integers(0, queries, count).astype(np.int32)
    return Boxes(axes, places(low).reshape(-1, n), places(high).reshape(-1, n), owner, queries)


def data_matrix(regions: Regions, f: NDArray[np.float64], boxes: Boxes) -> NDArray[np.float64]:
    """Rows of each query in each region, as a share of all: f(S) · |S ∩ q| / |S|."""
    data = np.zeros((boxes.queries, regions.count))
    for lower, upper, query in zip(*boxes.extents, boxes.owner, strict=True):
        for region, (low, high) in enumerate(zip(*regions.bounds, strict=True)):
            overlap = np.minimum(upper, high) - np.maximum(lower, low)
            if (overlap > 0).all():
                data[query, region] += f[region] * np.prod(overlap / (high - low))
    return data


def row_matrix(regions: Regions, rows: NDArray[np.float64], boxes: Boxes) -> NDArray[np.float64]:
    """Rows of each query in each region."""
    found, at = np.zeros((boxes.queries, regions.count)), places(rows)
    for low, high, query in zip(boxes.low, boxes.high, boxes.owner, strict=True):
        inside = ((low <= at) & (at < high)).all(axis=1)
        found[query] += np.bincount(region_of(regions, rows[inside]), minlength=regions.count)
    return found


@given(st.integers(0, 2**32 - 1))
def test_a_query_is_worth_to_a_region_what_the_region_holds_of_its_rows(seed: int) -> None:
    random = np.random.default_rng(seed)
    n, queries = random.integers(1, 4), int(random.integers(1, 6))
    regions = random_regions(random, int(random.integers(1, 9)), int(n))
    boxes = random_boxes(random, int(random.integers(0, 12)), queries, int(n))
    f = random.random(regions.count) * (random.random(regions.count) < 0.7)
    weights, alphas = random.dirichlet(np.ones(queries)), random.uniform(0, 2, queries)

    rows = np.round(random.uniform(-0.5, 1.5, (int(random.choice([0, 30])), int(n))), 1)

    found = consolidate(regions, f, boxes, weights, alphas, rows)

    data, told = data_matrix(regions, f, boxes), row_matrix(regions, rows, boxes)
    by_volume, by_rows = data.sum(axis=1), told.sum(axis=1)
    np.testing.assert_allclose(
        found.query_shares,
        np.where(by_rows > 0, by_rows / max(1, len(rows)), by_volume),
        rtol=1e-9,
        atol=1e-15,
    )
    told[by_volume > 0] += (data / np.where(by_volume > 0, by_volume, 1)[:, None])[by_volume > 0]
    all_told = told.sum(axis=1)
    completeness = told / np.where(all_told > 0, all_told, 1)[:, None]
    np.testing.assert_allclose(found.region_qos, (alphas * weights) @ completeness, rtol=1e-9, atol=1e-12)
    met = (told > 0) | (data_matrix(regions, np.ones(regions.count), boxes) > 0)
    assert found.nonempty.tolist() == met.any(axis=0).tolist()

    thresholds = random.random(regions.count)
    kept = np.where(all_told > 0, completeness @ (1 - thresholds), 1.0)
    assert abs(found.overall_qos(thresholds) - weights @ (alphas * kept + 1 - alphas)) <= 1e-12
