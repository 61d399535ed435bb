"""The laws of the window drop operator: the gap is never exceeded, p holds, and nothing is decided twice."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.window.drop.window_drop import DropState, WindowDrop, coins, share_max

GAPS = st.integers(1, 12)
HALF = settings(max_examples=settings().max_examples // 2)


@st.composite
def stories(draw: st.DrawFn) -> tuple[WindowDrop, int, list[tuple[int, float]]]:
    """A drop, a first time, and calls: how much further, and with which p."""
    drop = WindowDrop(
        draw(st.integers(1, 50)), draw(GAPS), draw(st.integers(0, 2**70)), offset_us=draw(st.integers(0, 49))
    )
    p = st.floats(0, share_max(drop.max_gap)) | st.sampled_from([0.0, share_max(drop.max_gap)])
    steps = st.tuples(st.integers(0, 3_000), p)
    return drop, draw(st.integers(-(10**6), 10**6)), draw(st.lists(steps, min_size=1, max_size=8))


def told(drop: WindowDrop, from_us: int, calls: list[tuple[int, float]]) -> list[DropState]:
    states, up_to = [drop.begin(from_us)], from_us
    for further, p in calls:
        up_to += further
        states.append(drop.decide(states[-1], up_to, p))
    return states


@given(stories())
@HALF
def test_never_more_than_the_gap_in_a_row(story: tuple[WindowDrop, int, list[tuple[int, float]]]) -> None:
    drop = story[0]
    decisions = told(*story)[-1].decisions
    assert all(1 <= end - first <= drop.max_gap for first, end in decisions.dropped)
    assert all(one[1] < other[0] for one, other in pairwise(decisions.dropped))


@given(stories())
@HALF
def test_a_decided_window_is_never_decided_again(
    story: tuple[WindowDrop, int, list[tuple[int, float]]],
) -> None:
    drop = story[0]
    states = told(*story)
    for earlier, later in pairwise(states):
        decided = np.arange(earlier.decisions.begin, earlier.decisions.end) * drop.slide_us + drop.offset_us
        assert (earlier.decisions.kept(decided) == later.decisions.kept(decided)).all()


@given(stories())
@HALF
def test_dropped_are_the_windows_of_coins_that_said_drop_less_those_owed(
    story: tuple[WindowDrop, int, list[tuple[int, float]]],
) -> None:
    drop, from_us, calls = story
    p = max(p for _, p in calls)
    states = told(drop, from_us, [(further, p) for further, _ in calls])
    decisions = states[-1].decisions
    windows = np.arange(decisions.begin, decisions.end)
    coined = int((coins(windows // drop.max_gap, drop.seed) < p).sum()) if p else 0
    assert sum(end - first for first, end in decisions.dropped) == coined - states[-1].drop_debt


@given(stories())
@HALF
def test_an_offset_shifts_the_windows_and_no_decision(
    story: tuple[WindowDrop, int, list[tuple[int, float]]],
) -> None:
    drop, from_us, calls = story
    shifted = told(drop, from_us, calls)[-1]
    plain = told(replace(drop, offset_us=0), from_us - drop.offset_us, calls)[-1]
    assert shifted == replace(plain, decisions=replace(plain.decisions, offset_us=drop.offset_us))


@given(stories())
@HALF
def test_cutting_time_into_calls_changes_nothing(
    story: tuple[WindowDrop, int, list[tuple[int, float]]],
) -> None:
    drop, from_us, calls = story
    p = calls[0][1]
    by_steps = told(drop, from_us, [(further, p) for further, _ in calls])[-1]
    at_once = told(drop, from_us, [(sum(further for further, _ in calls), p)])[-1]
    assert by_steps == at_once


@pytest.mark.parametrize("gap", [1, 3, 10])
@pytest.mark.parametrize("of_the_most", [0.1, 0.5, 0.9, 1.0])
def test_over_a_long_run_the_share_dropped_is_p(gap: int, of_the_most: float) -> None:
    p, batches = of_the_most * share_max(gap), 4_000
    shares = []
    for seed in range(5):
        drop = WindowDrop(10, gap, seed)
        decisions = drop.decide(drop.begin(0), (batches * gap - 1) * 10, p).decisions
        shares.append(sum(end - first for first, end in decisions.dropped) / decisions.end)
    # Four standard deviations of the mean of so many coins; half as much again for what is still owed.
    bound = 6 * sqrt(p * (1 - p) / (batches * len(shares)))
    assert abs(np.mean(shares) - p) < bound
