from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.window.test_spec import specs

from tidegate.window.drop.decisions import Decisions
from tidegate.window.drop.early_drop import kept_times
from tidegate.window.drop.source_range import JoinReach, Step
from tidegate.window.drop.window_drop import WindowDrop, share_max
from tidegate.window.spec import WindowSpec


def test_rows_between_the_end_of_a_kept_window_and_the_start_of_the_next_go() -> None:
    spec = WindowSpec(30, 10)
    kept = kept_times(Decisions(10, 0, 20, ((3, 8),)), [[spec]])
    # Window 2 ends at 50 and window 8 begins at 80: (𝓑 + 1) · slide − size = 6 · 10 − 30.
    assert kept.between().to_json() == {"low": [50], "high": [80]}


def test_windows_with_an_offset_free_the_same_rows_later() -> None:
    kept = kept_times(Decisions(10, 0, 20, ((3, 8),), offset_us=4), [[WindowSpec(30, 10, 4)]])
    assert kept.between().to_json() == {"low": [54], "high": [84]}


def test_over_inner_windows_with_another_offset_the_rows_of_those_that_begin_inside_are_kept() -> None:
    path: list[Step] = [WindowSpec(30, 10, 4), WindowSpec(5, 5, 1)]
    # Window 2 is [24, 54), its last inner one [51, 56); window 8 begins at 84, its first inner one at 86.
    kept = kept_times(Decisions(10, 0, 20, ((3, 8),), offset_us=4), [path])
    assert kept.between().to_json() == {"low": [56], "high": [86]}


def test_a_gap_shorter_than_a_window_lets_no_row_go() -> None:
    assert kept_times(Decisions(10, 0, 20, ((3, 5),)), [[WindowSpec(30, 10)]]).low.size == 1


def test_without_dropped_windows_all_rows_are_kept() -> None:
    kept = kept_times(Decisions(10, 0, 20), [[WindowSpec(30, 10)]])
    assert kept.contain(np.array([-(2**61), 0, 2**61])).all()


def test_several_outputs_keep_what_any_of_them_needs() -> None:
    decisions = Decisions(60, 0, 20, ((3, 8),))
    short, long = [WindowSpec(10, 10)], [WindowSpec(200, 60)]
    assert kept_times(decisions, [short]).between().to_json() == {"low": [180], "high": [480]}
    assert kept_times(decisions, [short, long]).between().to_json() == {"low": [320], "high": [480]}


def test_through_a_join_rows_that_wait_for_partners_of_a_kept_window_stay() -> None:
    path: list[Step] = [WindowSpec(10, 10), JoinReach(back_us=7)]
    kept = kept_times(Decisions(10, 0, 20, ((3, 8),)), [path])
    assert kept.between().to_json() == {"low": [30], "high": [73]}


@given(st.lists(specs(), min_size=1, max_size=4), st.integers(1, 8), st.floats(0, 1), st.integers(0, 99))
@settings(max_examples=settings().max_examples // 2)
def test_kept_are_exactly_the_rows_of_which_some_window_is_kept(
    path: list[WindowSpec], gap: int, part: float, seed: int
) -> None:
    drop = WindowDrop(path[0].slide_us, gap, seed, offset_us=path[0].offset_us)
    decisions = drop.decide(drop.begin(-50), 300, part * share_max(gap)).decisions
    times = np.arange(-200, 600)
    starts = path[0].start(np.arange(-400, 800))
    wanted = set(starts[decisions.kept(starts)].tolist())
    for spec in path:
        begins = [time for time in wanted if (time - spec.offset_us) % spec.slide_us == 0]
        wanted = {time for begin in begins for time in range(begin, begin + spec.size_us)}
    kept = times[kept_times(decisions, [path]).contain(times)]
    assert kept.tolist() == sorted(wanted & set(times.tolist()))
