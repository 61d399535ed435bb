from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.join.selective.reach import (
    Ages,
    Exploring,
    NewRowGroups,
    NewRows,
    ProbeRange,
    Stored,
    ages_of,
    candidate_pairs,
    chance_seen,
    probe_ranges,
    shares_by_age,
)
from tidegate.join.within import Tumbling, Unbounded, Within

W10 = Within(-100, 100)


def rows_at(*times: int, within: Within = W10, side: int = 0) -> NewRows:
    at = np.array(sorted(times), np.int64)
    low, high = within.partner_range(side, at)
    return NewRows(at, low, high, int(at[0]), int(at[-1]))


def seen(found: list[ProbeRange], row: int) -> set[int]:
    """The times that a row looks at, each named once."""
    times: list[int] = []
    for probe_range in found:
        places = range(row, row + 1) if probe_range.rows is None else np.flatnonzero(probe_range.rows == row)
        for place in places:
            times += range(int(probe_range.low[place]), int(probe_range.high[place]) + 1)
    assert len(times) == len(set(times)), "a row looks at the same time twice"
    return set(times)


def test_the_window_of_a_row_has_a_basic_window_of_its_own_and_as_many_behind_as_ahead() -> None:
    assert ages_of(W10, 0) == ages_of(W10, 1) == Ages(10, 10, 21, 100, 100)


def test_the_two_windows_may_differ() -> None:
    within = Within(-100, 30)
    assert ages_of(within, 0) == Ages(3, 10, 10 + 1 + 10, 30, 100)
    assert ages_of(within, 1) == Ages(10, 3, 3 + 1 + 10, 100, 30)


def test_ages_begin_where_the_first_match_can_lie() -> None:
    # Slots of 4: left rows 100 to 140 behind a right one lie 25 to 35 basic windows behind its own.
    after = Within(100, 140)
    assert ages_of(after, 0) == Ages(4, -25, 11, 140, -100)
    assert [ages_of(after, 0).number(100, slot) for slot in (76, 75, 65, 64)] == [0, 0, 10, 10]
    # A late left row finds right rows ahead of it only.
    assert ages_of(after, 1) == Ages(4, 35, 11, -100, 140)
    assert ages_of(Within(-140, -100), 0) == ages_of(after, 1)
    assert ages_of(Within(-140, -100), 1) == ages_of(after, 0)
    assert ages_of(Within(7, 7), 0) == Ages(1, -7, 1, 7, -7)


def test_far_ahead_at_most_so_many_basic_windows_are_told_apart() -> None:
    assert ages_of(Within(-3, 1000), 1) == Ages(1, 10, 14, 3, 1000)
    assert ages_of(Within(100, 1000), 1) == Ages(90, 11, 11, -100, 1000)


