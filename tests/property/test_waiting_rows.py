"""Laws of finding the waiting rows of groups: what a look at every row finds."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidegate.window.aggregate.merge_runs import PartialRun
from tidegate.window.count.waiting_rows import WaitingGroups, groups_with_rows, waiting_rows

#: (code, check, time)
Row = tuple[int, int, int]
TOP = 2**64 - 1
ROWS = st.lists(
    st.tuples(st.sampled_from([0, 1, 2, TOP]), st.sampled_from([0, TOP]), st.integers(-9, 9)), max_size=50
)


def run_of(rows: list[Row]) -> PartialRun:
    code, check, time = zip(*sorted(rows), strict=True) if rows else ((), (), ())
    return PartialRun(np.array(code, np.uint64), np.array(time, np.int64), np.array(check, np.uint64))


@given(ROWS, st.data(), st.integers(-10, 10))
def test_rows_that_wait_are_neither_consumed_nor_above(
    rows: list[Row], data: st.DataObject, below: int
) -> None:
    rows, keys = sorted(rows), sorted({row[:2] for row in rows})
    used = {key: data.draw(st.integers(0, 9), label="consumed") for key in keys}
    places = {key: [i for i, row in enumerate(rows) if row[:2] == key] for key in keys}
    consumed = {i for key in keys for i in places[key][: used[key]]}
    bits = np.packbits(np.isin(np.arange(len(rows)), list(consumed)), bitorder="little")
    asked = sorted({*data.draw(st.lists(st.sampled_from([*keys, (1, TOP), (5, 5)])), label="asked")})
    # Slices never cut a code: partitions are ranges of codes.
    starts = [i for i, row in enumerate(rows) if i == 0 or row[0] != rows[i - 1][0]]
    slices = list(pairwise([*starts, len(rows)]))
    mine = data.draw(st.lists(st.sampled_from(slices), unique=True)) if slices else []
    groups = WaitingGroups(*(np.array([key[i] for key in asked], np.uint64) for i in (0, 1)))
    found = waiting_rows(run_of(rows), mine, bits, groups, below)
    for number, key in enumerate(asked):
        wanted = [
            i
            for i in places.get(key, [])
            if i not in consumed and rows[i][2] < below and any(a <= i < b for a, b in mine)
        ]
        assert list(range(found.begin[number], found.end[number])) == wanted
    chosen = np.array([data.draw(st.booleans()) for _ in asked], np.bool_)
    ranges = zip(found.begin, found.end, chosen, strict=True)
    assert found.rows(chosen).tolist() == [i for a, b, take in ranges if take for i in range(a, b)]


@given(st.lists(ROWS, max_size=4), st.integers(-10, 10), st.integers(0, 9))
def test_groups_with_a_row_in_time_are_named_once_and_in_order(
    runs: list[list[Row]], low: int, length: int
) -> None:
    groups = groups_with_rows([run_of(rows) for rows in runs], low, low + length)
    wanted = sorted({row[:2] for rows in runs for row in rows if low <= row[2] < low + length})
    assert list(zip(groups.code.tolist(), groups.check.tolist(), strict=True)) == wanted
