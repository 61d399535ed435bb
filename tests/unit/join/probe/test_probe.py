"""Probing sorted stored rows: ranges, pairs in chunks, pairs per partition, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tidegate.errors import StateError
from tidegate.join.probe.meet import LEAP_RATIO
from tidegate.join.probe.probe import ProbedPairs, Ranges, counts_per_partition, probe

RANDOM = np.random.default_rng(11)


def codes_of(*codes: int) -> NDArray[np.uint64]:
    return np.array(codes, np.uint64)


def times_of(*times: int) -> NDArray[np.int64]:
    return np.array(times, np.int64)


def triples(ranges: Ranges) -> list[tuple[int, int, int]]:
    return list(zip(ranges.rows.tolist(), ranges.first.tolist(), ranges.count.tolist(), strict=True))


def naive(
    codes: NDArray[np.uint64],
    low: NDArray[np.int64],
    high: NDArray[np.int64],
    stored: NDArray[np.uint64],
    times: NDArray[np.int64],
) -> list[tuple[int, int, int]]:
    found = []
    for row, (code, first, last) in enumerate(zip(codes, low, high, strict=True)):
        hits = np.flatnonzero((stored == code) & (times >= first) & (times <= last))
        if hits.size:
            found.append((row, int(hits[0]), int(hits.size)))
    return found


STORED = codes_of(3, 3, 3, 5, 5, 5, 5, 5, 9)
STORED_TIMES = times_of(1, 4, 8, 7, 20, 31, 40, 44, 2)


def test_a_row_meets_the_stored_rows_of_its_code_inside_its_range() -> None:
    found = probe(codes_of(5), times_of(20), times_of(40), STORED, STORED_TIMES, 0, 9)
    assert triples(found) == [(0, 4, 3)]


def test_both_edges_of_the_range_match_and_the_next_times_do_not() -> None:
    codes = codes_of(5, 5, 5, 5)
    found = probe(codes, times_of(7, 8, 40, 41), times_of(7, 19, 43, 43), STORED, STORED_TIMES, 0, 9)
    assert triples(found) == [(0, 3, 1), (2, 6, 1)]


def test_only_stored_rows_between_start_and_stop_count() -> None:
    codes = codes_of(3, 5, 9)
    found = probe(codes, times_of(0, 0, 0), times_of(99, 99, 99), STORED, STORED_TIMES, 2, 5)
    assert triples(found) == [(0, 2, 1), (1, 3, 2)]


@pytest.mark.parametrize(("probing", "start", "stop"), [(0, 0, 9), (2, 4, 4), (0, 9, 9), (2, 0, 0)])
def test_nothing_meets_nothing(probing: int, start: int, stop: int) -> None:
    codes, times = codes_of(3, 5)[:probing], times_of(0, 0)[:probing]
    found = probe(codes, times, times + 99, STORED, STORED_TIMES, start, stop)
    assert triples(found) == []
    assert found.total == 0
    rows, stored = ProbedPairs(found).chunk(0, 10)
    assert rows.tolist() == stored.tolist() == []


def test_the_ends_of_code_and_time_are_ordinary_values() -> None:
    ends = times_of(-(2**63), 2**63 - 1)
    codes = codes_of(0, 2**64 - 1)
    found = probe(codes, ends[[0, 0]], ends[[1, 1]], codes.repeat(2), np.tile(ends, 2), 0, 4)
    assert triples(found) == [(0, 0, 2), (1, 2, 2)]
    many = np.full(9, 2**64 - 1, np.uint64)
    found = probe(codes[1:], ends[:1], ends[1:], many, np.full(9, -(2**63)), 0, 9)
    assert triples(found) == [(0, 0, 9)]


# Lengths and numbers of keys that take both kinds of leap, the merge, short keys and hot ones.
LENGTHS = [
    (400, 300, 10**6),
    (400, 300, 200),
    (400, 300, 20),
    (300, 400, 1),
    (5, 5 * LEAP_RATIO + 50, 10**6),
    (5, 5 * LEAP_RATIO + 50, 6),
    (12, 12 * LEAP_RATIO + 1, 1),
    (5 * LEAP_RATIO + 50, 5, 40),
    (5 * LEAP_RATIO + 50, 5, 1),
]


@pytest.mark.parametrize("mixed", [True, False], ids=["mixed", "unmixed"])
@pytest.mark.parametrize(("probing", "storing", "keys"), LENGTHS)
def test_ranges_agree_with_a_look_at_every_pair(probing: int, storing: int, keys: int, mixed: bool) -> None:
    pool = RANDOM.integers(0, 2**64, keys, dtype=np.uint64) if mixed else np.arange(keys, dtype=np.uint64)
    codes = pool[RANDOM.integers(0, keys, probing)]
    stored = pool[RANDOM.integers(0, keys, storing)]
    # At least one code is common, whatever chance says.
    stored[0] = codes[0]
    times, stored_times = RANDOM.integers(-50, 50, probing), RANDOM.integers(-50, 50, storing)
    order, stored_order = np.lexsort((times, codes)), np.lexsort((stored_times, stored))
    codes, times = codes[order], times[order]
    stored, stored_times = stored[stored_order], stored_times[stored_order]
    for back, ahead in [(0, 0), (10, 3), (200, 200)]:
        found = probe(codes, times - back, times + ahead, stored, stored_times, 0, storing)
        expected = naive(codes, times - back, times + ahead, stored, stored_times)
        assert triples(found) == expected
    assert expected, "the widest range must find the common code"


def test_inputs_may_be_read_only_unaligned_or_strided() -> None:
    codes = codes_of(3, 5, 9)
    low, high = times_of(0, 0, 0), times_of(8, 31, 99)
    plain = triples(probe(codes, low, high, STORED, STORED_TIMES, 0, 9))
    assert plain == [(0, 0, 3), (1, 3, 3), (2, 8, 1)]
    odd = bytes(1) + STORED.tobytes()
    unaligned = np.frombuffer(odd, np.uint64, offset=1)  # Read-only too: bytes cannot change.
    assert not unaligned.flags.writeable
    codes.flags.writeable = low.flags.writeable = high.flags.writeable = False
    assert triples(probe(codes, low, high, unaligned, STORED_TIMES, 0, 9)) == plain
    assert triples(probe(codes, low, high, unaligned, STORED_TIMES.repeat(2)[::2], 0, 9)) == plain


RANGES = Ranges(times_of(1, 4, 6), times_of(10, 20, 30), times_of(2, 1, 7))
ALL_PAIRS = [(1, 10), (1, 11), (4, 20), *((6, 30 + k) for k in range(7))]


def test_every_chunk_is_that_slice_of_all_pairs() -> None:
    pairs = ProbedPairs(RANGES)
    assert pairs.total == RANGES.total == 10
    for begin in range(11):
        for end in range(begin, 13):
            rows, stored = pairs.chunk(begin, end)
            assert list(zip(rows.tolist(), stored.tolist(), strict=True)) == ALL_PAIRS[begin:end]


def test_a_chunk_beyond_the_last_pair_is_empty() -> None:
    for begin, end in [(10, 20), (11, 12), (5, 5), (5, 3)]:
        rows, stored = ProbedPairs(RANGES).chunk(begin, end)
        assert rows.tolist() == stored.tolist() == []


def test_a_hot_key_is_taken_in_chunks_without_making_all_its_pairs() -> None:
    rows = 200_000
    hot = np.full(rows, 77, np.uint64)
    times = np.arange(rows)
    found = probe(hot, times - rows, times + rows, hot, times, 0, rows)
    pairs = ProbedPairs(found)
    assert pairs.total == rows * rows  # 640 GB as two arrays of int64.
    probing, stored = pairs.chunk(rows * rows - 2, rows * rows)
    assert probing.tolist() == [rows - 1, rows - 1]
    assert stored.tolist() == [rows - 2, rows - 1]


def test_pairs_are_counted_per_partition() -> None:
    # Partitions with the probing rows 0-1, 2-3, 4-6 and none.
    assert counts_per_partition(times_of(0, 2, 4, 7, 7), RANGES).tolist() == [2, 0, 8, 0]
    nothing = Ranges(times_of(), times_of(), times_of())
    assert counts_per_partition(times_of(0, 2), nothing).tolist() == [0]
    assert counts_per_partition(times_of(0), nothing).tolist() == []


def test_rows_outside_the_stored_arrays_are_refused() -> None:
    for start, stop in [(-1, 3), (4, 3), (0, 10)]:
        with pytest.raises(
            StateError, match=rf"outside the stored arrays.*Got: rows {start} to {stop} of 9 codes"
        ):
            probe(codes_of(3), times_of(0), times_of(9), STORED, STORED_TIMES, start, stop)
    with pytest.raises(StateError, match=r"INTERNAL_POSITION_OUT_OF_BOUNDS.*9 codes and 8 times"):
        probe(codes_of(3), times_of(0), times_of(9), STORED, STORED_TIMES[:8], 0, 8)


def test_probing_rows_of_different_lengths_are_refused() -> None:
    with pytest.raises(
        StateError, match=r"INTERNAL_ARRAYS_INCONSISTENT.*differ in length.*Got: 1 codes, 1 lows, 2 highs"
    ):
        probe(codes_of(3), times_of(0), times_of(9, 9), STORED, STORED_TIMES, 0, 9)


@pytest.mark.parametrize("seed", range(20))
def test_ranges_that_lie_here_and_there_are_found_one_by_one(seed: int) -> None:
    random = np.random.default_rng(seed)
    stored = np.sort(random.integers(0, 8, 60)).astype(np.uint64)
    times = random.integers(0, 50, 60)
    times = times[np.lexsort((times, stored))]
    codes = np.sort(random.integers(0, 10, 30)).astype(np.uint64)
    low = random.integers(-5, 55, 30)
    high = low + random.integers(-3, 20, 30)
    found = probe(codes, low, high, stored, times, 0, 60, in_order=False)
    assert triples(found) == naive(codes, low, high, stored, times)
