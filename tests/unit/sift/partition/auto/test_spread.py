from __future__ import annotations

import numpy as np
import pytest

from tidegate.sift.partition.auto.spread import CLOUD, PER_ROW_MOST, neighbourhoods, spread

NOTHING_FIXED = np.zeros(2, np.bool_)


def test_a_cloud_is_as_wide_as_its_rows_lie_apart() -> None:
    random = np.random.default_rng(1)
    rows = np.concatenate((random.normal(0.2, 0.001, (500, 2)), random.normal(0.7, 0.1, (500, 2))))
    cloud = spread(rows, NOTHING_FIXED).points
    moved = np.abs(cloud - np.repeat(rows, len(cloud) // len(rows), axis=0)).mean(axis=1)
    dense, thin = moved[: len(moved) // 2], moved[len(moved) // 2 :]
    assert 0 < 50 * np.median(dense) < np.median(thin) < 0.1


def test_a_cloud_has_the_mean_and_hardly_more_than_the_deviation_of_its_rows() -> None:
    rows = np.random.default_rng(2).normal(5.0, [1.0, 0.01], (1000, 2))
    cloud = spread(rows, NOTHING_FIXED).points
    assert cloud.mean(axis=0) == pytest.approx(rows.mean(axis=0), abs=0.01)
    assert (rows.std(axis=0) < cloud.std(axis=0)).all()
    assert (cloud.std(axis=0) < 1.1 * rows.std(axis=0)).all()


def test_fixed_axes_and_equal_rows_stay_where_they_are() -> None:
    rows = np.random.default_rng(3).random((100, 2))
    rows[:, 1] = 0.25
    cloud = spread(rows, np.array([True, False])).points
    assert (cloud == np.repeat(rows, len(cloud) // 100, axis=0)).all()


@pytest.mark.parametrize(
    ("rows", "per_row"), [(1, PER_ROW_MOST), (CLOUD // 2, 2), (CLOUD - 1, 1), (3 * CLOUD, 1)]
)
def test_small_samples_become_many_points_and_large_ones_do_not_grow(rows: int, per_row: int) -> None:
    cloud = spread(np.random.default_rng(4).random((rows, 2)), NOTHING_FIXED)
    assert len(cloud.points) == rows * per_row


@pytest.mark.parametrize("unit", [0.001, 1.0, 1000.0])
def test_neighbours_do_not_depend_on_the_units_of_an_axis(unit: float) -> None:
    rows, units = np.random.default_rng(5).random((200, 2)), np.array([unit, 1.0])
    found, _ = neighbourhoods(rows * units, NOTHING_FIXED, 8)
    assert found / units == pytest.approx(neighbourhoods(rows, NOTHING_FIXED, 8)[0])
    assert (found / units).max() < 0.2


@pytest.mark.parametrize("heap", [103, 116, 127, 141])
def test_all_of_a_cloud_is_within_its_reach_and_the_reach_is_not_much_wider(heap: int) -> None:
    rows = np.random.default_rng(6).random((300, 2))
    rows[:heap] += 10.0
    cloud = spread(rows, NOTHING_FIXED)
    low, high = cloud.reach
    inside = np.all((low <= cloud.points[:, None]) & (cloud.points[:, None] <= high), axis=2)
    assert np.any(inside, axis=1).all()
    # Nothing reaches into the space between the two heaps.
    middle = (low < 7.0) & (high > 4.0)
    assert not middle.all(axis=1).any()
