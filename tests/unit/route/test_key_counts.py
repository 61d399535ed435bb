"""What is told of the keys of a first batch: chunk by chunk, task by task, against counts of every key."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.join.selective.selection import mixed
from tidegate.route.frequent_keys import FLOOR
from tidegate.route.hash_routing import partition_of
from tidegate.route.key_counts import KEYS_MAX, ROWS_LEAST, SHARE, SideCount, rows_of_others

PARTITIONS = 16


def count(*chunks: list[int]) -> SideCount:
    made = SideCount(PARTITIONS)
    for chunk in chunks:
        made.add(np.array(chunk, np.uint64) << np.uint64(56), np.arange(len(chunk)))
    return made


@given(st.lists(st.lists(st.integers(0, 40), max_size=200), max_size=4), st.integers(0, 4))
@settings(max_examples=60)
def test_counts_of_chunks_and_tasks_add_up(chunks: list[list[int]], at: int) -> None:
    one, other = count(*chunks[:at]), count(*chunks[at:])
    one.merge(SideCount.from_json(json.loads(json.dumps(other.to_json()))))
    seen, rows = one.seen(), Counter(code << 56 for chunk in chunks for code in chunk)
    least = max(SHARE * rows.total(), ROWS_LEAST)
    # So few rows that nothing lies below the floor of a chunk: counts are exact.
    assert seen.keys == {code: n for code, n in rows.items() if n >= least}
    codes = np.array([*rows], np.uint64)
    homes = np.bincount(partition_of(codes, PARTITIONS), [*rows.values()], PARTITIONS)
    assert seen.partitions.tolist() == homes.tolist()


def test_heavy_keys_of_many_rows_are_told_nearly_exactly() -> None:
    random, keys, rows = np.random.default_rng(3), 20_000, 200_000
    shares = np.arange(1, keys + 1, dtype=np.float64) ** -1.0
    made, truth = SideCount(PARTITIONS), np.zeros(keys, np.int64)
    for _ in range(5):
        drawn = random.choice(keys, rows, p=shares / shares.sum())
        made.add(mixed(drawn.astype(np.uint64), 1), np.arange(rows))
        truth += np.bincount(drawn, minlength=keys)
    told, codes = made.seen().keys, mixed(np.arange(keys).astype(np.uint64), 1)
    heavy = np.flatnonzero(truth >= SHARE * truth.sum())
    assert set(codes[heavy].tolist()) <= told.keys()
    off = np.array([truth[key] - told[int(codes[key])] for key in heavy])
    assert (off >= 0).all()
    assert (off <= FLOOR * truth.sum()).all()


def test_a_report_of_a_task_stays_small() -> None:
    """Thousands of keys that are all a little too heavy to be left out: the next ones count as not known."""
    made = SideCount(PARTITIONS)
    made.add_counted(np.arange(9_000).astype(np.uint64), np.full(9_000, 50), (0, 1))
    raw = made.to_json()
    assert len(json.dumps(raw)) < 60_000
    assert len(SideCount.from_json(raw).seen().keys) == KEYS_MAX


def test_a_key_that_is_not_told_has_no_more_rows_than_one_that_is() -> None:
    """Light in every one of many small tasks, heavy in all of them together."""
    made, random = SideCount(PARTITIONS), np.random.default_rng(2)
    for _ in range(32):
        task = SideCount(PARTITIONS)
        task.add(random.integers(0, 300, 1_500).astype(np.uint64), np.arange(1_500))
        made.merge(task)
    seen = made.seen()
    assert len(seen.keys) == 300
    assert seen.usual <= max(SHARE * made.rows, ROWS_LEAST)


def test_only_so_many_keys_are_told_the_heaviest_of_them() -> None:
    made = SideCount(PARTITIONS)
    rows = np.arange(100, 100 + 2 * KEYS_MAX)
    made.add_counted(np.arange(rows.size).astype(np.uint64), rows, (0, 1))
    assert [*made.seen().keys] == list(range(2 * KEYS_MAX - 1, KEYS_MAX - 1, -1))


def test_clocks_that_are_wrong_do_not_stretch_the_time_that_rows_cover() -> None:
    made = SideCount(PARTITIONS)
    times = np.arange(1000)
    times[[3, 700]] = -(10**9), 10**9
    made.add(np.zeros(1000, np.uint64), times)
    made.add(np.zeros(0, np.uint64), times[:0])
    assert made.seen().span_us == (50, 950)
    few = SideCount(PARTITIONS)
    few.add(np.zeros(3, np.uint64), np.array([7, 8, 10**13]))
    assert few.seen().span_us == (7, 10**13)
    made.merge(few)
    few.merge(made)
    assert made.seen().span_us == few.seen().span_us == (50, 950)
    assert SideCount(PARTITIONS).seen().span_us is None


@pytest.mark.parametrize("mean", [0.05, 0.8, 3.0, 40.0])
def test_what_keys_have_in_the_mean_counts_those_that_have_nothing(mean: float) -> None:
    rows = np.random.default_rng(3).poisson(mean, 20_000)
    assert rows_of_others(rows[rows > 0]) == pytest.approx(mean, rel=0.1)


def test_there_are_no_others_where_all_keys_are_heavy() -> None:
    assert rows_of_others(np.zeros(0, np.int64)) == 0
    assert rows_of_others(np.ones(5, np.int64)) == pytest.approx(0, abs=0.1)


def test_means_of_chunks_and_tasks_add_up() -> None:
    random = np.random.default_rng(5)
    # Of 10,000 keys, most of which have no row in a chunk.
    made = SideCount(PARTITIONS)
    for _task in range(2):
        task = SideCount(PARTITIONS)
        for _chunk in range(2):
            task.add(mixed(random.integers(0, 10_000, 5_000).astype(np.uint64), 1), np.arange(5_000))
        made.merge(task)
    assert made.seen().usual == pytest.approx(4 * 5_000 / 10_000, rel=0.05)
