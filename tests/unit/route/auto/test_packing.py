"""Repacking: relief where it is needed, few rows moved, nothing lost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tidegate.route.auto.packing import PackingItems, repack


def loads_of(items: PackingItems, places: NDArray[np.int64], instances: int) -> NDArray[np.float64]:
    """Loads from nothing but places: keys that left their partition no longer weigh there."""
    own = items.home < 0
    left = ~own & (places != items.at)
    cost = items.cost.copy()
    np.subtract.at(cost, items.home[left], items.cost[left])
    counted = own | left
    return np.bincount(places[counted], cost[counted], instances).astype(np.float64)


@st.composite
def packings(draw: st.DrawFn) -> tuple[PackingItems, NDArray[np.float64]]:
    instances, partitions = draw(st.integers(1, 6)), draw(st.integers(1, 30))
    random = np.random.default_rng(draw(st.integers(0, 10_000)))
    cost = random.pareto(1.2, partitions)
    at = random.integers(-1 if draw(st.booleans()) else 0, instances, partitions)
    keys = np.flatnonzero((random.random(partitions) < 0.3) & (at >= 0))
    items = PackingItems(
        cost=np.concatenate([cost, cost[keys] * random.random(keys.size)]),
        rows=random.integers(0, 100, partitions + keys.size).astype(np.float64),
        at=np.concatenate([at, at[keys]]),
        home=np.concatenate([np.full(partitions, -1), keys]),
    )
    housed = at >= 0
    return items, np.bincount(at[housed], cost[housed], instances).astype(np.float64)


@given(packings(), st.floats(1.0, 1.3))
@settings(max_examples=60)
def test_nothing_is_lost_and_the_heaviest_never_gets_heavier(
    packing: tuple[PackingItems, NDArray[np.float64]], above: float
) -> None:
    items, loads = packing
    places, after = repack(items, loads, above * loads.mean())
    assert ((places >= 0) & (places < loads.size)).all()
    assert after == pytest.approx(loads_of(items, places, loads.size))
    if (items.at >= 0).all():
        assert after.max() <= loads.max() * (1 + 1e-9)
        assert after.sum() == pytest.approx(loads.sum())


def test_below_the_cap_nothing_moves() -> None:
    items = PackingItems(np.array([1.0, 1.1]), np.ones(2), np.array([0, 1]), np.full(2, -1))
    places, _ = repack(items, np.array([1.0, 1.1]), 1.2)
    assert places.tolist() == [0, 1]


def test_what_costs_most_per_row_leaves_first_and_only_as_much_as_needed() -> None:
    cost, rows = np.array([4.0, 4.0, 4.0, 4.0]), np.array([100.0, 1.0, 50.0, 2.0])
    items = PackingItems(cost, rows, np.zeros(4, np.int64), np.full(4, -1))
    places, after = repack(items, np.array([16.0, 4.0, 4.0]), 8.5)
    assert places.tolist() == [0, 1, 0, 2]
    assert after.tolist() == [8, 8, 8]


def test_a_heavy_key_is_moved_without_its_partition() -> None:
    items = PackingItems(
        np.array([6.0, 4.0, 5.0]), np.array([900.0, 500.0, 20.0]), np.array([0, 0, 0]), np.array([-1, -1, 0])
    )
    places, after = repack(items, np.array([10.0, 0.0]), 5.5)
    assert places.tolist() == [0, 0, 1]
    assert after.tolist() == [5, 5]


def test_homeless_items_are_spread_the_heaviest_first() -> None:
    items = PackingItems(np.array([1.0, 5.0, 4.0]), np.ones(3), np.full(3, -1), np.full(3, -1))
    places, after = repack(items, np.array([0.0, 0.5]), 100.0)
    assert after.tolist() == [5, 5.5]
    assert places.tolist() == [1, 0, 1]


def test_many_uneven_partitions_are_levelled() -> None:
    random = np.random.default_rng(2)
    cost, at = random.gamma(0.5, 1.0, 512), np.repeat(np.arange(16), 32)
    loads = np.bincount(at, cost).astype(np.float64)
    _, after = repack(
        PackingItems(cost, np.full(512, 10.0), at, np.full(512, -1)), loads, 1.03 * loads.mean()
    )
    assert loads.max() > 1.25 * loads.mean()
    assert after.max() <= 1.03 * loads.mean()
