"""Bits of matched rows."""

from __future__ import annotations

import numpy as np
import pytest

from tidegate.errors import StateError
from tidegate.join.probe.matched_bits import count, count_between, no_bits, set_bits, union, unset_positions


def test_bits_lie_as_numpy_packs_them_little_end_first() -> None:
    bits = no_bits(19)
    set_bits(bits, np.array([0, 9, 18, 9, 7], np.int64))
    expected = np.zeros(24, bool)
    expected[[0, 7, 9, 18]] = True
    np.testing.assert_array_equal(bits, np.packbits(expected, bitorder="little"))
    assert count(bits) == 4


def test_unset_rows_are_found_inside_the_asked_range_only() -> None:
    bits = no_bits(20)
    set_bits(bits, np.array([3, 5, 8], np.int64))
    assert unset_positions(bits, 2, 10).tolist() == [2, 4, 6, 7, 9]
    assert unset_positions(bits, 5, 6).tolist() == []
    assert unset_positions(bits, 6, 6).tolist() == []
    assert unset_positions(bits, 20, 24).tolist() == [20, 21, 22, 23]


def test_set_rows_are_counted_inside_the_asked_range_only() -> None:
    bits = no_bits(20)
    set_bits(bits, np.array([3, 5, 8, 19], np.int64))
    wanted = {(0, 20): 4, (0, 0): 0, (3, 4): 1, (4, 5): 0, (5, 9): 2, (8, 16): 1, (9, 19): 0, (19, 20): 1}
    assert {part: count_between(bits, *part) for part in wanted} == wanted


def test_sets_are_united_without_touching_either() -> None:
    a, b = no_bits(9), no_bits(9)
    set_bits(a, np.array([1, 8], np.int64))
    set_bits(b, np.array([1, 2], np.int64))
    both = union(a, b)
    assert unset_positions(both, 0, 9).tolist() == [0, 3, 4, 5, 6, 7]
    assert (count(a), count(b)) == (2, 2)


def test_the_set_over_no_rows_works() -> None:
    bits = no_bits(0)
    set_bits(bits, np.array([], np.int64))
    assert count(union(bits, bits)) == 0
    assert unset_positions(bits, 0, 0).tolist() == []


def test_read_only_bits_can_be_read() -> None:
    bits = np.frombuffer(b"\x05", np.uint8)
    assert unset_positions(bits, 0, 4).tolist() == [1, 3]
    assert count(bits) == 2


@pytest.mark.parametrize("outside", [-1, 16])
def test_a_row_without_a_bit_is_refused(outside: int) -> None:
    with pytest.raises(
        StateError, match=rf"INTERNAL_POSITION_OUT_OF_BOUNDS.*Got: row {outside} of at most 16"
    ):
        set_bits(no_bits(10), np.array([1, outside], np.int64))


@pytest.mark.parametrize(("start", "stop"), [(-1, 2), (3, 2), (0, 17)])
def test_a_range_without_bits_is_refused(start: int, stop: int) -> None:
    with pytest.raises(
        StateError, match=rf"INTERNAL_POSITION_OUT_OF_BOUNDS.*Got: rows {start} to {stop} of at most 16"
    ):
        unset_positions(no_bits(10), start, stop)


def test_sets_of_different_pieces_are_not_united() -> None:
    with pytest.raises(
        StateError, match=r"INTERNAL_ARRAYS_INCONSISTENT.*differ in length.*Got: 1 and 2 bytes"
    ):
        union(no_bits(8), no_bits(9))
