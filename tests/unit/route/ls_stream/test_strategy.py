"""The ls-stream strategy: when it moves, what it keeps, and what it refuses."""

from __future__ import annotations

import json
from time import process_time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import FlowError
from tidegate.model.codec import decode, encode_exactly
from tidegate.route.assignment import Assignment
from tidegate.route.hash_routing import first_table, partition_of
from tidegate.route.load import Load, LoadWork
from tidegate.route.ls_stream.deviation import deviation
from tidegate.route.ls_stream.partition_load import partition_loads, per_instance
from tidegate.route.ls_stream.strategy import LsStreamStrategy
from tidegate.route.strategy import Memory, Strategy


def load_of(rows: list[int], batch: int = 1) -> Load:
    """Both sides alike: so many rows come in each partition, ten times as many are stored."""
    counts = np.array([rows, rows], np.int64)
    return Load(batch, LoadWork(10 * counts, counts, np.array(rows, np.int64)))


def imbalance(load: Load, assignment: Assignment) -> float:
    loads = partition_loads(load.partitions, 0.5)
    return deviation(per_instance(loads, np.array(assignment.table), assignment.instances))


SKEWED = [90, 40, 30, 30, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5]
ROWS = st.lists(st.integers(0, 500), min_size=6, max_size=40)


def test_it_is_a_strategy_by_the_name_of_the_paper() -> None:
    strategy: Strategy = LsStreamStrategy()
    assert strategy.name == "ls_stream"
    assert strategy.first(12, 3) == Assignment(3, first_table(12, 3))


def test_below_the_threshold_the_same_assignment_comes_back() -> None:
    strategy, load = LsStreamStrategy(), load_of([10, 10, 9, 11])
    current = strategy.first(4, 2)
    assert strategy.decide(load, current, {})[0] is current


def test_at_the_threshold_nothing_moves_and_just_above_it_something_does() -> None:
    load, current = load_of([40, 20, 10, 5]), Assignment(2, (0, 0, 1, 1))
    found = imbalance(load, current)
    assert LsStreamStrategy(alpha=found).decide(load, current, {})[0] is current
    assert LsStreamStrategy(alpha=found * 0.99).decide(load, current, {})[0] != current


@given(ROWS, st.integers(2, 6), st.sampled_from([0.0, 0.2, 1.0]), st.integers(1, 3))
@settings(max_examples=40)
def test_imbalance_never_grows_the_table_never_does_and_moving_stops(
    rows: list[int], instances: int, alpha: float, pairs: int
) -> None:
    strategy = LsStreamStrategy(alpha=alpha, steps=4, pairs=pairs)
    load = load_of(rows)
    current = strategy.first(len(rows), instances)
    memory: Memory = {}
    for batch in range(200):
        after, remembered = strategy.decide(load_of(rows, batch), current, memory)
        memory = json.loads(json.dumps(remembered))
        if after is current:
            return
        assert imbalance(load, after) <= imbalance(load, current) + 1e-9
        assert after.entries == current.entries == len(rows)
        current = decode(Assignment, encode_exactly(after))
        assert current == after
    raise AssertionError("200 batches and still moving")


def test_the_threshold_is_reached_where_partitions_are_small_enough() -> None:
    strategy, rows = LsStreamStrategy(alpha=0.5), [8] * 16 + [2] * 48
    current = strategy.first(64, 8)
    memory: Memory = {}
    assert imbalance(load_of(rows), current) > 2
    for batch in range(40):
        current, memory = strategy.decide(load_of(rows, batch), current, memory)
    assert imbalance(load_of(rows), current) <= 0.5


def test_more_pairs_get_there_in_fewer_batches() -> None:
    random = np.random.default_rng(2)
    rows = np.sort(random.integers(1, 100, 200)).tolist()

    def batches(pairs: int) -> int:
        strategy = LsStreamStrategy(alpha=0.1, pairs=pairs)
        current = strategy.first(200, 10)
        memory: Memory = {}
        for batch in range(100):
            after, memory = strategy.decide(load_of(rows, batch), current, memory)
            if after is current:
                return batch
            current = after
        return 100

    assert batches(8) < batches(1) < 100


