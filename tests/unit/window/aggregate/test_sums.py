from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tidegate.errors import BatchFailed
from tidegate.window.aggregate.closing import Stretches
from tidegate.window.aggregate.sums import decimal_sums, decimal_words, integer_sums, unscaled

LARGEST = 2**63 - 1


def sliding(rows: int, size: int) -> Stretches:
    begin = np.arange(rows - size + 1)
    return Stretches(begin + 100, begin, begin + size)


def integers(*values: int) -> NDArray[np.int64]:
    return np.array(values, np.int64)


def test_a_sum_that_fits_is_exact_though_sums_on_its_way_do_not_fit() -> None:
    values = integers(LARGEST, LARGEST, -LARGEST, -LARGEST, 5)
    assert integer_sums(values, sliding(5, 5)).tolist() == [5]


def test_the_largest_sum_that_fits_is_no_overflow() -> None:
    assert integer_sums(integers(LARGEST - 1, 1), sliding(2, 2)).tolist() == [LARGEST]
    assert integer_sums(integers(-LARGEST, -1), sliding(2, 2)).tolist() == [-(2**63)]


@pytest.mark.parametrize("values", [(LARGEST, 1), (-LARGEST, -2), (LARGEST, LARGEST)])
def test_a_sum_beyond_64_bits_fails_the_batch_and_names_the_window(values: tuple[int, int]) -> None:
    with pytest.raises(
        BatchFailed,
        match=r"AGGREGATE_OVERFLOW.*64 bits.*window number 101, and 0 more.*wrong number.*decimal",
    ):
        integer_sums(integers(0, *values, 0, 0), Stretches(*map(np.array, ([100, 101], [0, 1], [1, 3]))))


def test_sums_of_no_rows_are_none() -> None:
    assert integer_sums(integers(), Stretches(*np.zeros((3, 0), np.int64))).size == 0


def test_decimals_add_up_exactly_over_both_words() -> None:
    values = [2**64 - 1, 1, -(2**64), -1, 10**37, -(10**30)]
    sums = decimal_sums(decimal_words(values), sliding(6, 3))
    assert [unscaled(words) for words in sums] == [sum(values[k : k + 3]) for k in range(4)]


@pytest.mark.parametrize("sign", [1, -1])
def test_a_sum_of_more_than_38_digits_fails_the_batch(sign: int) -> None:
    nines = sign * (10**38 - 1)
    assert unscaled(decimal_sums(decimal_words([nines, 0]), sliding(2, 2))[0]) == nines
    for too_much in ([nines, sign], [nines] * 4):
        with pytest.raises(BatchFailed, match=r"AGGREGATE_OVERFLOW.*38 digits.*window number 100"):
            decimal_sums(decimal_words(too_much), sliding(len(too_much), len(too_much)))
