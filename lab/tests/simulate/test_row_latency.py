"""Latency of a routed join, row by row: what a row is compared with, where, and what a migration costs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from tests.simulation.skewed_streams import mixed

from tidegate.route.assignment import Assignment
from tidegate.route.baselines import ContRandStrategy, HashOnly
from tidegate.route.hash_routing import partition_of
from tidegate.route.load import Load
from tidegate.route.ls_stream.strategy import LsStreamStrategy
from tidegate.route.strategy import Memory, Strategy
from tidegate_lab.simulate.balance.instance_speed import Speed
from tidegate_lab.simulate.balance.join_costs import ComparedWithInstance, ComparedWithPartition, JoinCosts
from tidegate_lab.simulate.balance.key_counts import Arrivals, count_arrivals
from tidegate_lab.simulate.balance.recorded import Recorded
from tidegate_lab.simulate.balance.row_latency import row_latencies
from tidegate_lab.simulate.balance.skewed_join import SkewedJoin, simulate

WINDOWS = (3, 2)
#: So fast that nobody ever waits for anybody.
FAST = 1e-12


def stream(batches: int = 6, seed: int = 0) -> Arrivals:
    random = np.random.default_rng(seed)
    return count_arrivals(
        [(mixed(random.integers(0, 9, 20)), mixed(random.integers(0, 9, 30))) for _ in range(batches)]
    )


def run(
    strategy: Strategy, costs: JoinCosts, arrivals: Arrivals, partitions: int = 8
) -> tuple[Recorded, float]:
    """The assignments, and all work that `simulate` counts."""
    kept = Recorded(strategy)
    trace = simulate(arrivals, kept, SkewedJoin(4, partitions, WINDOWS, costs, watch_share=0))
    return kept, float(sum(batch.work.sum() for batch in trace.batches))


@pytest.mark.parametrize(
    ("strategy", "costs"),
    [
        (HashOnly(), ComparedWithInstance()),
        (HashOnly(), ComparedWithPartition()),
        (LsStreamStrategy(alpha=0.1), ComparedWithPartition()),
    ],
)
def test_without_waiting_all_latencies_add_up_to_the_work_that_is_counted(
    strategy: Strategy, costs: JoinCosts
) -> None:
    arrivals = stream()
    kept, work = run(strategy, costs, arrivals)
    by_partition = isinstance(costs, ComparedWithPartition)
    times, found = row_latencies(arrivals, kept.assignments, WINDOWS, Speed(FAST), by_partition=by_partition)
    assert times.size == 6 * 50
    assert (np.diff(times) >= 0).all()
    # Times are sums with seconds in them, so latencies of picoseconds are rounded.
    assert found.sum() / FAST == pytest.approx(work, rel=0.02)


def test_a_row_of_a_subgroup_waits_for_the_slowest_of_its_visits() -> None:
    """With two instances that share everything, a row is at both and compared with half the rows at each."""
    arrivals = count_arrivals([(mixed(np.zeros(1, np.int64)), mixed(np.zeros(6, np.int64)))])
    kept, _ = run(ContRandStrategy(group=2), ComparedWithInstance(), arrivals)
    times, found = row_latencies(arrivals, kept.assignments, WINDOWS, Speed(1.0), seed=3)
    # The left row meets six right ones, three at each place; right rows meet nobody and cost nothing.
    first = int(np.argmax(found > 0))
    assert found[first] == pytest.approx(3.0)
    assert (found[:first] == 0).all()
    assert found[first + 1 :] == pytest.approx(times[first] + 3.0 - times[first + 1 :])


def test_a_giver_that_has_nothing_left_to_do_pauses_without_anybody_noticing() -> None:
    @dataclass(frozen=True)
    class MovesAll(HashOnly):
        def decide(self, load: Load, current: Assignment, memory: Memory) -> tuple[Assignment, Memory]:
            return replace(current, table=(1,) * len(current.table)), memory

    code = next(code for code in mixed(np.arange(99)) if partition_of(np.array([code]), 8)[0] // 2 == 3)
    rows, none = np.full(5, code, np.uint64), np.zeros(0, np.uint64)
    arrivals = count_arrivals([(rows, none), (none, rows)])
    kept, _ = run(MovesAll(), ComparedWithInstance(), arrivals)
    assert [assignment.table[7] for assignment in kept.assignments[:2]] == [3, 1]
    calm, paused = (
        row_latencies(arrivals, kept.assignments, WINDOWS, Speed(FAST, moved_row=seconds))[1]
        for seconds in (0.0, 0.01)
    )
    assert paused.tolist() == calm.tolist()


def test_rows_that_stay_with_the_giver_wait_until_its_pause_is_over() -> None:
    codes = mixed(np.arange(400))
    there = codes[partition_of(codes, 8) // 2 == 0]
    homes = partition_of(there, 8)
    stays, leaves = there[homes == 0][0], there[homes == 1][0]

    @dataclass(frozen=True)
    class MovesOne(HashOnly):
        def decide(self, load: Load, current: Assignment, memory: Memory) -> tuple[Assignment, Memory]:
            return replace(current, table=(current.table[0], 1, *current.table[2:])), memory

    many, none = np.full(40, leaves, np.uint64), np.zeros(0, np.uint64)
    arrivals = count_arrivals([(many, none), (np.full(30, stays, np.uint64), none)])
    kept, _ = run(MovesOne(), ComparedWithInstance(), arrivals)
    times, found = row_latencies(arrivals, kept.assignments, WINDOWS, Speed(FAST, moved_row=0.01))
    # 40 rows left, 10 ms each: instance 0 pauses from 1.0 to 1.4.
    waiting = (times >= 1.0) & (times < 1.4)
    assert waiting.any()
    assert found[waiting] == pytest.approx(1.4 - times[waiting])
    assert (found[~waiting] == 0).all()


def test_the_same_seed_gives_the_same_times() -> None:
    arrivals = stream()
    kept, _ = run(HashOnly(), ComparedWithInstance(), arrivals)
    once, again, other = (
        row_latencies(arrivals, kept.assignments, WINDOWS, Speed(0.001), seed=seed)[1] for seed in (1, 1, 2)
    )
    assert once.tolist() == again.tolist()
    assert once.tolist() != other.tolist()
