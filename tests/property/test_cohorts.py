"""Times of cohorts on one line: each cohort by itself, whatever is done with all of them at once."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import FlowError
from tidegate.window.drop.cohorts import Cohorts, as_missing, from_json, to_json
from tidegate.window.drop.early_drop import kept_beside
from tidegate.window.drop.gap_table import gap_table
from tidegate.window.drop.group_drop import COHORTS
from tidegate.window.drop.intervals import NOTHING, Intervals, merged, union
from tidegate.window.spec import WindowSpec

#: A time of our era.
NOW = 1_700_000_000_000_000
PLACES = Cohorts.of_slide(60)


@st.composite
def times(draw: st.DrawFn, unit: int = 1) -> Intervals:
    edges = sorted(draw(st.sets(st.integers(-200, 200), max_size=12)))
    edges = edges[: len(edges) // 2 * 2]
    low, high = np.array(edges[::2], np.int64), np.array(edges[1::2], np.int64)
    return Intervals(NOW + low * unit, NOW + high * unit)


BY_COHORT = st.dictionaries(st.integers(0, COHORTS - 1), times(), max_size=5)


def together(given: Mapping[int, Intervals], places: Cohorts = PLACES) -> Intervals:
    parts = [places.joined(np.full(one.low.size, cohort), one.low, one.high) for cohort, one in given.items()]
    return union([NOTHING, *parts])


def of(line: Intervals, cohort: int, places: Cohorts = PLACES) -> Intervals:
    cohorts, low, high = places.parts(line)
    return Intervals(low[cohorts == cohort], high[cohorts == cohort])


def same(one: Intervals, other: Intervals) -> bool:
    return one.to_json() == other.to_json()


@given(BY_COHORT)
def test_every_cohort_has_its_own_times(given_times: dict[int, Intervals]) -> None:
    line = together(given_times)
    for cohort in range(COHORTS):
        assert same(of(line, cohort), given_times.get(cohort, NOTHING))
    at = np.arange(NOW - 250, NOW + 250)
    for code in (0, 5, 63, 64 + 5, 2**64 - 1):
        inside = line.contain(PLACES.of(np.full(at.size, code, np.uint64), at))
        assert (inside == given_times.get(code % COHORTS, NOTHING).contain(at)).all()
    assert same(PLACES.any(line), union([NOTHING, *given_times.values()]))


@given(times())
def test_what_is_missing_of_all_groups_is_missing_of_every_cohort(plain: Intervals) -> None:
    line = as_missing(plain, None, PLACES)
    assert all(same(of(line, cohort), plain) for cohort in range(COHORTS))
    assert same(as_missing(line, PLACES, None), plain)


@given(BY_COHORT, st.integers(-250, 250), st.integers(0, 300))
def test_ranges_of_time_are_cut_in_every_cohort(
    given_times: dict[int, Intervals], low: int, length: int
) -> None:
    line, low = together(given_times), NOW + low
    since, cut = PLACES.since(line, low), PLACES.overlap(line, low, low + length)
    lengths = PLACES.lengths_before(line, low)
    for cohort in range(COHORTS):
        mine = given_times.get(cohort, NOTHING)
        assert same(of(since, cohort), mine.since(low))
        assert same(of(cut, cohort), merged(*vars(mine.overlap(low, low + length)).values()))
        reach = mine.overlap(low - 10**6, low)
        assert lengths[cohort] == (low - reach.low[-1] if reach.high.size and reach.high[-1] == low else 0)


@given(st.dictionaries(st.integers(0, COHORTS - 1), times(7), max_size=5))
def test_they_come_back_from_json_whatever_their_places_are_by_then(
    given_times: dict[int, Intervals],
) -> None:
    other = Cohorts.of_slide(7_000_000_000)
    assert other.width_us != PLACES.width_us
    raw = json.loads(json.dumps(to_json(together(given_times), PLACES)))
    assert same(from_json(raw, other), together(given_times, other))
    assert same(from_json(raw, None), union([NOTHING, *given_times.values()]))
    plain = given_times.get(0, NOTHING)
    assert same(from_json(to_json(plain, None), PLACES), PLACES.spread(plain))


@given(st.dictionaries(st.integers(0, COHORTS - 1), times(12), max_size=5), st.integers(-9, 9))
def test_rows_that_kept_windows_need_are_found_for_every_cohort_at_once(
    given_times: dict[int, Intervals], offset: int
) -> None:
    path = [WindowSpec(30, 12, offset), WindowSpec(20, 20)]
    gaps = kept_beside(together(given_times), [path], 12).between()
    for cohort in range(COHORTS):
        alone = kept_beside(given_times.get(cohort, NOTHING), [path], 12).between()
        mine = of(gaps, cohort)
        assert same(mine, alone)


@given(st.dictionaries(st.integers(0, COHORTS - 1), times(7), max_size=5), st.integers(-900, 900))
def test_one_table_says_of_every_cohort_which_times_are_inside(
    given_times: dict[int, Intervals], low: int
) -> None:
    table = gap_table(together(given_times), NOW + low, NOW + 5_000, cohorts=PLACES)
    at = np.arange(NOW + low, NOW + 1_500)
    for cohort in {0, 63, *given_times}:
        assert (table.inside(at, cohort) == given_times.get(cohort, NOTHING).contain(at)).all()
    assert all(-(2**63) <= cell < 2**63 for cell in table.cells)


def test_a_time_far_from_ours_is_never_that_of_another_cohort() -> None:
    line = PLACES.spread(Intervals(np.array([NOW]), np.array([NOW + 9])))
    codes = np.arange(COHORTS, dtype=np.uint64)
    for far in (-(2**61), NOW - PLACES.width_us, NOW + PLACES.width_us, 2**61):
        assert not line.contain(PLACES.of(codes, np.full(COHORTS, far))).any()


def test_slides_without_a_short_common_multiple_are_refused() -> None:
    with pytest.raises(FlowError, match="WINDOW_DROP_SLIDES"):
        Cohorts.of_slide(2**56 + 1)