def test_the_same_input_gives_the_same_answer_whatever_came_before() -> None:
    random = np.random.default_rng(6)
    rows = random.integers(1, 100, 300).tolist()
    rows[:10] = [400] * 10
    strategy = LsStreamStrategy(seed=3, steps=5)
    current, memory = strategy.first(300, 4), {"rates": [[5.0, 1.0, 2.0, 3.0]]}
    first = strategy.decide(load_of(rows, 7), current, memory)
    strategy.decide(load_of(rows, 8), current, {})
    assert strategy.decide(load_of(rows, 7), current, memory) == first
    assert memory == {"rates": [[5.0, 1.0, 2.0, 3.0]]}


def test_one_burst_moves_nothing_and_a_lasting_one_does() -> None:
    """Equation 4: the highest rate of the last batches does not count."""
    calm, burst = [10] * 30, [10] * 20 + [20] * 10
    strategy = LsStreamStrategy(alpha=0.2)
    current: Assignment = strategy.first(30, 3)
    memory: Memory = {}
    moved = []
    for batch, rows in enumerate([calm] * 4 + [burst] + [calm] * 2 + [burst] * 4):
        # The burst comes in new rows alone: what is stored stays as it is.
        coming = np.array([rows, rows], np.int64)
        work = LoadWork(np.full((2, 30), 100, np.int64), coming, np.zeros(30, np.int64))
        after, memory = strategy.decide(Load(batch, work), current, memory)
        moved.append(after is not current)
    assert moved[:7] == [False] * 7
    assert moved[-1]


def test_what_is_remembered_stays_small() -> None:
    strategy = LsStreamStrategy(history=4)
    current = strategy.first(1000, 8)
    memory: Memory = {}
    for batch in range(20):
        current, memory = strategy.decide(load_of([5] * 1000, batch), current, memory)
    assert np.shape(memory["rates"]) == (4, 8)


def test_unequal_instances_begin_and_end_with_unequal_shares() -> None:
    strategy = LsStreamStrategy(alpha=0.1, weights=(1.0, 3.0))
    current = strategy.first(80, 2)
    assert np.bincount(current.table).tolist() == [20, 60]
    assert strategy.decide(load_of([10] * 80), current, {})[0] is current
    halves = Assignment(2, first_table(80, 2))
    after, _ = strategy.decide(load_of([10] * 80), halves, {})
    assert np.bincount(after.table)[1] == pytest.approx(60, abs=4)


@given(st.integers(1, 30), st.lists(st.floats(0.001, 1000), min_size=1, max_size=30))
@settings(max_examples=50)
def test_every_instance_begins_with_a_partition_however_slow_it_is(extra: int, weights: list[float]) -> None:
    table = LsStreamStrategy(weights=tuple(weights)).first(len(weights) + extra, len(weights)).table
    assert set(table) == set(range(len(weights)))
    assert list(table) == sorted(table)


@given(
    st.lists(st.tuples(st.integers(0, 2**64 - 1), st.booleans()), min_size=1, max_size=40),
    st.integers(1, 12),
    st.integers(0, 5),
)
@settings(max_examples=40)
def test_partitions_cover_every_row_once_and_every_pair_that_may_match(
    drawn: list[tuple[int, bool]], partitions: int, moves: int
) -> None:
    """Interval-free and complete (5), (6), and overlap-free, whatever has moved."""
    codes = np.array([code for code, _ in drawn], np.uint64)
    # Some rows of R have the key of a row of S, others a key of their own.
    others = np.array([code if same else code ^ 1 for code, same in drawn], np.uint64)
    left, right = partition_of(codes, partitions), partition_of(others, partitions)
    strategy = LsStreamStrategy(alpha=0.0, steps=3)
    current = strategy.first(partitions, min(partitions, 3))
    stored = np.bincount(right, minlength=partitions)
    work = LoadWork(np.stack([stored, stored]), np.stack([stored, stored]), stored)
    for batch in range(moves):
        current, _ = strategy.decide(Load(batch, work), current, {})
    for labels in (left, right):
        members = [np.flatnonzero(labels == partition) for partition in range(partitions)]
        assert sorted(np.concatenate(members).tolist()) == list(range(len(labels)))
    table = np.array(current.table)
    owners = [set(current.instances_of(partition)) for partition in range(partitions)]
    assert all(len(owner) == 1 for owner in owners)
    equal = codes[:, None] == others[None, :]
    together = left[:, None] == right[None, :]
    assert (together | ~equal).all()
    assert (table[left][:, None] == table[right][None, :])[equal].all()


