from __future__ import annotations

import numpy as np
import pytest

from tidegate.errors import FlowError
from tidegate.window.drop.drop_cost import (
    Costs,
    dropped_rows,
    marked_rows,
    p_for_excess,
    paper_selectivities,
    random_drop_work,
    random_p_for_excess,
    window_drop_work,
)
from tidegate.window.drop.drop_window import DropWindow, before, result
from tidegate.window.drop.early_drop import carries_mark, kept_times
from tidegate.window.drop.window_drop import WindowDrop
from tidegate.window.spec import WindowSpec

GAP = 10


def drop_of(size: int, slide: int) -> DropWindow:
    spec = WindowSpec(size, slide)
    return before(spec, result(spec, GAP))


def costs_of(slide: int) -> Costs:
    """The query of figure 12: a delay of 5 ms before and behind a window; the aggregate itself is cheap."""
    return Costs(
        before=5.0, aggregate=0.02, behind=5.0, results_per_row=1 / slide, drop=0.01, check_for_mark=0.005,
        pass_mark=0.005, open_or_skip=0.005,
    )  # fmt: skip


@pytest.mark.parametrize("size", [25, 50, 100, 200])
def test_at_a_quarter_too_much_tumbling_windows_lose_a_fifth(size: int) -> None:
    p = p_for_excess(costs_of(size), drop_of(size, size), 0.25)
    assert p is not None
    assert p == pytest.approx(0.20, abs=0.01)
    assert p <= 0.21


@pytest.mark.parametrize("size", [25, 50, 100, 200])
def test_at_a_quarter_too_much_windows_that_slide_by_one_lose_two_fifths(size: int) -> None:
    p = p_for_excess(costs_of(1), drop_of(size, 1), 0.25)
    assert p is not None
    assert p == pytest.approx(0.39, abs=0.02)
    assert p <= 0.41


def test_the_load_falls_in_a_straight_line_from_the_full_load() -> None:
    costs, window = Costs(5.0, 1.0, 3.0, results_per_row=0.1), drop_of(20, 10)
    assert window_drop_work(costs, window, 0.0) == pytest.approx(costs.full)
    works = [window_drop_work(costs, window, p) for p in (0.0, 0.3, 0.6)]
    assert works[0] - works[1] == pytest.approx(works[1] - works[2])


@pytest.mark.parametrize(("size", "slide"), [(10, 10), (40, 10), (25, 10), (100, 10), (7, 3)])
@pytest.mark.parametrize("p", [0.1, 0.5, 0.8])
def test_our_selectivities_are_those_of_the_operator_itself(size: int, slide: int, p: float) -> None:
    window, length = drop_of(size, slide), 200_000
    drop = WindowDrop(slide, GAP, seed=4)
    decisions = drop.decide(drop.begin(0), length, p).decisions
    went = decisions.dropped_count / decisions.end
    times = np.arange(length)
    kept = kept_times(decisions, [[WindowSpec(size, slide)]]).contain(times)
    marks = (~kept & carries_mark(times, slide)).mean()
    assert 1 - kept.mean() == pytest.approx(went * dropped_rows(window), abs=0.01)
    assert marks == pytest.approx(went * marked_rows(window), abs=0.02)


def test_the_printed_share_of_kept_rows_is_ours_for_tumbling_windows_and_higher_where_they_overlap() -> None:
    tumbling, overlapping = drop_of(10, 10), drop_of(50, 10)
    assert paper_selectivities(tumbling, 0.4)[0] == pytest.approx(1 - 0.4 * dropped_rows(tumbling))
    assert paper_selectivities(overlapping, 0.4)[0] > 1 - 0.4 * dropped_rows(overlapping)
    assert paper_selectivities(drop_of(100, 1), 0.4) == (1.0, 0.0)


def test_behind_a_window_rows_come_once_a_slide_and_all_of_a_dropped_batch_go() -> None:
    assert dropped_rows(result(WindowSpec(30, 10), 4), grid_us=10) == 1.0
    # Of ten tumbling windows in a row, seen from in front of a nest: rows of nine and a bit.
    assert dropped_rows(DropWindow(109, 100, 10)) == pytest.approx(991 / 1000)


def test_a_random_drop_behind_the_windows_saves_nothing_in_front_of_them() -> None:
    costs = Costs(1.0, 0.0, 1.0)
    assert random_drop_work(costs, 0.4) == pytest.approx(2.0 - 0.4)
    assert random_p_for_excess(costs, 0.25) == pytest.approx(0.4)
    assert random_p_for_excess(costs, 1.1) is None
    # Tumbling windows of a hundred rows: even without any result there is too much to do.
    assert random_p_for_excess(costs_of(100), 0.25) is None


def test_without_excess_nothing_is_dropped_and_beyond_the_gap_nothing_helps() -> None:
    costs = Costs(1.0, 0.0, 1.0)
    assert p_for_excess(costs, drop_of(10, 10), 0.0) == 0.0
    assert p_for_excess(costs, drop_of(10, 10), 9.0) == pytest.approx(0.9)
    assert p_for_excess(costs, drop_of(10, 10), 10.1) is None


def test_a_negative_cost_is_refused() -> None:
    with pytest.raises(FlowError, match="zero or more"):
        Costs(1.0, -1.0, 1.0)
