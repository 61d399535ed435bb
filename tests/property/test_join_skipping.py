"""A join that skips work by its plan: a subset of the truth, the same one wherever rows lie."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracle.expected import Flat, naive
from tests.oracle.plain_engine import PlainEngine, small_steps
from tests.oracle.plain_join import Condition, PlainJoin
from tests.oracle.stories import WITHIN, Story, stories

from tidegate.join.selective.reach import ages_of
from tidegate.join.within import Within
from tidegate.model.reports import TaskReport
from tidegate.model.skip_plan import Skipping
from tidegate.model.times import BEGINNING_US
from tidegate.route.assignment import Assignment
from tidegate.worker.join.task import JoinInstance

SHARES = st.sampled_from([0.0, 0.0, 0.25, 0.5, 1.0, 1.0])
#: Rows of one side below such a time are stale.
FRESH = st.one_of(st.just(BEGINNING_US), st.integers(-40, 60))


@pytest.fixture(autouse=True, scope="module")
def merges_early_and_small_chunks() -> Iterator[None]:
    with small_steps():
        yield


def join_of(how: str, within: Condition) -> PlainJoin:
    return PlainJoin("join1", "a", "b", how, within, ("a_n", "a_v"), ("b_n", "b_v"))


@st.composite
def skippings(draw: st.DrawFn, within: Condition) -> Skipping:
    left, right = (
        tuple(draw(st.lists(SHARES, min_size=count, max_size=count)))
        for count in (ages_of(within, side).count for side in (0, 1))
    )
    return Skipping(
        fraction=0.5,
        shares=(left, right),
        explore_share=draw(st.sampled_from([0.0, 0.3, 1.0])),
        explore_depth=draw(st.sampled_from([0.1, 0.5, 1.0])),
        fresh_us=(draw(FRESH), draw(FRESH)),
        forget_us=(draw(st.sampled_from([BEGINNING_US, BEGINNING_US, 0])), BEGINNING_US),
        filled_us=(draw(st.integers(-40, 60)), draw(st.integers(-40, 60))),
    )


def nothing_skipped(within: Condition) -> Skipping:
    left, right = ((1.0,) * ages_of(within, side).count for side in (0, 1))
    return Skipping(1.0, (left, right))


def played(
    data: st.DataObject, join: PlainJoin, story: Story, plans: list[Skipping], order: int = 1
) -> tuple[Counter[Flat], list[TaskReport]]:
    """The story on any number of instances between which partitions move, some batches run twice.

    `order`: -1: the rows of a batch arrive the other way round.
    """
    partitions = data.draw(st.integers(1, 9))
    engine = PlainEngine([join], story.lateness, partitions=partitions, instances=1)
    for batch, skipping in zip(story.batches, plans, strict=True):
        instances = data.draw(st.integers(1, 3))
        owner = st.integers(0, instances - 1)
        table = data.draw(st.lists(owner, min_size=partitions, max_size=partitions))
        engine.reroute("join1", instances, table)
        attempts = data.draw(st.sampled_from([1, 1, 2]))
        rows = {stream: some[::order] for stream, some in batch.items()}
        engine.run(rows, attempts=attempts, skipping={"join1": skipping})
    emitted, reports = engine.emitted["join1"], engine.reports
    engine.close()
    return emitted, reports


def exact(story: Story, within: Condition, how: str) -> Counter[Flat]:
    left, right = ([(*cells, time) for time, *cells in story.all_rows(s)] for s in "ab")
    return naive(left, right, within, how, (2, 2))


@given(st.data())
def test_what_is_found_is_a_subset_and_depends_on_the_plan_alone(data: st.DataObject) -> None:
    within, how = data.draw(WITHIN), data.draw(st.sampled_from(["inner", "left_semi"]))
    story = data.draw(stories(ordered=True))
    plans = [data.draw(skippings(within)) for _ in story.batches]
    once, _ = played(data, join_of(how, within), story, plans)
    again, _ = played(data, join_of(how, within), story, plans, order=-1)
    assert once == again
    assert once <= exact(story, within, how)


@pytest.mark.parametrize("values", [1, 7, 40])
def test_rows_of_one_key_and_time_explore_apart_in_whatever_order_they_arrive(values: int) -> None:
    within = Within(-40, 40)
    ages = [ages_of(within, side).count for side in (0, 1)]
    exploring = Skipping(0.5, ((0.0,) * ages[0], (0.0,) * ages[1]), explore_share=0.5)
    rows = [(5, number % 2, number % values, 0) for number in range(80)]
    found = []
    for order in (1, -1):
        engine = PlainEngine([join_of("inner", within)], {"a": 100, "b": 100}, partitions=4, instances=2)
        engine.run({"a": [], "b": rows[::order]}, skipping={"join1": exploring})
        engine.run({"a": rows[::order], "b": []}, skipping={"join1": exploring})
        found.append(engine.emitted["join1"])
        engine.close()
    assert found[0] == found[1]
    # Each row that explores finds the forty of its key.
    assert 0.3 < found[0].total() / (80 * 40) < 0.7


@given(st.data())
@settings(max_examples=settings().max_examples // 3)
def test_a_plan_that_skips_nothing_changes_nothing(data: st.DataObject) -> None:
    within = data.draw(WITHIN)
    story = data.draw(stories(ordered=True))
    plans = [nothing_skipped(within)] * len(story.batches)
    joined, reports = played(data, join_of("inner", within), story, plans)
    assert joined == exact(story, within, "inner")
    assert sum(joined.values()) == sum(sum(look.chosen_matches) for r in reports for look in r.probes)
    for look in (look for report in reports for look in report.probes):
        assert look.chosen == look.candidates
        assert not any(look.explored)


@given(st.data())
@settings(max_examples=settings().max_examples // 3)
def test_rows_that_look_together_find_what_they_do_slot_by_slot(data: st.DataObject) -> None:
    within, story = data.draw(WITHIN), data.draw(stories(ordered=True))
    partitions, instances = data.draw(st.integers(3, 9)), data.draw(st.integers(1, 3))
    join = join_of("inner", within)
    keys = [row[1] for batch in story.batches for row in batch.get("a", ()) if row[1] is not None]
    hot = keys[:3] if instances > 1 and data.draw(st.booleans()) else ()
    places = {join.coder(key): tuple(range(instances)) for key in hot}
    owners = tuple(partition % instances for partition in range(partitions))
    found = []
    for together in (None, False):
        with patch.object(JoinInstance, "_probe_together", together) if together is False else nullcontext():
            engine = PlainEngine([join], story.lateness, partitions=partitions)
            engine.assign("join1", Assignment(instances, owners, 1, places))
            ages = []
            for batch in story.batches:
                done = len(engine.reports)
                engine.run(batch, skipping={"join1": nothing_skipped(within)})
                ages.append(matches_by_age(engine.reports[done:]))
            found.append((engine.emitted["join1"], ages, [report.work.matches for report in engine.reports]))
            engine.close()
    assert found[0] == found[1]


def matches_by_age(reports: list[TaskReport]) -> list[list[int]]:
    """Per window: what was found at each age, by all instances."""
    sums = [Counter[int](), Counter[int]()]
    for report in reports:
        for window, look in enumerate(report.probes):
            sums[window].update({age: int(found) for age, found in enumerate(look.chosen_matches)})
    return [[one[age] for age in sorted(one)] for one in sums]


@given(st.data())
@settings(max_examples=settings().max_examples // 4)
def test_without_the_stale_rows_it_is_the_join_of_the_others(data: st.DataObject) -> None:
    within, how = data.draw(WITHIN), data.draw(st.sampled_from(["inner", "left_semi"]))
    story = data.draw(stories(ordered=True))
    fresh = [(data.draw(FRESH), data.draw(FRESH)) for _ in story.batches]
    plans = [replace(nothing_skipped(within), fresh_us=one) for one in fresh]
    joined, reports = played(data, join_of(how, within), story, plans)
    left, right = (
        [
            (*cells, time)
            for batch, one in zip(story.batches, fresh, strict=True)
            for time, *cells in batch.get(stream, ())
            if time is not None and time >= one[side]
        ]
        for side, stream in enumerate("ab")
    )
    assert joined == naive(left, right, within, how, (2, 2))
    told = sum(len(story.all_rows(stream)) for stream in "ab") - len(left) - len(right)
    assert sum(sum(report.rows.stale) for report in reports) == told


@given(st.data())
@settings(max_examples=settings().max_examples // 4)
def test_rows_that_look_at_nothing_are_still_stored(data: st.DataObject) -> None:
    within = data.draw(WITHIN)
    story = data.draw(stories(ordered=True))
    ages = [ages_of(within, side).count for side in (0, 1)]
    blind = Skipping(0.0, ((0.0,) * ages[0], (0.0,) * ages[1]))
    joined, reports = played(data, join_of("inner", within), story, [blind] * len(story.batches))
    assert not joined
    keyed = [row for stream in "ab" for row in story.all_rows(stream) if row[1] is not None]
    assert sum(report.work.stored for report in reports) == len(keyed)