@pytest.mark.parametrize("instances", [2, 7])
def test_planning_10_000_partitions_takes_less_than_50_ms(instances: int) -> None:
    """Processor time, so that a busy machine does not matter; all partitions are the straggler's."""
    random = np.random.default_rng(1)
    rows = np.minimum(random.zipf(1.5, 10_000), 10_000).tolist()
    strategy = LsStreamStrategy(alpha=0.01, pairs=1)
    everything_on_one = Assignment(instances, (0,) * 10_000)
    load = load_of(rows)
    strategy.decide(load, everything_on_one, {})  # compiles
    taken = []
    for _ in range(5):
        started = process_time()
        after, _ = strategy.decide(load, everything_on_one, {})
        taken.append(process_time() - started)
    assert after is not everything_on_one
    assert min(taken) <= 0.050


@pytest.mark.parametrize(
    ("knobs", "says"),
    [
        ({"gamma": -0.1}, "from 0"),
        ({"gamma": 1.1}, "to 1"),
        ({"gamma": float("nan")}, "from 0"),
        ({"alpha": -1.0}, "0 or more"),
        ({"cooling": 1.0}, "less than 1"),
        ({"steps": 0}, "1 or more"),
        ({"seed": -1}, "0 or more"),
        ({"pairs": 0}, "1 or more"),
        ({"history": 0}, "1 or more"),
        ({"weights": (1.0, 0.0)}, "positive"),
        ({"weights": (1.0, float("nan"))}, "positive"),
    ],
)
def test_knobs_out_of_range_are_refused_with_the_range(knobs: dict[str, float], says: str) -> None:
    with pytest.raises(FlowError, match=f"BALANCE_SETTING_INVALID.*{says}"):
        LsStreamStrategy(**knobs)  # type: ignore[arg-type]


def test_weights_must_be_as_many_as_instances() -> None:
    strategy = LsStreamStrategy(weights=(1.0, 2.0))
    with pytest.raises(FlowError, match=r"BALANCE_SETTING_INVALID.*Give 3 weights"):
        strategy.first(9, 3)
    with pytest.raises(FlowError, match=r"BALANCE_SETTING_INVALID.*Give 3 weights"):
        strategy.decide(load_of([1] * 9), Assignment(3, first_table(9, 3)), {})


@pytest.mark.parametrize("instances", [0, 5])
def test_more_instances_than_partitions_or_none_are_refused(instances: int) -> None:
    strategy = LsStreamStrategy()
    with pytest.raises(FlowError, match="BALANCE_INSTANCES_INVALID"):
        strategy.first(4, instances)
    with pytest.raises(FlowError, match="BALANCE_INSTANCES_INVALID"):
        strategy.resize(load_of([1] * 4), strategy.first(4, 2), instances)


def test_loads_of_other_partitions_are_refused() -> None:
    strategy = LsStreamStrategy()
    with pytest.raises(FlowError, match=r"INTERNAL_ARRAYS_INCONSISTENT.*3 loads, 4 partitions"):
        strategy.decide(load_of([1] * 3), strategy.first(4, 2), {})


def test_two_heavy_partitions_stay_together_where_one_would_make_the_receiver_the_busier_one() -> None:
    """Condition (31) as the paper has it, although moving one would lower the imbalance."""
    load, current = load_of([20, 20, 10, 10]), Assignment(2, (0, 0, 1, 1))
    assert imbalance(load, Assignment(2, (0, 1, 1, 1))) < imbalance(load, current)
    assert LsStreamStrategy(alpha=0.1).decide(load, current, {})[0] is current


def test_one_key_only_and_no_rows_at_all_move_nothing() -> None:
    strategy = LsStreamStrategy(alpha=0.1)
    current = strategy.first(4, 2)
    for rows in ([0, 100, 0, 0], [0, 0, 0, 0]):
        assert strategy.decide(load_of(rows), current, {})[0] is current
