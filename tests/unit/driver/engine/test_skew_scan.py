"""What tasks tell of the keys of a first batch, and what a balancer makes of it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from tidegate.control.balance.skew_scan import load_ahead
from tidegate.driver.engine.skew_scan import _added_up
from tidegate.join.selective.selection import mixed
from tidegate.join.within import Within
from tidegate.model.times import BEGINNING_US
from tidegate.route.assignment import Assignment
from tidegate.route.auto.strategy import Auto
from tidegate.route.hash_routing import partition_of
from tidegate.route.key_counts import SideCount
from tidegate.worker.runtime.key_scan import KeyScan

SECOND = 1_000_000
KEYS, ROWS, PARTITIONS, INSTANCES, REACH_SECONDS = 100_000, 60_000, 64, 8, 3


def test_a_task_counts_the_rows_of_each_port_together() -> None:
    codes = np.repeat(np.arange(5) << 59, [30, 9, 8, 7, 1])
    tags, times = np.resize([0, 1, 2], codes.size), np.arange(codes.size)
    times[-1] = BEGINNING_US  # A row without a time.
    sent = pa.RecordBatch.from_pydict({"tag": tags, "time": times, "code": codes})
    batches = (sent.slice(at, 10) for at in range(0, codes.size, 10))
    (report,) = KeyScan(frozenset({0, 1}), PARTITIONS)(batches)
    seen = _added_up([json.loads(report.column(0)[0].as_py())], {0, 1}, PARTITIONS)
    assert sum(seen[0].partitions) == 18
    assert seen[0].span_us == (3, 48)


def counted(codes: NDArray[np.uint64], times_us: NDArray[np.int64]) -> dict[str, Any]:
    count = SideCount(PARTITIONS)
    count.add(codes, times_us)
    return count.to_json()


@pytest.mark.parametrize("seed", range(4))
def test_keys_that_are_a_little_uneven_are_put_evenly_before_any_row_is_stored(seed: int) -> None:
    random = np.random.default_rng(seed)
    popular = np.arange(1, KEYS + 1, dtype=np.float64) ** -0.5
    weights: NDArray[np.float64] = popular / popular.sum()
    codes = mixed(np.arange(KEYS).astype(np.uint64), seed)
    reports = []
    for _task in range(2):
        sides = [codes[random.choice(KEYS, ROWS // 2, p=weights)] for _side in range(2)]
        times = np.linspace(0, SECOND, ROWS // 2).astype(np.int64)
        reports.append({str(tag): counted(side, times) for tag, side in enumerate(sides)})
    seen = _added_up(reports, {0, 1}, PARTITIONS)
    auto = Auto()
    hashed = auto.first(PARTITIONS, INSTANCES)
    load = load_ahead((seen[0], seen[1]), Within(-REACH_SECONDS * SECOND, REACH_SECONDS * SECOND))
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
