"""QDPart against equation 11 of the sifters paper as it stands: every cut of every axis by itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tidegate.sift.partition.qd_part import best_division, qd_part
from tidegate.sift.queries.axes import Axis
from tidegate.sift.queries.boxes import Boxes
from tidegate.sift.regions import Domain

UNIT = Domain(np.zeros(2), np.ones(2))
NO_QUERIES = Boxes(
    (Axis("x"), Axis("y")), np.zeros((0, 2), np.int64), np.zeros((0, 2), np.int64), np.zeros(0, np.int32), 0
)


def _diversity(points: NDArray[np.float64], hits: NDArray[np.float64], axis: int) -> float:
    """H(S', i): SSE of hits times SSE of positions."""
    return float(np.sum((hits - hits.mean()) ** 2) * np.sum((points[:, axis] - points[:, axis].mean()) ** 2))


def _benefits(points: NDArray[np.float64], hits: NDArray[np.float64]) -> dict[tuple[int, int], float]:
    """Roof less sum of the two sides, for every axis and every number of rows below a cut."""
    found = {}
    for axis in range(points.shape[1]):
        order = np.argsort(points[:, axis], kind="stable")
        p, h = points[order], hits[order]
        for j in range(1, len(p)):
            if p[j - 1, axis] < p[j, axis]:
                sides = _diversity(p[:j], h[:j], axis) + _diversity(p[j:], h[j:], axis)
                found[axis, j] = _diversity(p, h, axis) - sides
    return found


def _plain_qd_part(points: NDArray[np.float64], hits: NDArray[np.float64], regions: int) -> list[set[int]]:
    """The rows of each region."""
    parts = [np.arange(len(points))]
    while len(parts) < regions:
        best = [max(_benefits(points[rows], hits[rows]).values(), default=-1.0) for rows in parts]
        rows = parts.pop(int(np.argmax(best)))
        benefits = _benefits(points[rows], hits[rows])
        axis, j = max(benefits, key=lambda cut: benefits[cut])
        order = rows[np.argsort(points[rows, axis])]
        parts += [order[:j], order[j:]]
    return [set(rows.tolist()) for rows in parts]


@given(
    rows=st.integers(0, 25),
    steps=st.sampled_from([2, 5, 10_000]),
    most_hits=st.sampled_from([0, 1, 9, 1000]),
    seed=st.integers(0, 2**32),
)
def test_the_best_division_has_the_highest_benefit_there_is(
    rows: int, steps: int, most_hits: int, seed: int
) -> None:
    random = np.random.default_rng(seed)
    points = random.integers(0, steps, (rows, 3)) / steps
    hits = random.integers(0, most_hits + 1, rows).astype(np.float64)
    axis, end, benefit = best_division(points, hits, np.argsort(points.T, axis=1, kind="stable"))
    naive = _benefits(points, hits)
    if not naive:
        assert axis == -1
        return
    # Sums in another order round otherwise; the roof is what they are rounded against.
    rounding = 1e-12 * max(_diversity(points, hits, k) for k in range(3))
    assert benefit == pytest.approx(max(naive.values()), abs=rounding)
    assert naive[axis, end] == pytest.approx(max(naive.values()), abs=rounding)


@pytest.mark.parametrize("seed", range(10))
def test_the_regions_hold_the_same_rows_as_those_of_the_plain_version(seed: int) -> None:
    random = np.random.default_rng(seed)
    # Rows and hits without ties, so that there is one best cut only.
    points = random.beta(0.5, 2.0, (40, 2))
    hits = random.permutation(1000)[:40]
    regions = qd_part(UNIT, points, hits, NO_QUERIES, 10)
    low, high = regions.bounds
    found = [
        set(np.flatnonzero(((lower <= points) & (points < upper)).all(axis=1)).tolist())
        for lower, upper in zip(low, high, strict=True)
    ]
    assert sorted(map(sorted, found)) == sorted(
        map(sorted, _plain_qd_part(points, hits.astype(np.float64), 10))
    )
