from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tidegate.errors import FlowError
from tidegate_lab.workloads.selective_join import Rows, Steps, Workload, bursts, draw, single_values, top_item

MINUTE = Steps(((60.0, 200.0),))


def sizes(rows: Rows) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.diff(rows.bounds)


def test_the_same_settings_give_the_same_rows() -> None:
    for one, other in zip(
        draw(Workload(), (MINUTE, MINUTE)), draw(Workload(), (MINUTE, MINUTE)), strict=True
    ):
        np.testing.assert_array_equal(one.times_us, other.times_us)
        np.testing.assert_array_equal(one.items, other.items)


def test_another_seed_gives_other_rows() -> None:
    one, _ = draw(Workload(), (MINUTE, MINUTE))
    other, _ = draw(Workload(seed=8), (MINUTE, MINUTE))
    assert one.items.tolist() != other.items.tolist()


def test_another_rate_of_the_left_leaves_the_right_alone() -> None:
    _, one = draw(Workload(), (MINUTE, MINUTE))
    _, other = draw(Workload(), (Steps(((60.0, 20.0),)), MINUTE))
    np.testing.assert_array_equal(one.items, other.items)


def test_set_sizes_are_normal_and_items_do_not_repeat_within_a_set() -> None:
    rows, _ = draw(Workload(), (MINUTE, MINUTE))
    assert abs(sizes(rows).mean() - 5) < 0.05
    assert abs(sizes(rows).std() - 1) < 0.1
    row = np.repeat(np.arange(sizes(rows).size), sizes(rows))
    assert np.unique(np.stack([row, rows.items]), axis=1).shape[1] == rows.items.size


def test_single_values_are_sets_of_one_out_of_five_thousand() -> None:
    rows, _ = draw(single_values(), (MINUTE, MINUTE))
    assert (sizes(rows) == 1).all()
    assert 1000 < rows.items.max() < 5000


def test_first_draws_follow_zipf_over_the_rotated_ranks() -> None:
    still = Workload(period_seconds=1e9, skew=1.0, items=20)
    left, _ = draw(still, (Steps(((100.0, 400.0),)), MINUTE))
    first = left.items[left.bounds[:-1]]
    expected = 1 / np.arange(1, 21)
    expected /= expected.sum()
    assert np.abs(np.bincount(first, minlength=20) / first.size - expected).max() < 0.01


@pytest.mark.parametrize(
    ("second", "left", "right"), [(0.0, 0, 37), (10.0, 25, 62), (25.0, 62, 0), (40.0, 0, 37)]
)
def test_the_top_item_rotates_with_the_period_and_the_right_one_is_behind(
    second: float, left: int, right: int
) -> None:
    moment = np.array([second])
    assert top_item(Workload(), 0, moment).tolist() == [left]
    assert top_item(Workload(), 1, moment).tolist() == [right]


def test_a_right_row_looks_like_a_left_row_that_came_a_shift_earlier() -> None:
    left, right = draw(replace(Workload(), skew=1.5), (Steps(((40.0, 500.0),)),) * 2)
    histogram = []
    for rows, begin in ((left, 5.0), (right, 30.0)):
        inside = (rows.times_us >= begin * 1e6) & (rows.times_us < (begin + 2) * 1e6)
        histogram.append(np.bincount(rows.items[np.repeat(inside, sizes(rows))], minlength=100))
    one, other = (h / h.sum() for h in histogram)
    assert np.minimum(one, other).sum() > 0.85


def test_rates_step_exactly_and_times_ascend() -> None:
    left, _ = draw(Workload(), (Steps(((10.0, 100.0), (5.0, 500.0), (5.0, 20.0))), MINUTE))
    assert np.histogram(left.times_us / 1e6, [0, 10, 15, 20])[0].tolist() == [1000, 2500, 100]
    assert (np.diff(left.times_us) >= 0).all()


def test_a_shift_can_move_while_the_streams_run() -> None:
    moved = Workload(shift_seconds=Steps(((10.0, 0.0), (10.0, 20.0))))
    assert top_item(moved, 1, np.array([9.0, 11.0])).tolist() == [22, 77]


def test_bursts_come_at_the_end_of_every_round() -> None:
    rate = bursts(seconds=20, every=10, lasting=2, calm=100, burst=400)
    assert rate.seconds == 20
    assert rate.at(np.array([0.0, 7.9, 8.1, 10.1, 19.0, 25.0])).tolist() == [100, 100, 400, 100, 400, 400]


def test_a_stream_without_rows_is_empty_and_not_an_error() -> None:
    left, right = draw(Workload(), (Steps(((5.0, 0.0),)), MINUTE))
    assert left.times_us.size == left.items.size == 0
    assert right.times_us.size == 12_000


@pytest.mark.parametrize("wrong", [{"items": 0}, {"skew": -1.0}, {"period_seconds": 0.0}, {"size_mean": 0.5}])
def test_settings_that_make_no_stream_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(FlowError, match=next(iter(wrong))):
        replace(Workload(), **wrong)


def test_steps_of_no_length_are_refused() -> None:
    with pytest.raises(FlowError, match="longer than zero"):
        Steps(((0.0, 5.0),))
