"""Skipped work is paid in any parts, at any time, wherever rows lie by then: in the end, all of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracle.expected import Flat
from tests.oracle.plain_engine import PlainEngine, small_steps
from tests.oracle.plain_join import Coder, Condition, PlainJoin, colliding, well_mixed
from tests.oracle.stories import WITHIN, Batch, Story, stories
from tests.property.test_join_conditions import CASES, expected, without_keys
from tests.property.test_join_routing import KEYS, assignments, check_state
from tests.property.test_join_skipping import exact, skippings

from tidegate.join.selective.reach import ages_of
from tidegate.join.within import Within
from tidegate.model.codec import decode, encode_exactly
from tidegate.model.debts import Debt, DebtRepair, RepairCell
from tidegate.model.manifest import Manifest
from tidegate.model.skip_plan import Skipping
from tidegate.route.assignment import Assignment

PLENTY = 1 << 40
#: Codes of keys that get places of their own.
KEYS_OF: dict[Coder, tuple[int, ...]] = {
    well_mixed: KEYS,
    colliding: tuple({colliding(key) for key in ("hot", "", "x", "ß")}),
}


@pytest.fixture(autouse=True, scope="module")
def merges_early_and_small_chunks() -> Iterator[None]:
    with small_steps():
        yield


def join_of(how: str, within: Condition, **more: object) -> PlainJoin:
    columns = ("a_n", "a_v"), ("b_n", "b_v")
    return PlainJoin("join1", "a", "b", how, within, *columns, repaired=True, **more)  # type: ignore[arg-type]


def keeping_rows(skipping: Skipping) -> Skipping:
    """The same, but every row is stored: what is gone cannot be made up for."""
    return Skipping(
        skipping.fraction,
        skipping.shares,
        skipping.explore_share,
        skipping.explore_depth,
        filled_us=skipping.filled_us,
    )


@st.composite
def repairs(draw: st.DrawFn, debts: tuple[Debt, ...], often: int) -> dict[str, tuple[DebtRepair, ...]]:
    """Some cells of some debts, so often out of ten times, up to some lot."""
    made = []
    for debt in debts if often else ():
        if draw(st.integers(0, 9)) < often:
            until = draw(st.lists(st.sampled_from([0.0, 0.3, 0.6, 1.0]), min_size=1, max_size=5))
            cells = [
                RepairCell(cell.window, cell.age, cell.repaired, until[i % len(until)])
                for i, cell in enumerate(debt.cells)
                if until[i % len(until)] > cell.repaired
            ]
            made.append(DebtRepair(debt.batch, tuple(cells)))
    return {"join1": tuple(made)} if made else {}


@st.composite
def passing_time(draw: st.DrawFn, story: Story) -> list[Batch]:
    """Batches after the story: time moves on, and windows end, while nothing comes that could match."""
    now = max((row[0] or 0 for stream in "ab" for row in story.all_rows(stream)), default=0)
    batches: list[Batch] = []
    for step in draw(st.lists(st.sampled_from([1, 3, 6, 12, 100]), max_size=4)):
        now += step
        batches.append({stream: [(now, None, 0, 0)] for stream in "ab"})
    return batches


def whole_partitions(partitions: int) -> st.SearchStrategy[Assignment]:
    """Without a key nothing but whole partitions moves."""
    tables = st.lists(st.integers(0, 2), min_size=partitions, max_size=partitions)
    return tables.map(lambda table: Assignment(3, tuple(table)))


def restarted(manifest: Manifest) -> Manifest:
    """As the next run reads it."""
    return decode(Manifest, encode_exactly(manifest))


def played(data: st.DataObject, join: PlainJoin, story: Story, apart: bool = False) -> Counter[Flat]:
    """The story with work skipped and paid at random, then idle batches in which all is paid."""
    partitions = data.draw(st.integers(1, 5))
    wanted = whole_partitions(partitions) if join.spread else assignments(partitions, KEYS_OF[join.coder])
    first = [data.draw(wanted) for _ in range(1 + apart)]
    engine = PlainEngine([join], story.lateness, partitions=partitions, first=first)
    often = data.draw(st.sampled_from([0, 0, 2, 5]), label="pays so often")
    for batch in (*story.batches, *data.draw(passing_time(story))):
        if data.draw(st.booleans(), label="assign"):
            engine.assign("join1", *(data.draw(wanted) for _ in first))
        engine.manifest = restarted(engine.manifest)
        engine.run(
            batch,
            attempts=data.draw(st.sampled_from([1, 1, 2])),
            skipping={"join1": keeping_rows(data.draw(skippings(join.within)))},
            repair_bytes=PLENTY,
            repairs=data.draw(repairs(engine.manifest.debts, often)),
            repair_all=often > 2 and data.draw(st.integers(0, 9)) == 0,
        )
        check_state(engine)
    engine.run({}, repair_bytes=PLENTY, repair_all=True)
    assert not engine.manifest.debts
    assert not engine.manifest.written_off
    emitted = engine.emitted["join1"]
    engine.close()
    return emitted


def without_batches(emitted: Counter[Flat]) -> Counter[Flat]:
    union: Counter[Flat] = Counter()
    for row, count in emitted.items():
        union[(*row[:-2], row[-1])] += count
    return union


def check_belonging(emitted: Counter[Flat], story: Story) -> None:
    """A pair that comes late says the batch of the later of its rows."""
    came = {
        (stream, row[2]): number
        for number, batch in enumerate(story.batches)
        for stream in "ab"
        for row in batch.get(stream, ())
    }
    for row in emitted:
        if row[-2] is not None:
            assert row[-2] == max(came["a", row[1]], came["b", row[3]])  # type: ignore[index]


@pytest.mark.parametrize("how", ["inner", "left_semi"])
@pytest.mark.parametrize("apart", [False, True])
@given(data=st.data())
@settings(max_examples=settings().max_examples // 3)
def test_in_the_end_the_union_is_the_exact_join(how: str, apart: bool, data: st.DataObject) -> None:
    within = data.draw(WITHIN)
    story = data.draw(stories(ordered=True))
    emitted = played(data, join_of(how, within), story, apart)
    assert without_batches(emitted) == exact(story, within, how)
    if how == "inner":
        check_belonging(emitted, story)


@pytest.mark.parametrize("spread", [False, True])
@given(data=st.data())
@settings(max_examples=settings().max_examples // 5)
def test_whatever_else_pairs_must_meet_is_judged_later_just_so(spread: bool, data: st.DataObject) -> None:
    within, case = data.draw(WITHIN), data.draw(st.sampled_from(CASES))
    story = data.draw(stories(ordered=True))
    story = without_keys(story) if spread else story
    join = join_of("inner", within, condition=case.on, spread=spread)
    emitted = played(data, join, story)
    assert without_batches(emitted) == expected(story, within, "inner", case)
    check_belonging(emitted, story)


@given(data=st.data())
@settings(max_examples=settings().max_examples // 6)
def test_keys_that_share_a_code_are_told_apart_later_too(data: st.DataObject) -> None:
    within = data.draw(WITHIN)
    story = data.draw(stories(ordered=True, text_keys=True))
    emitted = played(data, join_of("inner", within, text_keys=True, coder=colliding), story)
    assert without_batches(emitted) == exact(story, within, "inner")


def blind(within: Within) -> Skipping:
    left, right = ((0.0,) * ages_of(within, side).count for side in (0, 1))
    return Skipping(0.0, (left, right))


def passed_over(rows: dict[str, list[tuple[int, int, int, int]]], repair_bytes: int) -> PlainEngine:
    """Rows that nobody looked at, twice, and time that moves to where some of a slot are out of reach."""
    within = Within(-20, 20)
    engine = PlainEngine([join_of("inner", within)], {"a": 5, "b": 5}, partitions=1, instances=1)
    for batch in (rows, {stream: [*rows[stream], (30, None, 9, 0)] for stream in rows}, {}):
        engine.run(batch, skipping={"join1": blind(within)}, repair_bytes=repair_bytes)
    return engine


def test_a_merge_keeps_the_rows_that_are_owed() -> None:
    # Slots are 2 long, so both rows lie in one; with the watermark at 25 the first of them is out of reach.
    engine = passed_over({stream: [(4, 1, 1, 0), (5, 1, 2, 0)] for stream in "ab"}, PLENTY)
    assert engine.manifest.settled_us["join1"] == 25
    assert any(piece.level for piece in engine.manifest.pieces)
    engine.run({}, repair_bytes=PLENTY, repair_all=True)
    assert engine.emitted["join1"].total() == 16
    engine.close()


def test_what_may_not_outlive_its_window_is_forgiven_and_told() -> None:
    engine = passed_over({stream: [(1, 1, 1, 0)] for stream in "ab"}, 0)
    assert [debt.batch for debt in engine.manifest.written_off] == [0, 1]
    assert not engine.manifest.debts
    assert not engine.manifest.pieces
    engine.run({}, repair_bytes=0, repair_all=True)
    assert not engine.manifest.written_off
    assert not engine.emitted["join1"]
    engine.close()


def test_a_run_without_repair_gives_up_what_was_owed_before() -> None:
    engine = passed_over({stream: [(1, 1, 1, 0)] for stream in "ab"}, PLENTY)
    assert [debt.batch for debt in engine.manifest.debts] == [0, 1]
    assert engine.manifest.pieces
    engine.run({})
    assert [debt.batch for debt in engine.manifest.written_off] == [0, 1]
    assert not engine.manifest.pieces
    engine.close()
