"""The engine's joins give what a join of the finished data gives, however rows come and wherever they lie."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracle.expected import Flat, duckdb_join, naive
from tests.oracle.plain_engine import PlainEngine, small_steps
from tests.oracle.plain_join import Cell, Condition, PlainJoin, Where, colliding, well_mixed
from tests.oracle.stories import HOWS, WINDOWED, WITHIN, Story, accepted, hows, stories

FAR = 10_000


@pytest.fixture(autouse=True, scope="module")
def merges_early_and_small_chunks() -> Iterator[None]:
    with small_steps():
        yield


def value_rises(row: dict[str, Cell]) -> bool:
    """A residual condition; the SQL and the tuple form of it are below."""
    left, right = row["a_v"], row["b_v"]
    return isinstance(left, int) and isinstance(right, int) and left <= right


def rises(left: Flat, right: Flat) -> bool:
    return value_rises({"a_v": left[2], "b_v": right[2]})


def join_of(
    how: str, within: Condition, where: Where | None = None, text_keys: bool = False, collide: bool = False
) -> PlainJoin:
    coder = colliding if collide else well_mixed
    return PlainJoin("join1", "a", "b", how, within, ("a_n", "a_v"), ("b_n", "b_v"), where, text_keys, coder)


def flat(story: Story, stream: str) -> list[Flat]:
    return [(*cells, time) for time, *cells in story.all_rows(stream)]


@st.composite
def engines(draw: st.DrawFn, join: PlainJoin, story: Story) -> PlainEngine:
    partitions = draw(st.integers(1, 9))
    instances = draw(st.integers(1, min(partitions, 4)))
    return PlainEngine([join], story.lateness, partitions=partitions, instances=instances)


def played(data: st.DataObject, join: PlainJoin, story: Story) -> tuple[Counter[Flat], int]:
    """All rows that come out of the story, and how many were late; partitions move about as it goes."""
    engine = data.draw(engines(join, story))
    partitions = engine.partitions
    settle_after = data.draw(st.booleans(), label="settle after each batch")
    for batch in story.batches:
        if data.draw(st.integers(0, 3), label="reroute") == 0:
            instances = data.draw(st.integers(1, 5))
            owner = st.integers(0, instances - 1)
            engine.reroute(
                "join1", instances, data.draw(st.lists(owner, min_size=partitions, max_size=partitions))
            )
        attempts = 2 if data.draw(st.integers(0, 9), label="again") == 0 else 1
        engine.run(batch, settle_after=settle_after, attempts=attempts)
    finish(engine, flush=data.draw(st.booleans(), label="flush"))
    late = sum(sum(report.rows.late) for report in engine.reports)
    joined = engine.emitted["join1"]
    engine.close()
    return joined, late


def finish(engine: PlainEngine, flush: bool) -> None:
    """Everything that waits comes out: because it is the end, or because time has moved on."""
    if flush:
        engine.run({}, flush=True)
        return
    # A null key never matches, and these two wait themselves: nothing of them is seen.
    engine.run({stream: [(FAR, None, 0, 0)] for stream in engine.settings})
    engine.run({})
    # Where keys are split, unmatched rows are settled one batch later.
    engine.run({})


@given(st.data())
@settings(max_examples=settings().max_examples // 2)
def test_disorder_within_lateness_changes_nothing(data: st.DataObject) -> None:
    within = data.draw(WITHIN)
    how = data.draw(hows(within))
    story = data.draw(stories(ordered=True))
    joined, late = played(data, join_of(how, within), story)
    left, right = (flat(story, stream) for stream in "ab")
    assert late == 0
    assert joined == naive(left, right, within, how, (2, 2)) == duckdb_join(left, right, within, how)


@given(st.data())
@settings(max_examples=settings().max_examples // 2)
def test_late_rows_are_counted_and_leave_no_other_trace(data: st.DataObject) -> None:
    within = data.draw(WITHIN)
    how = data.draw(hows(within))
    story = data.draw(stories(ordered=False))
    joined, late = played(data, join_of(how, within), story)
    left, right = accepted(story, "a"), accepted(story, "b")
    timed = [row for stream in "ab" for row in story.all_rows(stream) if row[0] is not None]
    assert late == len(timed) - len(left) - len(right)
    assert joined == naive(left, right, within, how, (2, 2))


@pytest.mark.parametrize("how", HOWS)
@given(data=st.data())
@settings(max_examples=settings().max_examples // 4)
def test_a_residual_condition_decides_what_counts_as_a_match(how: str, data: st.DataObject) -> None:
    within = data.draw(WITHIN if how in ("inner", "left_semi") else WINDOWED)
    story = data.draw(stories(ordered=True))
    joined, _ = played(data, join_of(how, within, value_rises), story)
    left, right = (flat(story, stream) for stream in "ab")
    expected = naive(left, right, within, how, (2, 2), rises)
    assert joined == expected == duckdb_join(left, right, within, how, "a.v <= b.v")


@given(st.data())
@settings(max_examples=settings().max_examples // 2)
def test_colliding_codes_never_make_a_pair(data: st.DataObject) -> None:
    within = data.draw(WITHIN)
    how = data.draw(hows(within))
    story = data.draw(stories(ordered=True, text_keys=True))
    where = data.draw(st.sampled_from([None, value_rises]))
    joined, _ = played(data, join_of(how, within, where, text_keys=True, collide=True), story)
    left, right = (flat(story, stream) for stream in "ab")
    expected = naive(left, right, within, how, (2, 2), None if where is None else rises)
    assert joined == expected
    assert joined == duckdb_join(left, right, within, how, None if where is None else "a.v <= b.v")


@given(st.data())
@settings(max_examples=settings().max_examples // 2)
def test_rows_without_a_time_are_rejected_and_counted(data: st.DataObject) -> None:
    within = data.draw(WITHIN)
    story = data.draw(stories(ordered=False))
    engine = PlainEngine([join_of(data.draw(hows(within)), within)], story.lateness)
    for batch in story.batches:
        engine.run(batch)
    rejected = [sum(report.rows.rejected[side] for report in engine.reports) for side in (0, 1)]
    offered = [sum(report.rows.offered[side] for report in engine.reports) for side in (0, 1)]
    engine.close()
    rows = [story.all_rows(stream) for stream in "ab"]
    assert rejected == [sum(row[0] is None for row in side) for side in rows]
    assert offered == [len(side) for side in rows]
