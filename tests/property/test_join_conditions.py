"""Joins on sets and functions give what a double loop gives, with and without a key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, get_args
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracle.expected import Flat, naive
from tests.oracle.plain_engine import PlainEngine, Row, small_steps
from tests.oracle.plain_join import ITEMS, Cell, Condition, PlainJoin, items_of
from tests.oracle.stories import HOWS, WINDOWED, WITHIN, Story, stories
from tests.property.test_join_skipping import skippings

from tidegate.api.joins.conditions import Condition as OnCondition
from tidegate.api.joins.conditions import OnSets, SetIndex, overlap, pairwise
from tidegate.join.selective.reach import ages_of
from tidegate.model.skip_plan import Skipping

INDEXES: tuple[SetIndex, ...] = get_args(SetIndex)


@pytest.fixture(autouse=True, scope="module")
def merges_early_and_small_chunks() -> Iterator[None]:
    with small_steps():
        yield


@dataclass(frozen=True)
class Case:
    """A condition, and the same as a function of two values."""

    on: OnCondition
    judge: Callable[[int, int], bool]


def common(left: int, right: int) -> int:
    return len(set(items_of(left)) & set(items_of(right)))


def all_items(left: int, right: int) -> int:
    return len(set(items_of(left)) | set(items_of(right)))


def values_add_up(left: Any, right: Any) -> Any:
    return (left["a_v"] + right["b_v"]) % 3 == 0


CASES = [
    *(Case(overlap(ITEMS, at_least=1, index=i), lambda a, b: common(a, b) >= 1) for i in INDEXES),
    *(Case(overlap(ITEMS, at_least=2, index=i), lambda a, b: common(a, b) >= 2) for i in INDEXES),
    Case(overlap(ITEMS, jaccard=1 / 3), lambda a, b: 3 * common(a, b) >= max(1, all_items(a, b))),
    Case(pairwise(values_add_up, {"a_v": "b_v"}), lambda a, b: (a + b) % 3 == 0),
]

SET_CASES = [case for case in CASES if isinstance(case.on, OnSets)]


def without_keys(story: Story) -> Story:
    """The story with one key for all rows that have one: what is left of the join is its condition."""

    def plain(row: Row) -> Row:
        return (row[0], None if row[1] is None else 1, *row[2:])

    return replace(
        story, batches=tuple({name: [*map(plain, rows)] for name, rows in b.items()} for b in story.batches)
    )


def expected(story: Story, within: Condition, how: str, case: Case) -> Counter[Flat]:
    left, right = ([(*cells, time) for time, *cells in story.all_rows(s)] for s in "ab")

    def judge(a: Flat, b: Flat) -> bool:
        return case.judge(_whole(a[2]), _whole(b[2]))

    return naive(left, right, within, how, (2, 2), judge)


def _whole(cell: Cell) -> int:
    assert isinstance(cell, int)
    return cell


def join_of(how: str, within: Condition, case: Case, spread: bool) -> PlainJoin:
    sides = ("a_n", "a_v"), ("b_n", "b_v")
    return PlainJoin("join1", "a", "b", how, within, *sides, condition=case.on, spread=spread)


@st.composite
def choosing(draw: st.DrawFn, within: Condition) -> Skipping:
    """Plans that let rows choose by content."""
    left, right = ((0.0,) * ages_of(within, side).count for side in (0, 1))
    content, explore = draw(st.sampled_from([0.0, 0.3, 0.6, 1.0])), draw(st.sampled_from([0.0, 0.3, 1.0]))
    return Skipping(0.5, (left, right), explore, draw(st.sampled_from([0.1, 1.0])), content=content)


def played(
    data: st.DataObject,
    join: PlainJoin,
    story: Story,
    plans: Callable[[Condition], st.SearchStrategy[Skipping]] | None = None,
) -> Counter[Flat]:
    partitions = data.draw(st.integers(1, 6))
    engine = PlainEngine([join], story.lateness, partitions=partitions, instances=1)
    for batch in story.batches:
        instances = data.draw(st.integers(1, 3))
        owner = st.integers(0, instances - 1)
        table = data.draw(st.lists(owner, min_size=partitions, max_size=partitions))
        engine.reroute("join1", instances, table)
        skipping = {"join1": data.draw(plans(join.within))} if plans is not None else None
        engine.run(batch, attempts=data.draw(st.sampled_from([1, 1, 2])), skipping=skipping)
    if plans is None:
        engine.run({}, flush=True)
    for look in (look for report in engine.reports for look in report.probes):
        seen = np.add(look.chosen, look.explored)
        assert (seen <= look.candidates).all()
        assert (np.add(look.chosen_matches, look.explored_matches) <= seen).all() or not join.spread
    offered = sum(sum(report.rows.offered) for report in engine.reports)
    assert offered == sum(len(rows) for batch in story.batches for rows in batch.values())
    emitted = engine.emitted["join1"]
    engine.close()
    return emitted


@given(st.data())
@settings(max_examples=settings().max_examples // 2)
def test_without_a_key_every_pair_is_found_once(data: st.DataObject) -> None:
    within, case = data.draw(WITHIN), data.draw(st.sampled_from(CASES))
    story = without_keys(data.draw(stories(ordered=True)))
    joined = played(data, join_of("inner", within, case, spread=True), story)
    assert joined == expected(story, within, "inner", case)


@given(st.data())
@settings(max_examples=settings().max_examples // 4)
def test_without_a_key_skipped_work_leaves_a_subset(data: st.DataObject) -> None:
    within, case = data.draw(WITHIN), data.draw(st.sampled_from(CASES))
    story = without_keys(data.draw(stories(ordered=True)))
    joined = played(data, join_of("inner", within, case, spread=True), story, skippings)
    assert joined <= expected(story, within, "inner", case)


@given(st.data())
@settings(max_examples=settings().max_examples // 2)
def test_rows_that_choose_by_content_find_a_subset_and_the_same_one_in_a_replay(data: st.DataObject) -> None:
    """Some batches run twice under their plan; the engine compares what comes out."""
    within, case = data.draw(WINDOWED), data.draw(st.sampled_from(SET_CASES))
    story = without_keys(data.draw(stories(ordered=True)))
    with patch.multiple("tidegate.join.selective.content_choice", CELL_COMPARISONS=0.0, ROW_COMPARISONS=0.0):
        joined = played(data, join_of("inner", within, case, spread=True), story, choosing)
    assert joined <= expected(story, within, "inner", case)


@given(st.data())
@settings(max_examples=settings().max_examples // 4)
def test_rows_that_may_choose_everything_do(data: st.DataObject) -> None:
    within, case = data.draw(WINDOWED), data.draw(st.sampled_from(SET_CASES))
    story = without_keys(data.draw(stories(ordered=True)))

    def all_of_it(within: Condition) -> st.SearchStrategy[Skipping]:
        return choosing(within).map(lambda plan: replace(plan, content=1.0, explore_share=0.0))

    joined = played(data, join_of("inner", within, case, spread=True), story, all_of_it)
    assert joined == expected(story, within, "inner", case)


@given(st.data())
@settings(max_examples=settings().max_examples // 2)
def test_behind_equal_keys_the_condition_decides_what_counts_as_a_match(data: st.DataObject) -> None:
    how, case = data.draw(st.sampled_from(HOWS)), data.draw(st.sampled_from(CASES))
    within = data.draw(WITHIN if how in ("inner", "left_semi") else WINDOWED)
    story = data.draw(stories(ordered=True))
    joined = played(data, join_of(how, within, case, spread=False), story)
    assert joined == expected(story, within, how, case)
