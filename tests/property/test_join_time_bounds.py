"""Joins whose partners lie some time before or after a row: time behind them, windows behind them, state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracle.expected import naive
from tests.oracle.plain_aggregates import PlainAggregate
from tests.oracle.plain_engine import Joined, PlainEngine, small_steps
from tests.oracle.plain_join import PlainJoin
from tests.oracle.plain_window import PlainWindow
from tests.oracle.plain_window_engine import PlainWindows
from tests.oracle.stories import BOUNDS, HOWS, accepted, stories
from tests.property.test_join_results import finish, join_of
from tests.property.test_window_results import check_windows, specs

from tidegate.control.planning import output_watermark
from tidegate.join.within import Within
from tidegate.model.manifest import Manifest
from tidegate.model.plan import Plan
from tidegate.model.reports import TaskReport
from tidegate.model.times import LEFT, RIGHT
from tidegate.route.assignment import Assignment

#: (lower, upper) of a join whose right rows come 10 to 20 after the left ones, and before them.
AFTER, BEFORE = Within(10, 20), Within(-20, -10)


@pytest.fixture(autouse=True, scope="module")
def merges_early_and_small_chunks() -> Iterator[None]:
    with small_steps():
        yield


@pytest.mark.parametrize("how", HOWS)
@given(data=st.data())
@settings(max_examples=settings().max_examples // 5)
def test_no_row_leaves_a_join_behind_the_time_that_it_promised(how: str, data: st.DataObject) -> None:
    within = data.draw(BOUNDS)
    story = data.draw(stories(ordered=data.draw(st.booleans())))
    engine = PlainEngine([join_of(how, within)], story.lateness, instances=data.draw(st.integers(1, 3)))
    for batch in (*story.batches, {}):
        promised_us = output_watermark(engine.operators["join1"], engine.manifest)
        before = engine.emitted["join1"].copy()
        engine.run(batch)
        assert all(row[-1] >= promised_us for row in engine.emitted["join1"] - before)  # type: ignore[operator]
    engine.close()


class JoinAndWindow(PlainWindows):
    """A join, and windows of what leaves it, by key."""

    def __init__(self, join: PlainJoin, window: PlainWindow, lateness: Mapping[str, int]) -> None:
        PlainEngine.__init__(self, [join], lateness, others={window.name: window.operator()})
        self.windows, self._window_layouts = [window], {window.name: window.layout(4, lateness)}

    def _pass(
        self,
        plan: Plan,
        before: Manifest,
        rows: Mapping[str, Sequence[Any]],
        emitted: dict[str, Counter[Joined]],
    ) -> list[TaskReport]:
        known = emitted["join1"].copy()
        reports = PlainEngine._pass(self, plan, before, rows, emitted)
        left = (emitted["join1"] - known).elements()
        return reports + super()._pass(plan, before, {"join1": [as_row(row) for row in left]}, emitted)


def as_row(row: Joined) -> dict[str, Any]:
    return {"time": row[-1], "word": None if row[0] is None else str(row[0]), "flag": True}


@given(data=st.data())
@settings(max_examples=settings().max_examples // 2)
def test_windows_behind_a_join_hold_all_rows_that_leave_it(data: st.DataObject) -> None:
    within, how = data.draw(BOUNDS), data.draw(st.sampled_from(HOWS))
    window = PlainWindow(
        "window1", "join1", data.draw(specs()), ("word",), (PlainAggregate("count", ("flag",)),)
    )
    story = data.draw(stories(ordered=data.draw(st.booleans())))
    engine = JoinAndWindow(join_of(how, within), window, story.lateness)
    settle_after = data.draw(st.booleans(), label="settle after each batch")
    for batch in story.batches:
        engine.run(batch, settle_after=settle_after)
    finish(engine, flush=data.draw(st.booleans(), label="flush"))
    joined = naive(accepted(story, "a"), accepted(story, "b"), within, how, (2, 2))
    check_windows(window, engine, window.expected([as_row(row) for row in joined.elements()]))
    engine.close()


def emitted_by(engine: PlainEngine, rows: dict[str, list[tuple[int, int, int, int]]]) -> list[Joined]:
    before = engine.emitted["join1"].copy()
    engine.run(rows)
    return list((engine.emitted["join1"] - before).elements())


def stored(engine: PlainEngine, side: int) -> int:
    return sum(piece.rows for piece in engine.manifest.pieces if piece.side == side)


@pytest.mark.parametrize(("how", "within"), [("left", BEFORE), ("left_anti", BEFORE), ("right", AFTER)])
def test_a_row_whose_partners_lie_before_it_is_settled_on_arrival(how: str, within: Within) -> None:
    engine = PlainEngine([join_of(how, within)], {"a": 2, "b": 2})
    late, early = ("a", "b") if within == BEFORE else ("b", "a")
    engine.run({stream: [(100, 2, 0, 0)] for stream in "ab"})
    engine.run({early: [(101, 1, 1, 0)], late: [(101, 3, 2, 0)]})
    # The watermark is 99: what lies 10 before 108 is there, what lies 10 before 109 and later may still come.
    found = emitted_by(engine, {late: [(108, 7, 3, 0), (109, 7, 4, 0)]})
    assert [row[-1] for row in found] == [108]
    # Once only, also when the watermark passes the row itself.
    for time in (111, 130, 150):
        found += emitted_by(engine, {stream: [(time, 2, 0, 0)] for stream in "ab"})
    assert Counter(row[-1] for row in found if row[0] == 7) == Counter([108, 109])
    engine.close()


def test_a_row_with_a_copy_elsewhere_is_not_settled_before_its_matches_are_known() -> None:
    join = join_of("left_anti", BEFORE)
    hot = join.coder(1)
    engine = PlainEngine([join], {"a": 2, "b": 2}, partitions=2, first=[Assignment(4, (0, 1))])
    engine.assign("join1", Assignment(4, (0, 1), 1, {hot: (0, 1, 2, 3)}, {hot: 2}))
    engine.run({"a": [(50, 2, 0, 0)], "b": [(90 + n % 3, 1, n, 0) for n in range(12)]})
    engine.run({stream: [(101, 2, 0, 0)] for stream in "ab"})
    # One of these has no partner.
    found = emitted_by(engine, {"a": [(104 + n, 1, n, 0) for n in range(4)] + [(116, 1, 9, 0)]})
    assert not [row for row in found if row[0] == 1]
    for time in (130, 150, 170):
        found += emitted_by(engine, {stream: [(time, 2, 0, 0)] for stream in "ab"})
    assert [row[1] for row in found if row[0] == 1] == [9]
    engine.close()


@pytest.mark.parametrize(("within", "kept"), [(AFTER, LEFT), (BEFORE, RIGHT)])
def test_only_the_side_that_waits_for_partners_is_stored(within: Within, kept: int) -> None:
    engine = PlainEngine([join_of("inner", within)], {"a": 2, "b": 2})
    for time in range(0, 100, 2):
        engine.run({stream: [(time, 1, time, 0)] for stream in "ab"})
    # The first rows came when nothing was known of the time.
    assert stored(engine, 1 - kept) == 0
    assert 10 <= stored(engine, kept) <= 15
    rows = [(1, time, 0, time) for time in range(0, 100, 2)]
    assert engine.emitted["join1"] == naive(rows, rows, within, "inner", (2, 2))
    engine.close()
