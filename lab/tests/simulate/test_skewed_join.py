"""The simulated join against rows counted one by one, and what must hold under every strategy."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.simulation.skewed_streams import mixed, zipf_stream

from tidegate.errors import FlowError
from tidegate.route.assignment import Assignment
from tidegate.route.baselines import ContRandStrategy, HashOnly, RandomSpread
from tidegate.route.hash_routing import partition_of
from tidegate.route.load import Load
from tidegate.route.strategy import Memory, Strategy
from tidegate_lab.simulate.balance.join_costs import (
    ComparedWithInstance,
    ComparedWithPartition,
    Indexed,
    JoinCosts,
)
from tidegate_lab.simulate.balance.key_counts import count_arrivals
from tidegate_lab.simulate.balance.placement import migration
from tidegate_lab.simulate.balance.skewed_join import SkewedJoin, simulate

Rows = list[tuple[list[int], list[int]]]
ROWS = st.lists(st.tuples(*[st.lists(st.integers(0, 5), max_size=8)] * 2), min_size=1, max_size=5)


@dataclass(frozen=True)
class Restless(HashOnly):
    """Moves a partition and a key and splits another after every batch; keeps what it was told."""

    seen: list[Load]

    def decide(self, load: Load, current: Assignment, memory: Memory) -> tuple[Assignment, Memory]:
        self.seen.append(load)
        turn = load.batch % current.instances
        table = (turn, *current.table[1:])
        moved, split = (int(code) for code in mixed(np.array([0, 1 + load.batch % 3])))
        return replace(current, table=table, keys={moved: (turn,), split: (0, current.instances - 1)}), {}


def stream(rows: Rows) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(mixed(np.array(left, np.int64)), mixed(np.array(right, np.int64))) for left, right in rows]


def pairs_one_by_one(rows: Rows, windows: tuple[int | None, int | None]) -> list[int]:
    """Each pair counted in the later of its two batches."""
    found = [0] * len(rows)
    for i, (left, _) in enumerate(rows):
        for j, (_, right) in enumerate(rows):
            window = windows[0] if i < j else windows[1]
            if window is None or abs(i - j) < window or i == j:
                found[max(i, j)] += sum(a == b for a in left for b in right)
    return found


@given(ROWS, st.sampled_from([None, 1, 2]), st.sampled_from([None, 1, 3]), st.booleans())
@settings(max_examples=40)
def test_every_strategy_finds_exactly_the_pairs_of_the_windows(
    rows: Rows, first: int | None, second: int | None, biclique: bool
) -> None:
    expected = pairs_one_by_one(rows, (first, second))
    join = SkewedJoin(4, 8, (first, second), Indexed(0, 0, 1), biclique)
    for strategy in (HashOnly(), RandomSpread(), ContRandStrategy(2), Restless([])):
        trace = simulate(count_arrivals(stream(rows)), strategy, join)
        assert [batch.pairs for batch in trace.batches] == expected
        # Priced by the pair alone, the work of all instances is the number of pairs.
        assert [batch.work.sum() for batch in trace.batches] == pytest.approx(expected)


@pytest.mark.parametrize("biclique", [False, True])
@pytest.mark.parametrize("costs", [ComparedWithInstance(), ComparedWithPartition(), Indexed(3, 2, 5)])
def test_the_work_of_hash_routing_is_what_rows_counted_one_by_one_say(
    costs: JoinCosts, biclique: bool
) -> None:
    random = np.random.default_rng(3)
    rows: Rows = [(random.integers(0, 9, 20).tolist(), random.integers(0, 9, 30).tolist()) for _ in range(4)]
    partition = partition_of(mixed(np.arange(9)), 6).tolist()
    group = 2 if biclique else 4
    owner = [p * group // 6 for p in partition]
    trace = simulate(count_arrivals(stream(rows)), HashOnly(), SkewedJoin(4, 6, (2, None), costs, biclique))
    for batch, (left, right) in enumerate(rows):
        stored = ([], [])  # type: tuple[list[int], list[int]]
        for b in range(batch):
            stored[0].extend(rows[b][0] if b > batch - 2 else [])
            stored[1].extend(rows[b][1])
        stored[1].extend(right)
        expected = np.zeros(4)
        for side, probes, new in ((0, right, left), (1, left, right)):
            for instance in range(group):
                here = [k for k in stored[side] if owner[k] == instance]
                probing = [k for k in probes if owner[k] == instance]
                at = instance + group * side * biclique
                matches = sum(a == b for a in here for b in probing)
                if isinstance(costs, ComparedWithInstance):
                    expected[at] += len(here) * len(probing)
                elif isinstance(costs, ComparedWithPartition):
                    expected[at] += sum(partition[a] == partition[b] for a in here for b in probing)
                else:
                    news = sum(owner[k] == instance for k in new)
                    expected[at] += 3 * news + 2 * len(probing) + 5 * matches
        assert trace.batches[batch].work == pytest.approx(expected)


def test_strategies_are_told_what_the_engine_would_tell_them() -> None:
    rows: Rows = [([0, 0, 1, 2], [0, 1, 1]), ([0, 3], [0, 0, 2])]
    seen: list[Load] = []
    simulate(count_arrivals(stream(rows)), Restless(seen), SkewedJoin(2, 8, (None, None), watch_share=0.4))
    codes = mixed(np.arange(4))
    first, second = seen
    # Nothing has a place of its own yet, so partitions count everything; keys 0 and 1 are heavy on a side.
    assert first.partitions.stored.sum(axis=1).tolist() == [4, 3]
    assert first.partitions.probes.sum(axis=1).tolist() == [3, 4]
    assert first.partitions.matches.sum() == 2 * 1 + 1 * 2
    assert Counter(first.codes.tolist()) == Counter(codes[:2].tolist())
    # Keys 0 and 1 have places of their own now: no longer in partitions, still watched wherever they lie.
    rest = Counter(k for left, right in rows for k in left if k > 1)
    assert second.partitions.stored.sum(axis=1).tolist() == [rest.total(), 1]
    assert second.partitions.probes.sum(axis=1).tolist() == [1, 1]
    watched = dict(zip(second.codes.tolist(), range(9), strict=False))
    zero, one, three = (watched[int(codes[k])] for k in (0, 1, 3))
    assert int(codes[2]) not in watched
    assert second.keys.stored[:, [zero, one, three]].tolist() == [[3, 1, 1], [3, 2, 0]]
    assert second.keys.probes[:, zero].tolist() == [2, 1]
    assert second.keys.matches[[zero, one]].tolist() == [1 * 3 + 2 * 2, 0]
    assert second.homes.tolist() == partition_of(second.codes, 8).tolist()
    assert second.seconds.size == 0


def test_all_keys_are_watched_when_asked_for() -> None:
    seen: list[Load] = []
    simulate(count_arrivals(stream([([0], []), ([], [1])])), Restless(seen), SkewedJoin(2, 4, watch_share=0))
    assert [load.codes.size for load in seen] == [1, 2]


def test_moved_rows_are_the_fewest_that_leave_split_keys_evenly_spread() -> None:
    codes = np.sort(mixed(np.arange(6)))
    homes = partition_of(codes, 2).tolist()
    stored = np.array([10, 20, 30, 40, 50, 60])
    hot = int(codes[2])
    plain = Assignment(4, (0, 1))
    assert migration(plain, plain, codes, stored).rows == 0
    moved = migration(plain, Assignment(4, (0, 3)), codes, stored)
    assert moved.rows == sum(n for n, home in zip(stored.tolist(), homes, strict=True) if home == 1)
    assert (moved.partitions, moved.keys) == (1, 0)
    home = homes[2]
    split = Assignment(4, (0, 1), keys={hot: (home, 2, 3)})
    assert migration(plain, split, codes, stored).rows == pytest.approx(30 * 2 / 3)
    assert migration(split, plain, codes, stored).rows == pytest.approx(30 * 2 / 3)
    assert migration(split, Assignment(4, (0, 1), keys={hot: (2, 3)}), codes, stored).rows == pytest.approx(
        10
    )
    # Spread 2 → 3 instances of a partition: a third of it goes to the new one.
    two, three = Assignment(4, (0, 0), spread=2), Assignment(4, (0, 0), spread=3)
    assert migration(two, three, codes, stored).rows == pytest.approx(stored.sum() / 3)


@pytest.mark.parametrize("strategy", [HashOnly(), ContRandStrategy(2), RandomSpread()])
def test_more_instances_take_their_part_of_the_state(strategy: Strategy) -> None:
    arrivals = zipf_stream(0.0, batches=6, rows=4000)
    trace = simulate(arrivals, strategy, SkewedJoin(4, 64, rescale={3: 8}))
    assert [batch.work.size for batch in trace.batches] == [4, 4, 4, 8, 8, 8]
    assert [batch.migrations for batch in trace.batches] == [0, 0, 0, 1, 0, 0]
    assert trace.batches[3].moved_rows / trace.batches[2].stored == pytest.approx(0.5, abs=0.05)
    assert trace.batches[5].pairs == simulate(arrivals, HashOnly(), SkewedJoin(4, 64)).batches[5].pairs


def test_random_balances_perfectly_and_pays_for_it_in_probes() -> None:
    arrivals = zipf_stream(1.0, batches=4, rows=4000)
    hashed, spread = (
        simulate(arrivals, strategy, SkewedJoin(8, 64, costs=Indexed(1, 1, 0)))
        for strategy in (HashOnly(), RandomSpread())
    )
    assert spread.ratios() == pytest.approx(1)
    assert spread.deviations() == pytest.approx(0, abs=1e-9)
    assert hashed.ratios().min() > 1.5
    # Every row is stored once and visits eight instances, instead of one.
    assert spread.batches[0].work.sum() == pytest.approx(8000 + 8 * 8000)
    assert hashed.batches[0].work.sum() == pytest.approx(2 * 8000)
    assert hashed.batches[0].even == spread.batches[0].even == pytest.approx(2 * 8000 / 8)


@pytest.mark.parametrize("costs", [ComparedWithInstance(), ComparedWithPartition(), Indexed()])
def test_at_the_sustained_rate_the_heaviest_instance_is_just_busy(costs: JoinCosts) -> None:
    """Each row twice at most: then a doubled rate is exactly what the model foresees."""
    rows: Rows = [([0, 1, 2, 3] * 3, [0, 0, 1, 3] * 3) for _ in range(4)]
    twice = [(left * 2, right * 2) for left, right in rows]
    join = SkewedJoin(2, 4, (2, 2), costs)
    once, doubled = (simulate(count_arrivals(stream(one)), HashOnly(), join) for one in (rows, twice))
    for slow, fast in zip(once.batches, doubled.batches, strict=True):
        capacity = fast.makespan
        trace = replace(once, batches=(slow,))
        assert trace.sustained_rates(capacity) == pytest.approx([2.0])
        assert trace.throughput(capacity) == pytest.approx(fast.rows)


def test_measured_seconds_are_work_with_noise_and_repeat_with_the_seed() -> None:
    def seconds(seed: int, noise: float) -> list[float]:
        seen: list[Load] = []
        join = SkewedJoin(2, 4, seconds_per_work=0.5, noise=noise, seed=seed)
        trace = simulate(count_arrivals(stream([([0, 1], [1, 2])])), Restless(seen), join)
        assert noise or seen[0].seconds == pytest.approx(0.5 * trace.batches[0].work)
        return [float(value) for value in seen[0].seconds]

    assert seconds(1, 0) != seconds(1, 0.1) == seconds(1, 0.1) != seconds(2, 0.1)


def test_too_few_instances_and_empty_windows_are_refused() -> None:
    with pytest.raises(FlowError, match=r"at least one instance. Got: 1 instances.*Give 2 or more"):
        SkewedJoin(1, biclique=True)
    with pytest.raises(FlowError, match=r"at least the batch.*Got: 0 batches.*None"):
        simulate(count_arrivals([]), HashOnly(), SkewedJoin(windows=(0, 1)))
