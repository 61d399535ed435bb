from __future__ import annotations

import numpy as np
import pytest
from tests.unit.route.loads import load_of, mixed_codes, one_sided

from tidegate.route.assignment import Assignment
from tidegate.route.fastjoin.imbalance import SPLIT, imbalance, instance_work, key_places
from tidegate.route.hash_routing import partition_of
from tidegate.route.load import Load, LoadWork

CODES = np.array([0, 2**62, 2**63, 3 * 2**62], np.uint64)  # one in each of four partitions
TWO = Assignment(2, (0, 0, 1, 1))


def test_the_load_of_an_instance_is_stored_rows_times_probes_of_both_sides() -> None:
    stored = np.array([[1, 2, 3, 4], [1, 1, 0, 0]])
    probes = np.array([[10, 10, 5, 5], [7, 0, 9, 9]])
    work = instance_work(load_of(CODES, stored, probes, TWO), TWO)
    assert work.loads.tolist() == [3 * 20 + 2 * 7, 7 * 10]


def test_a_moved_key_counts_where_it_lies_and_no_longer_in_its_partition() -> None:
    moved = Assignment(2, (0, 0, 1, 1), keys={0: (1,)})
    work = instance_work(load_of(CODES, one_sided([1, 2, 3, 4]), one_sided([1, 1, 1, 1]), moved), moved)
    assert work.stored[0].tolist() == [2, 8]
    assert work.probes[0].tolist() == [1, 3]


def test_what_is_shared_stores_a_part_and_sees_every_probe() -> None:
    counts = one_sided([6, 0, 0, 0])
    split = Assignment(3, (0, 0, 1, 1), keys={0: (0, 2)})
    work = instance_work(load_of(CODES, counts, counts, split), split)
    assert work.stored[0].tolist() == [3, 0, 3]
    assert work.probes[0].tolist() == [6, 0, 6]
    spread = Assignment(3, (2, 0, 0, 0), spread=2)
    work = instance_work(load_of(CODES, counts, counts, spread), spread)
    assert work.stored[0].tolist() == [3, 0, 3]
    assert work.probes[0].tolist() == [6, 0, 6]


def test_places_of_many_keys_are_those_of_a_lookup_one_by_one() -> None:
    codes = mixed_codes(300)
    homes = partition_of(codes, 16)
    random = np.random.default_rng(1)
    placed: dict[int, tuple[int, ...]] = {
        int(code): (int(random.integers(4)),) for code in codes[random.random(300) < 0.3]
    }
    placed[int(codes[7])] = (1, 2)
    placed[12345] = (3,)  # not watched
    current = Assignment(4, tuple(p % 4 for p in range(16)), keys=placed)
    places, own = key_places(codes, homes, current)
    expected = [
        placed.get(int(code), (current.table[home],)) for code, home in zip(codes, homes, strict=True)
    ]
    assert places.tolist() == [at[0] if len(at) == 1 else SPLIT for at in expected]
    assert own.tolist() == [int(code) in placed for code in codes]


@pytest.mark.parametrize(
    ("loads", "expected"),
    [([4, 2, 1], 4.0), ([3, 3], 3 / 3), ([5], 1.0), ([0, 0, 0], 1.0), ([2, 0], float("inf"))],
)
def test_imbalance_is_heaviest_over_lightest_and_defined_without_work(
    loads: list[float], expected: float
) -> None:
    assert imbalance(np.array(loads, np.float64)) == expected


def test_probes_that_never_came_make_no_load() -> None:
    work = instance_work(load_of(CODES, one_sided([1, 2, 3, 4]), one_sided([0, 0, 0, 0]), TWO), TWO)
    assert work.loads.tolist() == [0, 0]
    assert imbalance(work.loads) == 1.0


def test_without_watched_keys_partitions_are_all_that_counts() -> None:
    base = LoadWork(one_sided([1, 2, 3, 4]), one_sided([1, 1, 1, 1]), np.zeros(4, np.int64))
    assert instance_work(Load(0, base), TWO).loads.tolist() == [6, 14]
