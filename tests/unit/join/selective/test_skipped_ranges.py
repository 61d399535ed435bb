"""What is looked at and what is owed are together everything in reach, and no time is in both."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidegate.join.selective.reach import Exploring, NewRows, ProbeRange, ages_of, probe_ranges
from tidegate.join.selective.skipped_ranges import chosen, unprobed_ranges
from tidegate.join.within import Tumbling, Unbounded, Within

WITHIN = st.one_of(
    st.lists(st.integers(-40, 40), min_size=2, max_size=2).map(lambda both: Within(*sorted(both))),
    st.builds(Tumbling, st.integers(1, 30)),
)
SHARES = st.sampled_from([0.0, 0.2, 0.5, 0.7, 1.0])


@st.composite
def new_rows(draw: st.DrawFn, within: Within | Tumbling | Unbounded, side: int) -> NewRows:
    times = np.array(sorted(draw(st.lists(st.integers(-50, 50), min_size=1, max_size=6))), np.int64)
    low, high = within.partner_range(side, times)
    unit = st.floats(0, 0.999)
    unit_hashes = np.array(draw(st.lists(unit, min_size=len(times), max_size=len(times))))
    exploring = Exploring(draw(st.sampled_from([0.0, 0.5])), draw(st.sampled_from([0.1, 0.6, 1.0])))
    return NewRows(times, low, high, int(times[0]), int(times[-1]), unit_hashes, exploring)


def times_of(found: list[ProbeRange], row: int, first: int, last: int) -> list[int]:
    """The stored times, first to last, that a row is told to look at."""
    times: list[int] = []
    for probe_range in found:
        places = [row] if probe_range.rows is None else np.flatnonzero(probe_range.rows == row).tolist()
        for place in places:
            times += range(
                max(first, int(probe_range.low[place])), min(last, int(probe_range.high[place])) + 1
            )
    return times


@given(st.data())
def test_looked_at_and_owed_are_everything_in_reach_once(data: st.DataObject) -> None:
    within, side = data.draw(WITHIN), data.draw(st.sampled_from([0, 1]))
    ages = ages_of(within, 1 - side)
    new = data.draw(new_rows(within, side))
    shares = data.draw(st.lists(SHARES, min_size=ages.count, max_size=ages.count))
    filled_us = data.draw(st.integers(-60, 60))
    first, last = sorted(data.draw(st.tuples(st.integers(-90, 90), st.integers(-90, 90))))
    now = list(probe_ranges(ages, shares, new, (first, last), filled_us))
    later = list(unprobed_ranges(ages, shares, new, (first, last), filled_us))
    for row in range(new.times.size):
        found = times_of(now, row, first, last) + times_of(later, row, first, last)
        reach = range(max(first, int(new.low[row])), min(last, int(new.high[row])) + 1)
        assert sorted(found) == list(reach)


@given(st.data())
def test_what_is_owed_does_not_depend_on_where_runs_are_cut_and_never_moves_back(data: st.DataObject) -> None:
    within = data.draw(WITHIN)
    ages, new = ages_of(within, 1), data.draw(new_rows(within, 0))
    shares = data.draw(st.lists(SHARES, min_size=ages.count, max_size=ages.count))
    whole = list(unprobed_ranges(ages, shares, new, (-90, 90)))
    cut = data.draw(st.integers(-90, 89))
    parts = [(part, list(unprobed_ranges(ages, shares, new, part))) for part in ((-90, cut), (cut + 1, 90))]
    for row in range(new.times.size):
        found = [time for (first, last), some in parts for time in times_of(some, row, first, last)]
        assert sorted(found) == sorted(times_of(whole, row, -90, 90))
    for probe_range in whole:
        if probe_range.exploring:
            continue
        rows = np.arange(new.times.size) if probe_range.rows is None else probe_range.rows
        for slot in np.unique(new.times[rows] // ages.slot_us):
            same = new.times[rows] // ages.slot_us == slot
            assert (np.diff(probe_range.low[same]) >= 0).all()
            assert (np.diff(probe_range.high[same]) >= 0).all()


def test_over_the_full_history_those_who_did_not_look_owe_everything() -> None:
    within, times = Unbounded(), np.arange(4)
    low, high = within.partner_range(0, times)
    new = NewRows(times, low, high, 0, 3, np.array([0.1, 0.9, 0.3, 0.5]))
    (probe_range,) = unprobed_ranges(ages_of(within, 1), (0.5,), new, (0, 9))
    assert probe_range.rows is not None
    assert probe_range.rows.tolist() == [1, 3]
    assert not list(unprobed_ranges(ages_of(within, 1), (1.0,), new, (0, 9)))


def test_a_part_of_the_rows_is_chosen_by_lot() -> None:
    probe_range = ProbeRange(np.array([1, 2, 4]), np.array([5, 6, 7]), np.array([8, 9, 9]), 3, False)
    unit_hashes = np.array([0.0, 0.2, 0.5, 0.9, 0.7])
    assert list(chosen(probe_range, unit_hashes, 0.0, 1.0)) == [probe_range]
    (some,) = chosen(probe_range, unit_hashes, 0.5, 0.8)
    assert some.rows is not None
    assert (some.rows.tolist(), some.low.tolist(), some.high.tolist()) == ([2, 4], [6, 7], [9, 9])
    assert not list(chosen(probe_range, unit_hashes, 0.95, 1.0))
