"""The table of gaps against the gaps themselves."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidegate.window.drop.gap_table import CELLS_MAX, NO_GAPS, gap_table
from tidegate.window.drop.intervals import Intervals


@st.composite
def gaps(draw: st.DrawFn, unit: int) -> Intervals:
    edges = sorted(draw(st.sets(st.integers(-200, 200), max_size=20)))
    edges = edges[: len(edges) // 2 * 2]
    return Intervals(np.array(edges[::2], np.int64) * unit, np.array(edges[1::2], np.int64) * unit)


@given(gaps(7), st.integers(-1500, 1500), st.integers(0, 3000))
def test_a_time_is_inside_just_where_it_is_in_a_gap(given_gaps: Intervals, low: int, length: int) -> None:
    table = gap_table(given_gaps, low, low + length)
    times = np.arange(low, low + length)
    assert (table.inside(times) == given_gaps.contain(times)).all()


@given(gaps(1_000_003), st.booleans())
def test_too_many_cells_are_made_larger_and_never_take_a_time_that_is_kept(
    given_gaps: Intervals, exact: bool
) -> None:
    odd = Intervals(given_gaps.low + 1, given_gaps.high) if given_gaps.low.size else given_gaps
    table = gap_table(odd, -(10**12), 10**12, exact=exact and odd.low.size < 2)
    assert exact or len(table.cells) <= CELLS_MAX
    near = np.concatenate([odd.low, odd.high, odd.low - 1, odd.high - 1, (odd.low + odd.high) // 2])
    inside = table.inside(near)
    assert not (inside & ~odd.contain(near)).any()


def test_without_gaps_nothing_is_inside() -> None:
    nothing = Intervals(np.zeros(0, np.int64), np.zeros(0, np.int64))
    assert gap_table(nothing, -5, 5) is NO_GAPS
    assert not NO_GAPS.inside(np.array([-(2**62), 0, 2**62])).any()


def test_a_table_covers_most_of_long_gaps_even_where_cells_are_coarse() -> None:
    low = np.arange(0, 2000, 2, dtype=np.int64) * 10_000_019
    long = Intervals(low + 3, low + 10_000_019)
    table = gap_table(long, 0, int(long.high[-1]))
    times = np.random.default_rng(1).integers(0, int(long.high[-1]), 10_000)
    assert len(table.cells) <= CELLS_MAX
    assert table.inside(times).sum() > 0.2 * long.contain(times).sum()
