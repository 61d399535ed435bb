from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.window.test_spec import specs

from tidegate.window.panes import Panes
from tidegate.window.spec import WindowSpec

HALF = settings(max_examples=settings().max_examples // 2)


@given(specs(), st.integers(-200, 200))
@HALF
def test_all_times_of_a_pane_lie_in_the_same_windows(spec: WindowSpec, pane: int) -> None:
    panes = Panes(spec)
    start, end = panes.start(np.array([pane, pane + 1]))
    times = np.arange(start, end)
    assert times.size > 0
    assert set(panes.of(times).tolist()) == {pane}
    first, last = panes.windows(np.array([pane]))
    for held in spec.holding(times):
        assert len(set(held.tolist())) == 1
    assert (first[0], last[0]) == tuple(held[0] for held in spec.holding(times))


@given(specs(), st.integers(-50, 50))
@HALF
def test_a_window_is_the_union_of_its_panes(spec: WindowSpec, window: int) -> None:
    panes = Panes(spec)
    first = np.array([window]) * panes.per_slide
    end = first + panes.per_window
    assert panes.start(first)[0] == spec.start(np.array([window]))[0]
    assert panes.start(end)[0] == spec.end(np.array([window]))[0]


@given(specs(), st.integers(-100, 100))
@HALF
def test_no_cut_is_needless(spec: WindowSpec, pane: int) -> None:
    panes = Panes(spec)
    first, last = panes.windows(np.array([pane, pane + 1]))
    assert (first[0], last[0]) != (first[1], last[1])


def test_a_size_that_is_no_multiple_of_the_slide_makes_two_panes_a_slide_not_sixty() -> None:
    minute_and_a_bit = Panes(WindowSpec(61_000_000, 60_000_000))
    assert minute_and_a_bit.per_slide == 2
    assert minute_and_a_bit.per_window == 3
    assert Panes(WindowSpec(60_000_000, 1_000_000)).per_window == 60
