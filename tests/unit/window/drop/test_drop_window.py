from __future__ import annotations

import pytest

from tidegate.errors import FlowError
from tidegate.window.drop.drop_window import DropWindow, before, before_join, result, shared
from tidegate.window.spec import WindowSpec

A0, A1, A2 = WindowSpec(4, 1), WindowSpec(3, 2), WindowSpec(3, 3)


def shape(drop: DropWindow) -> tuple[int, int]:
    return drop.size_us, drop.slide_us


def test_one_window_alone_is_dropped_as_it_is() -> None:
    assert before(A1, result(A1, 10)) == DropWindow(3, 2, 10)


def test_the_pipeline_of_figure_4_is_5_by_3() -> None:
    assert shape(before(A1, before(A2, result(A2, 1)))) == (5, 3)


def test_the_fan_out_of_figure_5_is_7_by_6() -> None:
    assert shape(shared([before(A1, result(A1, 3)), before(A2, result(A2, 2))])) == (7, 6)


def test_the_composition_of_both_is_10_by_6_in_either_order() -> None:
    last = [before(A1, result(A1, 30)), before(A2, result(A2, 20))]
    fan_out_first = before(A0, shared(last))
    pipeline_first = shared([before(A0, drop) for drop in last])
    assert [shape(before(A0, drop)) for drop in last] == [(6, 2), (6, 3)]
    assert shape(fan_out_first) == (10, 6)
    assert fan_out_first == pipeline_first


def test_gaps_are_counted_in_windows_of_the_shared_slide() -> None:
    # One window of slide 6 is three of A1 and two of A2.
    assert shared([result(A1, 31), result(A2, 100)]).max_gap == 10
    assert shared([result(A1, 100), result(A2, 9)]).max_gap == 4
    assert shared([result(A1, 2), result(A2, 9)]).max_gap == 0


def test_a_window_whose_rows_also_come_out_is_one_of_its_own_children() -> None:
    over_it = before(A2, result(A2, 10))
    assert shape(before(A1, shared([result(A1, 10), over_it]))) == (8, 6)
    assert shape(shared([before(A1, result(A1, 10)), before(A1, over_it)])) == (8, 6)


def test_below_a_join_the_logical_window_begins_earlier() -> None:
    joined = before_join(5, 0, before(A2, result(A2, 10)))
    assert joined == DropWindow(8, 3, 10, lead_us=5)
    assert before(A0, joined) == DropWindow(11, 3, 10, lead_us=5)
    assert shared([joined, before(A1, result(A1, 10))]) == DropWindow(6 + 1 + 5, 6, 3, lead_us=5)


@pytest.mark.parametrize(("gap", "drops"), [(9, False), (10, True)])
def test_rows_go_early_from_a_gap_of_size_by_slide_on(gap: int, drops: bool) -> None:
    spec = WindowSpec(100, 10)
    assert before(spec, result(spec, gap)).drops_rows is drops


def test_results_can_always_be_dropped() -> None:
    assert result(WindowSpec(100, 1), 1).drops_rows


@pytest.mark.parametrize("gap", [0, -1])
def test_a_gap_of_less_than_a_window_is_refused(gap: int) -> None:
    with pytest.raises(FlowError, match=r"OUTPUT_MAX_GAP_RANGE.*must be at least one window"):
        result(A1, gap)


def test_a_logical_window_without_length_is_refused() -> None:
    with pytest.raises(FlowError, match=r"DROP_WINDOW_INVALID.*size and a slide above zero"):
        DropWindow(0, 1, 1)
