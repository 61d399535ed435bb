"""The laws of dropping windows by groups: the gap of each group, the share of each window, and no memory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tidegate.errors import FlowError
from tidegate.window.drop.group_drop import COHORTS, DecidedGroups, GroupDrop
from tidegate.window.drop.window_drop import WindowDrop, share_max


@st.composite
def drops(draw: st.DrawFn, slide_us: int | None = None) -> GroupDrop:
    gap = draw(st.integers(1, 12) | st.sampled_from([63, 64, 500]))
    slide = slide_us or draw(st.integers(1, 50))
    seed, per_coin = draw(st.integers(0, 2**70)), draw(st.integers(0, gap))
    return GroupDrop(WindowDrop(slide, gap, seed, per_coin, draw(st.integers(0, 49))))


#: How far each call decides, and its p as a part of the most.
CALLS = st.lists(st.tuples(st.integers(0, 2_000), st.floats(0, 1) | st.sampled_from([0.0, 1.0])), min_size=1)


def runs_of(dropped: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The lengths of all runs, cohort by cohort."""
    edges = np.diff(dropped.astype(np.int8), axis=1, prepend=0, append=0)
    lengths: NDArray[np.int64] = np.nonzero(edges < 0)[1] - np.nonzero(edges > 0)[1]
    return lengths


def gaps_us(decided: NDArray[np.bool_], slide_us: int) -> NDArray[np.int64]:
    """By cohort: how long no window before the first undecided one is kept."""
    backwards = np.cumsum(~decided[:, ::-1], axis=1) == 0
    lengths: NDArray[np.int64] = backwards.sum(axis=1) * slide_us
    return lengths


def decided(drop: GroupDrop, calls: list[tuple[int, float]], from_us: int = 0) -> DecidedGroups:
    """What calls decide, each of what follows; a call remembers the last windows alone."""
    windows, at_us = drop.windows, from_us
    begin = -((windows.offset_us - from_us) // windows.slide_us)
    found = np.zeros((COHORTS, 0), np.bool_)
    for further, part in calls:
        at_us += further
        next_us = (begin + found.shape[1]) * windows.slide_us + windows.offset_us
        gaps = gaps_us(found, windows.slide_us)
        found = np.hstack(
            [found, drop.decide(next_us, gaps, at_us, part * share_max(windows.max_gap)).dropped]
        )
    return DecidedGroups(begin, found)


@given(drops(), CALLS, st.integers(-(10**6), 10**6))
def test_no_group_lacks_more_windows_in_a_row_than_the_gap_however_the_share_changes(
    drop: GroupDrop, calls: list[tuple[int, float]], from_us: int
) -> None:
    found = decided(drop, calls, from_us)
    assert max(runs_of(found.dropped), default=0) <= drop.windows.max_gap


@given(st.lists(st.tuples(drops(10), st.floats(0, 1), st.integers(0, 600)), min_size=2, max_size=6))
def test_another_gap_or_seed_makes_no_run_longer_than_the_longer_gap(
    runs: list[tuple[GroupDrop, float, int]],
) -> None:
    # Runs of a query, each with another gap, seed and offset: what was decided stays.
    found = np.zeros((COHORTS, 0), np.bool_)
    for drop, part, length in runs:
        gap = drop.windows.max_gap
        more = drop.decide(
            drop.windows.offset_us, gaps_us(found, 10), drop.windows.offset_us + length, part * share_max(gap)
        )
        before = found.shape[1]
        found = np.hstack([found, more.dropped])
        # A run that began under a longer gap is never made longer.
        tail = found[:, max(0, before - gap) :]
        grown = tail.copy()
        grown[:, : min(gap, before)] &= (gaps_us(found[:, :before], 1) < gap)[:, None]
        assert max(runs_of(grown), default=0) <= gap
    assert max(runs_of(found), default=0) <= max(drop.windows.max_gap for drop, _, _ in runs)


@given(drops(), st.integers(0, 500), st.floats(0, 1), st.lists(st.integers(0, 300), min_size=1))
def test_cutting_time_into_calls_changes_nothing(
    drop: GroupDrop, gap: int, part: float, steps: list[int]
) -> None:
    p = part * share_max(drop.windows.max_gap)
    slide, offset = drop.windows.slide_us, drop.windows.offset_us
    first = np.full((COHORTS, gap), True)
    at_once = drop.decide(offset, gaps_us(first, slide), offset + sum(steps), p)
    found, at_us = first, offset
    for step in steps:
        at_us += step
        done = found.shape[1] - gap
        more = drop.decide(offset + done * slide, gaps_us(found, slide), at_us, p)
        found = np.hstack([found, more.dropped])
    assert (found[:, gap:] == at_once.dropped).all()


@given(drops(), st.integers(-(10**9), 10**9), st.floats(0, 1), st.floats(0, 1))
def test_a_larger_share_drops_what_a_smaller_one_drops(
    drop: GroupDrop, begin: int, one: float, other: float
) -> None:
    windows, most = np.arange(begin, begin + 40), share_max(drop.windows.max_gap)
    fewer, more = (drop.dropped(windows, part * most) for part in sorted((one, other)))
    assert not (fewer & ~more).any()


@pytest.mark.parametrize(("gap", "per_coin"), [(1, 1), (3, 1), (3, 3), (10, 1), (12, 6), (60, 20)])
@pytest.mark.parametrize("part", [0.1, 0.3, 0.5, 0.9, 1.0])
def test_every_window_loses_the_share_of_its_groups_and_every_group_of_its_windows(
    gap: int, per_coin: int, part: float
) -> None:
    p = part * share_max(gap)
    for seed in range(3):
        drop = GroupDrop(WindowDrop(10, gap, seed, per_coin))
        lost = drop.dropped(np.arange(29_000_000, 29_000_000 + 40 * (gap + 1)), p)
        by_window, by_group = lost.mean(axis=0), lost.mean(axis=1)
        assert abs(lost.mean() - p) < 0.02
        assert np.abs(by_window - p).max() < 0.15
        assert by_window.std() < 0.04
        assert np.abs(by_group - p).max() < 0.07


def test_nothing_is_dropped_at_a_share_of_zero_and_all_but_one_of_the_gap_at_the_most() -> None:
    drop, windows = GroupDrop(WindowDrop(10, 4, 1)), np.arange(1_000)
    assert not drop.dropped(windows, 0.0).any()
    kept = ~drop.dropped(windows, share_max(4))
    assert (kept.sum(axis=1) == 200).all()
    # Groups keep different windows, so no window lacks all of them.
    assert kept.any(axis=0).all()


def test_a_share_beyond_the_gap_is_refused() -> None:
    with pytest.raises(FlowError, match="WINDOW_DROP_RATIO_INVALID"):
        GroupDrop(WindowDrop(10, 1)).decide(0, np.zeros(COHORTS, np.int64), 100, 0.6)
