from __future__ import annotations

import numpy as np
import pytest

from tidegate.errors import BatchFailed, FlowError, StateError
from tidegate.window.aggregate.aggregates import Merge
from tidegate.window.aggregate.closing import Stretches
from tidegate.window.aggregate.columns import Column
from tidegate.window.aggregate.combine import combine
from tidegate.window.aggregate.finals import finish
from tidegate.window.aggregate.merge_runs import PartialRun, merge_runs
from tidegate.window.aggregate.sums import decimal_words, unscaled
from tidegate_lab.simulate.windows.run_columns import in_order

BOTH = Stretches(np.array([0, 1]), np.array([0, 2]), np.array([3, 4]))


def codes(*values: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return np.array(values, np.uint64)


def test_a_float_sum_does_not_lose_small_numbers_next_to_a_large_one_that_left() -> None:
    values = np.array([1e20, 1.0, 2.0, 3.0])
    stretches = Stretches(np.arange(3), np.arange(3), np.arange(3) + 2)
    assert combine(Merge.SUM, [Column(values)], stretches)[0].values.tolist()[1:] == [3.0, 5.0]


def test_the_first_by_time_is_chosen_and_of_equal_times_the_smallest_value() -> None:
    times, ranks = Column(np.array([5, 3, 3, 9])), Column(np.array([0, 8, 7, 1]))
    assert combine(Merge.FIRST, [times, ranks], BOTH)[0].values.tolist() == [2, 2]
    assert combine(Merge.LAST, [times, ranks], BOTH)[0].values.tolist() == [0, 3]


def test_nothing_is_chosen_where_all_keys_are_null() -> None:
    times = Column(np.array([5, 3, 3, 9]), np.array([True, False, False, False]))
    (chosen,) = combine(Merge.FIRST, [times, Column(np.zeros(4, np.int64))], BOTH)
    assert chosen.valid is not None
    assert chosen.valid.tolist() == [True, False]
    assert chosen.values[0] == 0


def test_the_smallest_decimal_goes_by_both_words() -> None:
    values = [2**64, 2**64 - 1, -(2**64) - 1, -1]
    column = Column(decimal_words(values))
    assert [unscaled(one) for one in combine(Merge.MIN, [column], BOTH)[0].values] == [-(2**64) - 1] * 2
    assert [unscaled(one) for one in combine(Merge.MAX, [column], BOTH)[0].values] == [2**64, -1]


def test_averages_of_decimals_have_four_more_digits_rounded_half_away_from_zero() -> None:
    sums, counts = Column(decimal_words([2, -2, 5, 0])), Column(np.array([3, 3, 8, 0]))
    averages = finish("avg of decimals", [sums, counts])
    assert [unscaled(one) for one in averages.values] == [6667, -6667, 6250, 0]
    assert averages.valid is not None
    assert averages.valid.tolist() == [True, True, True, False]


def test_averages_of_decimals_have_as_many_more_digits_as_their_type_has_room_for() -> None:
    sums, counts = Column(decimal_words([2, 10**38 - 1])), Column(np.array([3, 3]))
    averages = finish("avg of decimals", [sums, counts], digits=0)
    assert [unscaled(one) for one in averages.values] == [1, (10**38 - 1) // 3]


@pytest.mark.parametrize("total", [10**34, -(10**34), 10**38 - 1])
def test_an_average_that_its_type_has_no_room_for_fails_the_batch(total: int) -> None:
    sums, counts = Column(decimal_words([total, 10**34 - 1])), Column(np.array([1, 1]))
    with pytest.raises(
        BatchFailed, match=r"AGGREGATE_OVERFLOW.*average does not fit into 38 digits.*wrong number.*double"
    ):
        finish("avg of decimals", [sums, counts])
    assert unscaled(finish("avg of decimals", [sums.take(np.array([1])), Column(np.array([1]))]).values[0])


def test_skewness_and_kurtosis_are_those_of_spark_s_documentation() -> None:
    values = np.array([-10.0, -20.0, 100.0, 1000.0])
    away = values - values.mean()
    moments = [Column(np.array([4.0])), Column(np.array([values.mean()]))]
    moments += [Column(np.array([(away**power).sum()])) for power in (2, 3, 4)]
    assert finish("skewness", moments[:4]).values[0] == pytest.approx(1.1135657469022013)
    assert finish("kurtosis", moments).values[0] == pytest.approx(-0.7014368047529618)


@pytest.mark.parametrize("final", ["skewness", "kurtosis"])
def test_the_shape_of_a_constant_is_null(final: str) -> None:
    moments = [Column(np.array([value])) for value in (3.0, 7.0, 0.0, 0.0, 0.0)]
    result = finish(final, moments[: 4 if final == "skewness" else 5])
    assert result.valid is not None
    assert not result.valid.any()


def test_lists_are_no_columns_of_numbers() -> None:
    with pytest.raises(FlowError, match=r"WINDOW_PARTIAL_NOT_NUMERIC.*Lists, sketches and states.*concat"):
        combine(Merge.CONCAT, [], BOTH)


def test_a_column_that_is_too_short_is_refused() -> None:
    with pytest.raises(StateError, match=r"WINDOW_PARTIAL_TOO_SHORT.*4 rows in windows, \[3\] in columns"):
        combine(Merge.SUM, [Column(np.zeros(3))], BOTH)


def test_other_types_are_refused_as_columns() -> None:
    with pytest.raises(StateError, match=r"WINDOW_PARTIAL_TYPE.*int64, float64, bool.*Got: float32.*rank"):
        Column(np.zeros(3, np.float32))
    with pytest.raises(StateError, match=r"WINDOW_PARTIAL_LENGTH.*3 values, 2 flags"):
        Column(np.zeros(3), np.ones(2, np.bool_))


def test_runs_with_and_without_check_codes_do_not_mix() -> None:
    with_check = PartialRun(codes(1), np.array([0]), codes(2))
    with pytest.raises(StateError, match=r"WINDOW_RUNS_DIFFER.*Either all runs must have check codes"):
        merge_runs([with_check, PartialRun(codes(1), np.array([0]))])


def test_key_columns_of_a_run_have_one_length() -> None:
    with pytest.raises(StateError, match=r"WINDOW_RUN_INVALID.*differ in length.*\[2, 1\]"):
        PartialRun(codes(1, 2), np.array([0]))


def test_without_runs_there_are_no_rows() -> None:
    assert merge_runs([]).order.size == 0
    assert merge_runs([]).groups == 0


def test_rows_of_equal_time_are_ordered_by_their_tie_and_stay_in_the_order_of_runs() -> None:
    one = PartialRun(codes(1, 1), np.array([-5, 3]), tie=np.array([0, 9]))
    two = PartialRun(codes(1, 1, 1), np.array([-5, 3, 3]), tie=np.array([0, -9, 9]))
    merged = merge_runs([one, two])
    assert merged.order.tolist() == [0, 2, 3, 1, 4]
    assert merged.groups == 1


def test_a_column_of_several_runs_is_null_only_where_a_run_says_so() -> None:
    parts = [Column(np.array([1, 2])), Column(np.array([3, 4]), np.array([False, True]))]
    column = in_order(parts, np.array([3, 0, 2]))
    assert column.values.tolist() == [4, 1, 3]
    assert column.valid is not None
    assert column.valid.tolist() == [True, True, False]
