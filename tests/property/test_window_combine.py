"""Laws of windows made of panes: the same as all rows of each window, however rows are cut into runs."""

from __future__ import annotations

from functools import partial, reduce
from itertools import pairwise
from operator import and_, or_, xor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracle.plain_windows import Row, central_moment, null_if_none, present, windows_of_rows

from tidegate.window.aggregate.aggregates import Merge
from tidegate.window.aggregate.closing import Stretches, cells, closing_windows, panes_needed
from tidegate.window.aggregate.columns import Column
from tidegate.window.aggregate.combine import combine
from tidegate.window.aggregate.merge_runs import Merged, PartialRun, merge_runs
from tidegate.window.panes import Panes
from tidegate.window.spec import WindowSpec
from tidegate_lab.simulate.windows.run_columns import in_order

#: Two codes for five groups: most of them differ in their check codes only.
GROUPS = {"a": (1, 0), "b": (1, 2**64 - 1), "c": (2**64 - 1, 0), "d": (1, 7), "e": (2**63, 7)}

INTEGERS: dict[Merge, Any] = {
    Merge.SUM: null_if_none(sum),
    Merge.MIN: null_if_none(min),
    Merge.MAX: null_if_none(max),
    Merge.AND: null_if_none(lambda values: reduce(and_, values)),
    Merge.OR: null_if_none(lambda values: reduce(or_, values)),
    Merge.XOR: null_if_none(lambda values: reduce(xor, values)),
}


@st.composite
def specs(draw: st.DrawFn) -> WindowSpec:
    slide = draw(st.integers(1, 6))
    return WindowSpec(draw(st.integers(slide, 20)), slide, draw(st.integers(-9, 9)))


def rows_of(values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Row]]:
    row = st.tuples(st.sampled_from("abcde"), st.integers(-30, 40), st.none() | values)
    return st.lists(row, max_size=40)


def run_of(rows: list[Row], panes: Panes) -> tuple[PartialRun, list[Row]]:
    """A row per partial: what several rows of one pane add up to is the combination's business here."""
    times = np.array([time for _, time, _ in rows], np.int64)
    keyed = [(*GROUPS[group], int(pane)) for (group, _, _), pane in zip(rows, panes.of(times), strict=True)]
    order = sorted(range(len(rows)), key=keyed.__getitem__)
    code, check, pane = zip(*(keyed[k] for k in order), strict=True) if rows else ((), (), ())
    run = PartialRun(np.array(code, np.uint64), np.array(pane, np.int64), np.array(check, np.uint64))
    return run, [rows[k] for k in order]


def cut(rows: list[Row], places: list[int]) -> list[list[Row]]:
    edges = [0, *sorted(min(place, len(rows)) for place in places), len(rows)]
    return [rows[begin:end] for begin, end in pairwise(edges)]


def column(values: list[Any], kind: type) -> Column:
    filled = np.array([kind(0) if value is None else value for value in values], np.dtype(kind))
    return Column(filled, np.array([value is not None for value in values], np.bool_))


def listed(result: Column) -> list[Any]:
    valid = np.ones(len(result.values), np.bool_) if result.valid is None else result.valid
    return [value if there else None for value, there in zip(result.values.tolist(), valid, strict=True)]


class Case:
    """Rows in runs, and the windows of a range that they make."""

    def __init__(self, rows: list[Row], places: list[int], spec: WindowSpec, first: int, stop: int) -> None:
        panes = Panes(spec)
        sorted_runs = [run_of(part, panes) for part in cut(rows, places)]
        self.runs = [run for run, _ in sorted_runs]
        self.rows = [row for _, part in sorted_runs for row in part]
        self.merged: Merged = merge_runs(self.runs, *panes_needed(panes, first, stop))
        self.closed: Stretches = closing_windows(self.merged, panes, first, stop)
        shifted = [(group, time - spec.offset_us, value) for group, time, value in rows]
        self.expected = windows_of_rows(shifted, spec.size_us, spec.slide_us, first, stop)

    @property
    def keys(self) -> list[tuple[str, int]]:
        shown = [self.rows[row][0] for row in self.merged.order[self.closed.begin]]
        return list(zip(shown, self.closed.at.tolist(), strict=True))

    def column(self, kind: type, pick: Any = lambda value: value) -> Column:
        return in_order([column([pick(row[2]) for row in self.rows], kind)], self.merged.order)

    def expect(self, function: Any) -> list[Any]:
        return [function(self.expected[key]) for key in self.keys]


CUTS = st.lists(st.integers(0, 40), max_size=5)
FIRST = st.integers(-10, 5)
COUNT = st.integers(0, 25)


@given(rows_of(st.integers()), CUTS, specs(), FIRST, COUNT)
def test_every_window_with_a_row_of_a_group_is_there_once(
    rows: list[Row], places: list[int], spec: WindowSpec, first: int, count: int
) -> None:
    case = Case(rows, places, spec, first, first + count)
    assert sorted(case.keys) == sorted(case.expected)
    assert (np.diff(case.closed.begin) >= 0).all()
    assert (np.diff(case.closed.end) >= 0).all()