@given(st.integers(-60, 60), st.integers(-60, 60), st.integers(-99, 99), st.integers(0, 1))
def test_every_number_is_some_match_and_every_match_has_its_number(
    one: int, other: int, at: int, side: int
) -> None:
    within = Within(*sorted((one, other)))
    ages = ages_of(within, side)
    numbers = set()
    for own in range(at, at + ages.slot_us):
        low, high = within.partner_range(1 - side, np.array([own]))
        for stored in range(int(low[0]), int(high[0]) + 1):
            apart = own // ages.slot_us - stored // ages.slot_us
            numbers.add(ages.number(own // ages.slot_us, stored // ages.slot_us))
            # Only what is very far ahead shares a number.
            assert apart + ages.ahead in range(ages.count) or apart + ages.ahead < 0 < -apart
    assert numbers == set(range(ages.count))


@pytest.mark.parametrize("within", [Tumbling(10), Unbounded()])
def test_without_a_sliding_window_there_is_one_basic_window(within: Tumbling | Unbounded) -> None:
    assert ages_of(within, 0).count == 1


def test_a_share_of_one_everywhere_leaves_the_ranges_as_they_are() -> None:
    ages, new = ages_of(W10, 1), rows_at(203, 207)
    (probe_range,) = probe_ranges(ages, (1.0,) * ages.count, new, (150, 159))
    assert probe_range.rows is None
    np.testing.assert_array_equal(probe_range.low, new.low)


def test_a_basic_window_without_a_share_is_not_looked_at() -> None:
    ages, new = ages_of(W10, 1), rows_at(203)
    shares = [1.0] * ages.count
    shares[ages.number(20, 15)] = 0.0
    assert not list(probe_ranges(ages, shares, new, (150, 159)))
    assert len(list(probe_ranges(ages, shares, new, (160, 169)))) == 1


def test_the_newest_part_of_a_basic_window_is_taken() -> None:
    ages, new = ages_of(W10, 1), rows_at(203)
    found = list(probe_ranges(ages, (0.4,) * ages.count, new, (150, 159)))
    assert seen(found, 0) == {156, 157, 158, 159}


def test_of_a_basic_window_that_is_still_filled_some_rows_look_at_all() -> None:
    ages, new = ages_of(W10, 1), rows_at(*range(200, 210))
    new = NewRows(new.times, new.low, new.high, 200, 209, np.linspace(0.05, 0.95, 10))
    found = list(probe_ranges(ages, (0.5,) * ages.count, new, (200, 206), filled_us=206))
    looking = [row for row in range(10) if seen(found, row)]
    assert 0 < len(looking) < 10
    for row in looking:
        assert seen(found, row) == set(range(200, 210))


def test_a_run_over_several_basic_windows_is_cut_at_each_of_them() -> None:
    ages, new = ages_of(W10, 1), rows_at(203)
    found = list(probe_ranges(ages, (0.2,) * ages.count, new, (150, 179)))
    assert seen(found, 0) == {158, 159, 168, 169, 178, 179}


def exploring(count: int, share: float, depth: float, seed: int = 0) -> NewRows:
    """New rows at one time, all of which explore."""
    new = rows_at(*[203] * count)
    unit_hashes = np.random.default_rng(seed).random(count) * share
    return NewRows(new.times, new.low, new.high, 203, 203, unit_hashes, Exploring(share, depth))


def test_rows_that_explore_see_a_part_of_what_others_skip_each_elsewhere() -> None:
    ages, new = ages_of(W10, 1), exploring(200, 0.5, depth=0.3)
    new.unit_hashes[0] = 0.9  # type: ignore[index]
    found = list(probe_ranges(ages, (0.0,) * ages.count, new, (150, 159)))
    assert seen(found, 0) == set()
    parts = {frozenset(seen(found, row)) for row in range(1, 200)}
    assert len(parts) > 5
    assert set().union(*parts) == set(range(150, 160))
    assert all(probe_range.exploring for probe_range in found)


@pytest.mark.parametrize(("depth", "share"), [(0.1, 0.0), (0.3, 0.0), (0.1, 0.6), (0.5, 0.9), (1.0, 0.2)])
def test_every_stored_row_has_the_same_chance_to_be_seen_by_rows_that_explore(
    depth: float, share: float
) -> None:
    ages, count = ages_of(Within(-1000, 1000), 1), 20_000
    new = rows_at(*[2030] * count, within=Within(-1000, 1000))
    unit_hashes = np.random.default_rng(3).random(count)
    new = NewRows(new.times, new.low, new.high, 2030, 2030, unit_hashes, Exploring(1.0, depth))
    times = np.zeros(100)
    for probe_range in probe_ranges(ages, (share,) * ages.count, new, (1500, 1599)):
        assert probe_range.exploring
        np.add.at(times, probe_range.low - 1500, 1)
        ends = probe_range.high - 1500 + 1
        np.add.at(times, ends[ends < 100], -1)
    seen_by = np.cumsum(times) / count
    np.testing.assert_allclose(seen_by, chance_seen(share, depth), atol=0.02)


def test_over_the_full_history_some_rows_look_at_everything() -> None:
    times = np.arange(4, dtype=np.int64)
    low, high = Unbounded().partner_range(0, times)
    new = NewRows(times, low, high, 0, 3, np.array([0.1, 0.6, 0.2, 0.9]))
    (probe_range,) = probe_ranges(ages_of(Unbounded(), 1), (0.5,), new, (0, 100))
    assert probe_range.rows is not None
    assert probe_range.rows.tolist() == [0, 2]


@given(st.data())
@settings(max_examples=settings().max_examples // 3)
def test_ranges_of_one_basic_window_never_move_backwards_and_stay_in_reach(data: st.DataObject) -> None:
    within = Within(*sorted(data.draw(st.tuples(st.integers(-200, 200), st.integers(-200, 200)))))
    times = data.draw(st.lists(st.integers(-300, 300), min_size=1, max_size=30))
    new = rows_at(*times, within=within)
    unit_hashes = np.array(data.draw(st.lists(st.floats(0, 0.99), min_size=len(times), max_size=len(times))))
    some = Exploring(0.5, data.draw(st.floats(0.01, 1)))
    new = NewRows(new.times, new.low, new.high, new.first_us, new.last_us, unit_hashes, some)
    ages = ages_of(within, 1)
    shares = data.draw(st.lists(st.floats(0, 1), min_size=ages.count, max_size=ages.count))
    stored = sorted(data.draw(st.tuples(st.integers(-400, 400), st.integers(-400, 400))))
    found = list(probe_ranges(ages, shares, new, (stored[0], stored[1])))
    for probe_range in found:
        rows = np.arange(len(times)) if probe_range.rows is None else probe_range.rows
        assert probe_range.exploring or (np.diff(probe_range.low) >= 0).all()
        assert probe_range.exploring or (np.diff(probe_range.high) >= 0).all()
        assert (probe_range.low >= new.low[rows]).all()
        assert (probe_range.high <= new.high[rows]).all()
        assert (probe_range.low <= probe_range.high).all()
    for row in range(len(times)):
        seen(found, row)


@given(st.data())
def test_shares_make_up_the_fraction_of_the_work(data: st.DataObject) -> None:
    work = np.array(data.draw(st.lists(st.integers(0, 50), min_size=1, max_size=12)), np.float64)
    order = data.draw(st.permutations(range(work.size)))
    fraction = data.draw(st.floats(0, 1))
    shares = shares_by_age(order, fraction, work)
    assert np.dot(shares, work) == pytest.approx(fraction * work.sum(), abs=1e-6)
    taken = [shares[age] for age in order if work[age] > 0]
    assert taken == sorted(taken, reverse=True)


@given(st.integers(-30, 30), st.integers(-30, 30), st.integers(0, 60), st.integers(1, 40), st.integers(1, 50))
def test_pairs_in_reach_are_counted_by_age(back: int, ahead: int, first: int, length: int, new: int) -> None:
    """Stored rows one a microsecond: then counting on average is counting."""
    back = max(back, -ahead)
    ages = ages_of(Within(-ahead, back), 0)
    times = 40 + 3 * np.arange(new) % 50
    rows = NewRows(times, times - back, times + ahead, int(times.min()), int(times.max()))
    # In two runs, of which one may be empty of what is in reach.
    runs = [Stored(first, first + length - 1, length), Stored(-1000, -999, 7)]
    found = candidate_pairs(ages, NewRowGroups.of(rows, ages.slot_us), runs)
    stored = np.arange(first, first + length)
    exact = np.zeros(ages.count)
    for at in times.tolist():
        for slot in (stored[(stored >= at - back) & (stored <= at + ahead)] // ages.slot_us).tolist():
            exact[ages.number(at // ages.slot_us, slot)] += 1
    if ages.slot_us == 1:
        assert found.tolist() == pytest.approx(exact.tolist())
    # Rows of one basic window are taken for their average, which errs at the edges of what is stored.
    assert found.sum() == pytest.approx(exact.sum(), abs=ages.slot_us * new)


def test_rows_far_apart_are_grouped_as_well() -> None:
    times = np.array([0, 5, 10**15])
    groups = NewRowGroups.of(NewRows(times, times - 4, times, 0, 10**15), 10)
    assert groups.own.tolist() == [0, 10**14]
    assert groups.rows.tolist() == [2, 1]
    assert groups.low.tolist() == [-1.5, 10**15 - 4]
    assert groups.which.tolist() == [0, 0, 1]
