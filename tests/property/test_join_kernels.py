"""Laws of the join kernels, each against the plainest version that can be written down."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tidegate.join.probe.matched_bits import no_bits, set_bits, unset_positions
from tidegate.join.probe.meet import leap_in_probing, leap_in_stored, meet, merge
from tidegate.join.probe.order import sort_by_code_time
from tidegate.join.probe.probe import ProbedPairs, counts_per_partition, probe
from tidegate.join.within import Tumbling, Unbounded, Within, slots_of
from tidegate.model.times import BEGINNING_US, END_US, LEFT, RIGHT

Rows = list[tuple[int, int]]

EDGES = [0, 1, 2**63, 2**64 - 1]
#: A handful of keys, so that rows meet; evenly spread ones and ends of the range, so that guesses go wrong.
CODES = st.one_of(
    st.integers(0, 5).map(lambda key: key * 0x9E3779B97F4A7C15 % 2**64),
    st.sampled_from(EDGES),
    st.integers(0, 2**64 - 1),
)
NEAR_TIMES = st.integers(-40, 40)
WATERMARKS = st.one_of(NEAR_TIMES, st.integers(BEGINNING_US, END_US), st.sampled_from([BEGINNING_US, END_US]))
#: The ends of int64 are no event times.
FIRST_US, LAST_US = BEGINNING_US + 1, END_US - 1
TIMES = st.one_of(NEAR_TIMES, st.integers(FIRST_US, LAST_US), st.sampled_from([FIRST_US, LAST_US]))
ROWS = st.lists(st.tuples(CODES, TIMES), max_size=40)
#: Few codes, near times, many rows: hot keys and duplicates (drawn by a seed: hundreds of draws are slow).
HOT_ROWS = st.builds(
    lambda rows, keys, seed: [
        (EDGES[key], time)
        for key, time in np.random.default_rng(seed).integers([0, -40], [keys, 41], (rows, 2)).tolist()
    ],
    st.integers(0, 150),
    st.integers(1, len(EDGES)),
    st.integers(0, 2**32),
)
SOME_ROWS = st.one_of(ROWS, HOT_ROWS)
BOUNDS = st.one_of(st.integers(-20, 20), st.integers(-END_US, END_US))
CONDITIONS = st.one_of(
    st.lists(BOUNDS, min_size=2, max_size=2).map(lambda both: Within(*sorted(both))),
    st.builds(Tumbling, st.one_of(st.integers(1, 20), st.integers(1, END_US))),
    st.just(Unbounded()),
)


def columns(rows: Rows) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    codes = np.array([code for code, _ in rows], np.uint64)
    times = np.array([time for _, time in rows], np.int64)
    order = np.lexsort((times, codes))
    return codes[order], times[order]


def matches(condition: Within | Tumbling | Unbounded, left_us: int, right_us: int) -> bool:
    """The definition, in Python's own integers, which have no end."""
    match condition:
        case Within():
            return condition.lower_us <= right_us - left_us <= condition.upper_us
        case Tumbling():
            return left_us // condition.size_us == right_us // condition.size_us
        case Unbounded():
            return True


def by_double_loop(
    rows: tuple[NDArray[np.uint64], NDArray[np.int64]],
    stored: tuple[NDArray[np.uint64], NDArray[np.int64]],
    holds: Callable[[int, int], bool],
) -> list[tuple[int, int]]:
    codes, times = (column.tolist() for column in rows)
    stored_codes, stored_times = (column.tolist() for column in stored)
    return [
        (row, partner)
        for row in range(len(codes))
        for partner in range(len(stored_codes))
        if codes[row] == stored_codes[partner] and holds(times[row], stored_times[partner])
    ]


@given(SOME_ROWS, SOME_ROWS, CONDITIONS, st.sampled_from([LEFT, RIGHT]), st.data())
def test_probing_finds_exactly_the_pairs_that_the_condition_allows(
    probing: Rows, storing: Rows, condition: Within | Tumbling | Unbounded, side: int, data: st.DataObject
) -> None:
    (codes, times), (stored_codes, stored_times) = columns(probing), columns(storing)
    start = data.draw(st.integers(0, len(storing)))
    stop = data.draw(st.integers(start, len(storing)))
    size = data.draw(st.integers(1, 50))

    pairs = ProbedPairs(
        probe(codes, *condition.partner_range(side, times), stored_codes, stored_times, start, stop)
    )
    taken: list[tuple[int, int]] = []
    for begin in range(0, pairs.total, size):
        taken += zip(*(part.tolist() for part in pairs.chunk(begin, begin + size)), strict=True)

    def holds(own_us: int, partner_us: int) -> bool:
        left_us, right_us = (own_us, partner_us) if side == LEFT else (partner_us, own_us)
        return matches(condition, left_us, right_us)

    expected = by_double_loop((codes, times), (stored_codes[start:stop], stored_times[start:stop]), holds)
    assert taken == [(row, partner + start) for row, partner in expected]