@given(rows_of(st.integers()), CUTS, specs())
def test_rows_of_all_runs_come_in_one_order(rows: list[Row], places: list[int], spec: WindowSpec) -> None:
    runs = [run_of(part, Panes(spec))[0] for part in cut(rows, places)]
    merged = merge_runs(runs)
    code, check = np.concatenate([run.code for run in runs]), np.concatenate([run.check for run in runs])
    at = np.concatenate([run.at for run in runs])
    assert merged.order.tolist() == np.lexsort((at, check, code)).tolist()
    assert merged.at.tolist() == at[merged.order].tolist()
    numbered = {key: k for k, key in enumerate(sorted(set(zip(code.tolist(), check.tolist(), strict=True))))}
    expected = [numbered[code_, check_] for code_, check_ in zip(code.tolist(), check.tolist(), strict=True)]
    assert merged.group.tolist() == np.array(expected, np.int64)[merged.order].tolist()


@pytest.mark.parametrize("merge", INTEGERS)
@given(rows_of(st.integers(-(2**40), 2**40)), CUTS, specs(), FIRST, COUNT)
def test_integers_of_panes_make_those_of_windows(
    merge: Merge, rows: list[Row], places: list[int], spec: WindowSpec, first: int, count: int
) -> None:
    case = Case(rows, places, spec, first, first + count)
    (result,) = combine(merge, [case.column(int)], case.closed)
    assert listed(result) == case.expect(INTEGERS[merge])


@given(rows_of(st.booleans()), CUTS, specs())
def test_flags_of_panes_make_those_of_windows(rows: list[Row], places: list[int], spec: WindowSpec) -> None:
    case = Case(rows, places, spec, -5, 20)
    (every,) = combine(Merge.MIN, [case.column(bool)], case.closed)
    (some,) = combine(Merge.MAX, [case.column(bool)], case.closed)
    assert listed(every) == case.expect(null_if_none(all))
    assert listed(some) == case.expect(null_if_none(any))
    assert every.values.dtype == np.bool_


REALS = st.floats(-1e9, 1e9).map(lambda value: value + 0.0) | st.just(float("nan")) | st.just(float("inf"))


@given(rows_of(REALS), CUTS, specs(), FIRST, COUNT)
def test_the_order_of_reals_is_that_of_spark(
    rows: list[Row], places: list[int], spec: WindowSpec, first: int, count: int
) -> None:
    def place(value: float) -> tuple[bool, float]:
        return value != value, 0.0 if value != value else value

    case = Case(rows, places, spec, first, first + count)
    for merge, function in ((Merge.MIN, min), (Merge.MAX, max)):
        (result,) = combine(merge, [case.column(float)], case.closed)
        expected = case.expect(null_if_none(partial(function, key=place)))
        assert list(map(str, listed(result))) == list(map(str, expected))


@given(rows_of(st.floats(-1e9, 1e9)), CUTS, specs(), FIRST, COUNT)
def test_moments_of_panes_make_those_of_windows(
    rows: list[Row], places: list[int], spec: WindowSpec, first: int, count: int
) -> None:
    case = Case(rows, places, spec, first, first + count)
    number = case.column(float, lambda value: None if value is None else 1.0)
    zero = case.column(float, lambda value: None if value is None else 0.0)
    partials = [number, case.column(float), zero, zero, zero]
    found = combine(Merge.MOMENTS, partials, case.closed)
    assert listed(found[0]) == case.expect(lambda values: len(present(values)))
    for power, result in enumerate(found[2:], start=2):
        expected = case.expect(null_if_none(partial(central_moment, power=power)))
        for got, exact in zip(listed(result), expected, strict=True):
            assert got == pytest.approx(exact or 0.0, rel=1e-9, abs=1e-9 * 1e9**power)


@given(rows_of(st.integers(-100, 100)), CUTS, specs(), FIRST, COUNT)
def test_merging_runs_first_changes_nothing(
    rows: list[Row], places: list[int], spec: WindowSpec, first: int, count: int
) -> None:
    case = Case(rows, places, spec, first, first + count)
    whole = merge_runs(case.runs)
    once = cells(whole)
    source = in_order([column([row[2] for row in case.rows], int)], whole.order)
    (merged,) = combine(Merge.SUM, [source], once)
    code, check = (np.concatenate([getattr(run, name) for run in case.runs]) for name in ("code", "check"))
    heads = whole.order[once.begin]
    run = PartialRun(code[heads], once.at, check[heads])
    rerun = merge_runs([run], *panes_needed(Panes(spec), first, first + count))
    closed = closing_windows(rerun, Panes(spec), first, first + count)
    (result,) = combine(Merge.SUM, [in_order([merged], rerun.order)], closed)
    assert closed.at.tolist() == case.closed.at.tolist()
    assert listed(result) == case.expect(null_if_none(sum))
