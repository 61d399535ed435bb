"""What tasks tell of the keys of a first batch, and what a balancer makes of it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tidegate.control.first_look import ROWS_LEAST, SHARE, load_ahead
from tidegate.join.selection import mixed
from tidegate.join.within import Within
from tidegate.route.assignment import Assignment
from tidegate.route.auto.strategy import Auto
from tidegate.route.hash import partition_of
from tidegate.spark.first_look import _added_up, _counted

SECOND = 1_000_000
KEYS, ROWS, PARTITIONS, INSTANCES, REACH_SECONDS = 100_000, 60_000, 64, 8, 3


def test_keys_are_told_that_have_enough_rows_the_heaviest_first() -> None:
    rows = np.array([30, 9, 8, 7, 1])
    codes = np.repeat(np.arange(5).astype(np.uint64) << np.uint64(60), rows)
    told = _counted(codes, np.arange(rows.sum()), 16)
    assert list(told["keys"].values()) == [30, 9, 8]
    assert sum(told["partitions"]) == rows.sum()
    many = np.repeat(np.arange(2).astype(np.uint64), [10, int(2 * ROWS_LEAST / SHARE)])
    assert list(_counted(many, np.arange(many.size), 16)["keys"]) == [1]


@pytest.mark.parametrize("seed", range(4))
def test_keys_that_are_a_little_uneven_are_put_evenly_before_any_row_is_stored(seed: int) -> None:
    random = np.random.default_rng(seed)
    popular = np.arange(1, KEYS + 1, dtype=np.float64) ** -0.5
    weights: NDArray[np.float64] = popular / popular.sum()
    codes = mixed(np.arange(KEYS).astype(np.uint64), seed)
    told = []
    for _task in range(2):
        sides = [codes[random.choice(KEYS, ROWS // 2, p=weights)] for _side in range(2)]
        times = np.linspace(0, SECOND, ROWS // 2).astype(np.int64)
        told.append({str(tag): _counted(side, times, PARTITIONS) for tag, side in enumerate(sides)})
    seen = _added_up(told, {0, 1}, PARTITIONS)
    auto = Auto()
    hashed = auto.first(PARTITIONS, INSTANCES)
    load = load_ahead((seen[0], seen[1]), Within(REACH_SECONDS * SECOND, REACH_SECONDS * SECOND))
    begun = auto.begin(load, hashed)
    before, after = (imbalance(one, codes, weights) for one in (hashed, begun))
    assert after < min(before, 1.12)


def imbalance(assignment: Assignment, codes: NDArray[np.uint64], weights: NDArray[np.float64]) -> float:
    """The heaviest instance over an even share: a row takes as long as eleven pairs."""
    work = 11 * 2 * ROWS * weights + 2 * REACH_SECONDS * (ROWS * weights) ** 2
    places = np.array(assignment.table)[partition_of(codes, PARTITIONS)]
    loads = np.zeros(INSTANCES)
    for code, own in assignment.keys.items():
        key = np.flatnonzero(codes == np.uint64(code))
        loads[list(own)] += work[key] / len(own)
        work[key] = 0
    loads += np.bincount(places, work, INSTANCES)
    return float(loads.max() / loads.mean())


def test_what_keys_have_in_the_mean_adds_up_over_tasks() -> None:
    random = np.random.default_rng(5)
    # Of 10,000 keys, most of which have no row in a task.
    told = []
    for _task in range(4):
        codes = mixed(random.integers(0, 10_000, 5_000).astype(np.uint64), 1)
        told.append({"0": _counted(codes, np.arange(codes.size), PARTITIONS)})
    assert _added_up(told, {0}, PARTITIONS)[0].usual == pytest.approx(4 * 5_000 / 10_000, rel=0.05)