@given(SOME_ROWS, SOME_ROWS)
def test_every_way_of_meeting_names_the_first_stored_row_of_each_common_code(
    probing: Rows, storing: Rows
) -> None:
    codes, stored = columns(probing)[0], columns(storing)[0]
    first = {code: place for place, code in reversed(list(enumerate(stored.tolist())))}
    expected = [(row, first[code]) for row, code in enumerate(codes.tolist()) if code in first]
    for way in (meet, merge, leap_in_stored, leap_in_probing):
        rows, places = way(codes, stored)
        assert list(zip(rows.tolist(), places.tolist(), strict=True)) == expected


@given(SOME_ROWS, SOME_ROWS, st.lists(st.integers(0, 120), max_size=5))
def test_pairs_per_partition_add_up(probing: Rows, storing: Rows, cuts: list[int]) -> None:
    (codes, times), (stored_codes, stored_times) = columns(probing), columns(storing)
    low, high = Unbounded().partner_range(LEFT, times)
    ranges = probe(codes, low, high, stored_codes, stored_times, 0, len(storing))
    bounds = np.array([0, *sorted(min(cut, len(probing)) for cut in cuts), len(probing)], np.int64)
    rows, _ = ProbedPairs(ranges).chunk(0, ranges.total)
    expected = [int(((rows >= a) & (rows < b)).sum()) for a, b in pairwise(bounds.tolist())]
    assert counts_per_partition(bounds, ranges).tolist() == expected


@given(CONDITIONS, WATERMARKS, TIMES, TIMES, st.sampled_from([LEFT, RIGHT]))
def test_a_dead_row_matches_nothing_that_comes_and_the_time_is_the_latest_possible(
    condition: Within | Tumbling | Unbounded, watermark: int, own: int, later: int, side: int
) -> None:
    dead_before, complete = (
        when(side, watermark) for when in (condition.dead_before, condition.complete_before)
    )
    assert BEGINNING_US <= dead_before <= complete <= END_US
    assert dead_before == min(complete, watermark)

    def partners(own_us: int, partner_us: int) -> bool:
        return matches(condition, *((own_us, partner_us) if side == LEFT else (partner_us, own_us)))

    if watermark < END_US:
        if own < complete:
            assert not partners(own, max(later, watermark))
        if BEGINNING_US < complete < END_US or isinstance(condition, Unbounded):
            assert partners(complete, watermark)


@given(SOME_ROWS)
def test_the_order_is_that_of_lexsort(rows: Rows) -> None:
    codes = np.array([code for code, _ in rows], np.uint64)
    times = np.array([time for _, time in rows], np.int64)
    order = np.lexsort((times, codes))
    rows_in_order = sort_by_code_time(codes, times)
    assert rows_in_order.order.tolist() == order.tolist()
    assert rows_in_order.codes.tolist() == codes[order].tolist()
    assert rows_in_order.times.tolist() == times[order].tolist()


@given(st.lists(TIMES, max_size=30), st.one_of(st.integers(1, 20), st.integers(1, END_US)))
def test_a_slot_holds_the_times_between_its_two_ends(times: list[int], slot_us: int) -> None:
    slots = slots_of(np.array(times, np.int64), slot_us).tolist()
    for time, slot in zip(times, slots, strict=True):
        assert slot * slot_us <= time < (slot + 1) * slot_us


@given(st.integers(0, 80).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.integers(0, max(n - 1, 0))))))
def test_what_is_not_set_is_what_is_left(rows_and_set: tuple[int, set[int]]) -> None:
    rows, chosen = rows_and_set
    chosen = {row for row in chosen if row < rows}
    bits = no_bits(rows)
    set_bits(bits, np.array(sorted(chosen), np.int64))
    assert unset_positions(bits, 0, rows).tolist() == [row for row in range(rows) if row not in chosen]
