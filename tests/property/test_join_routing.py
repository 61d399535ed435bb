"""Whatever moves between two batches, no pair is lost and none comes twice.

Batches run under assignments drawn at random: keys are cut out, moved, split, joined back, partitions are
shared by several instances, instances come and go; the two sides lie together or apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracle.expected import Flat, naive
from tests.oracle.plain_engine import PlainEngine, small_steps
from tests.oracle.plain_join import PlainJoin, colliding, well_mixed
from tests.oracle.stories import HOWS, WINDOWED, WITHIN, Story, stories
from tests.property.test_join_results import finish, flat, join_of

from tidegate.control.balance.rerouting import held_partitions
from tidegate.join.within import Within
from tidegate.model.routing import NOBODY
from tidegate.route.assignment import Assignment

KEYS = tuple(well_mixed(key) for key in (1, 2, 3, 4))


@pytest.fixture(autouse=True, scope="module")
def merges_early_and_small_chunks() -> Iterator[None]:
    with small_steps():
        yield


@st.composite
def assignments(draw: st.DrawFn, partitions: int, keys: tuple[int, ...] = KEYS) -> Assignment:
    instances = draw(st.integers(1, 4))
    spread = draw(st.sampled_from([1, 1, 1, instances, min(2, instances)]))
    owner = st.integers(0, instances - 1)
    table = draw(st.lists(owner, min_size=partitions, max_size=partitions))
    some = st.lists(owner, min_size=1, max_size=4, unique=True).map(tuple)
    placed = {} if spread > 1 else draw(st.dictionaries(st.sampled_from(keys), some, max_size=3))
    columns = {
        code: draw(st.sampled_from([n for n in range(1, 5) if len(places) % n == 0]))
        for code, places in placed.items()
    }
    return Assignment(instances, tuple(table), spread, placed, columns)


def played(data: st.DataObject, join: PlainJoin, story: Story, keys: tuple[int, ...] = KEYS) -> Counter[Flat]:
    """All rows that come out of the story, with another assignment in every batch."""
    partitions, apart = data.draw(st.integers(1, 5)), data.draw(st.booleans(), label="apart")
    wanted = assignments(partitions, keys)
    first = [data.draw(wanted) for _ in range(1 + apart)]
    engine = PlainEngine([join], story.lateness, partitions=partitions, first=first)
    settle_after = data.draw(st.booleans(), label="settle after each batch")
    for batch in story.batches:
        if data.draw(st.integers(0, 2), label="assign") < 2:
            engine.assign("join1", *(data.draw(wanted) for _ in first))
        attempts = 2 if data.draw(st.integers(0, 9), label="again") == 0 else 1
        engine.run(batch, settle_after=settle_after, attempts=attempts)
        check_state(engine)
    finish(engine, flush=data.draw(st.booleans(), label="flush"))
    joined = engine.emitted["join1"]
    engine.close()
    return joined


def check_state(engine: PlainEngine) -> None:
    """Every stored row is in one partition, and every partition with rows belongs to an instance."""
    routing = engine.manifest.routing["join1"]
    for piece in engine.manifest.pieces:
        rows = [row for _, start, stop in piece.ranges for row in range(start, stop)]
        assert len(rows) == len(set(rows)) <= piece.rows
    for placement, held in zip(routing.sides, held_partitions("join1", engine.manifest.pieces), strict=True):
        assert all(placement.table[partition] != NOBODY for partition in held)
        for place in placement.places:
            assert {placement.table[p] for p in place.holds} == {placement.table[p] for p in place.stores}
        named = {p for place in placement.places for p in place.holds}
        assert held <= named | set(range(engine.partitions))


@pytest.mark.parametrize("how", HOWS)
@given(data=st.data())
@settings(max_examples=settings().max_examples // 4)
def test_whatever_moves_the_result_is_that_of_one_instance(how: str, data: st.DataObject) -> None:
    within = data.draw(WITHIN if how in ("inner", "left_semi") else WINDOWED)
    story = data.draw(stories(ordered=True))
    joined = played(data, join_of(how, within), story)
    left, right = (flat(story, stream) for stream in "ab")
    assert joined == naive(left, right, within, how, (2, 2))


@pytest.mark.parametrize("how", ["inner", "full", "left_semi"])
@given(data=st.data())
@settings(max_examples=settings().max_examples // 8)
def test_keys_that_share_a_code_move_together(how: str, data: st.DataObject) -> None:
    within = data.draw(WITHIN if how in ("inner", "left_semi") else WINDOWED)
    story = data.draw(stories(ordered=True, text_keys=True))
    join = join_of(how, within, text_keys=True, collide=True)
    keys = tuple({colliding(key) for key in ("hot", "", "x", "ß")})
    joined = played(data, join, story, keys)
    left, right = (flat(story, stream) for stream in "ab")
    assert joined == naive(left, right, within, how, (2, 2))


@pytest.mark.parametrize("how", ["inner", "full"])
def test_keys_cut_out_of_one_piece_for_different_instances_stay_whole(how: str) -> None:
    # Each instance is concerned by its own key only, and all of them tell what became of the piece.
    join = join_of(how, Within(-50, 50))
    engine = PlainEngine([join], {"a": 0, "b": 0}, partitions=1, first=[Assignment(4, (0,))])
    rows = [(time, key, 10 * time + key, 0) for time in range(3) for key in (1, 2, 3, 4)]
    engine.run({"a": rows, "b": rows})
    engine.assign("join1", Assignment(4, (0,), keys={KEYS[i]: (i + 1,) for i in range(3)}))
    for time in (3, 4):
        engine.run({stream: [(time, key, 10 * time + key, 0) for key in (1, 2, 3, 4)] for stream in "ab"})
    finish(engine, flush=True)
    everything = [(key, 10 * time + key, 0, time) for time in range(5) for key in (1, 2, 3, 4)]
    assert engine.emitted["join1"] == naive(everything, everything, Within(-50, 50), how, (2, 2))
    engine.close()
