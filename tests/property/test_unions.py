"""Operators over a union of streams give what they give over the rows of all of them, and no row is lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracle.expected import Flat, naive
from tests.oracle.plain_aggregates import PlainAggregate
from tests.oracle.plain_aggregates import Row as WindowRow
from tests.oracle.plain_engine import Row, small_steps
from tests.oracle.plain_join import PlainJoin
from tests.oracle.plain_unions import UnitedJoins, UnitedWindows, inputs_of
from tests.oracle.plain_window import PlainWindow
from tests.oracle.stories import WITHIN, Story, accepted, hows, stories

from tidegate.control.receipts.ledger import RANDOM_DROP, lines_of, of_stream
from tidegate.join.within import Within
from tidegate.model.graph import Reader
from tidegate.window.spec import WindowSpec

STREAMS = ("a", "b", "c")
UNIONS = {"ab": ("a", "b"), "bc": ("b", "c"), "abc": ("a", "b", "c")}
FAR = 10_000
AGGREGATES = (PlainAggregate("count", ("whole",)), PlainAggregate("sum", ("small",)))


@pytest.fixture(autouse=True, scope="module")
def merges_early_and_small_chunks() -> Iterator[None]:
    with small_steps():
        yield


@st.composite
def uneven_stories(draw: st.DrawFn, streams: tuple[str, ...], *, ordered: bool) -> Story:
    """Some streams come many batches later than others, and times may lie far apart: watermarks differ."""
    story = draw(stories(streams, ordered=ordered))
    stretch = draw(st.sampled_from([1, 8]))
    behind = {stream: draw(st.sampled_from([0, 0, 3, 20])) for stream in streams}
    batches: list[dict[str, Sequence[Row]]] = [{} for _ in range(len(story.batches) + 20)]
    for number, batch in enumerate(story.batches):
        for stream, rows in batch.items():
            batches[number + behind[stream]][stream] = [
                (None if row[0] is None else stretch * row[0], *row[1:]) for row in rows
            ]
    return Story(tuple(batches), story.lateness)


def rows_of(story: Story, name: str) -> list[Flat]:
    return [row for stream in UNIONS.get(name, (name,)) for row in accepted(story, stream)]


def check_ledger(engine: UnitedJoins, since: int, how: str) -> None:
    """Every row of the batch is told of, in its stream and behind the union."""
    join = engine.joins[0]
    keeps = (how in ("left", "full", "left_anti"), how in ("right", "full"))
    sides = [
        Reader(join.name, side, name, RANDOM_DROP, True, keeps[side], joins=True)
        for side, name in enumerate((join.left, join.right))
    ]
    used = {name: UNIONS[name] for name in (join.left, join.right) if name in UNIONS}
    readers = [*inputs_of(used), *sides]
    lines = lines_of(readers, engine.reports[since:], (), engine.counted)
    assert all(line.unexplained == 0 for line in lines.values())
    for stream in {stream for streams in used.values() for stream in streams}:
        line, _ = of_stream(stream, lines, engine.counted)
        assert line.offered == engine.counted.arrived.get(stream, 0)
        assert line.rejected == engine.counted.rejected.get(stream, 0)
    for side in sides:
        if side.source in used:
            mine = [line for reader, line in lines.items() if reader.operator == side.source]
            assert lines[side].offered == sum(line.processed for line in mine)
            assert lines[side].late == 0


@given(st.data(), st.booleans(), st.booleans())
@settings(max_examples=settings().max_examples // 2)
def test_a_join_over_unions_equals_the_join_of_all_their_rows(
    data: st.DataObject, ordered: bool, settle_after: bool
) -> None:
    left, right = data.draw(st.sampled_from([("ab", "c"), ("c", "ab"), ("ab", "bc"), ("ab", "abc")]))
    within = data.draw(WITHIN)
    how = data.draw(hows(within))
    columns, others = ((f"{name}_n", f"{name}_v") for name in (left, right))
    join = PlainJoin("join1", left, right, how, within, columns, others)
    story = data.draw(uneven_stories(STREAMS, ordered=ordered))
    engine = UnitedJoins([join], story.lateness, partitions=5, instances=data.draw(st.integers(1, 3)))
    engine.unite(UNIONS)
    for batch in story.batches:
        since = len(engine.reports)
        engine.run(batch, settle_after=settle_after, attempts=data.draw(st.sampled_from([1, 1, 2])))
        if batch:
            check_ledger(engine, since, how)
    if data.draw(st.booleans()):
        engine.run({}, flush=True)
    else:
        engine.run({stream: [(FAR, None, 0, 0)] for stream in STREAMS})
        engine.run({})
    engine.close()
    expected = naive(rows_of(story, left), rows_of(story, right), within, how, (2, 2))
    assert engine.emitted["join1"] == expected


def test_a_row_of_the_slow_stream_still_finds_its_partner() -> None:
    join = PlainJoin("join1", "ab", "c", "left", Within(-1, 1), ("ab_n", "ab_v"), ("c_n", "c_v"))
    engine = UnitedJoins([join], dict.fromkeys(STREAMS, 0), partitions=2, instances=1)
    engine.unite(UNIONS)
    for time in (0, 100, 200, 300):
        engine.run({"a": [(time, 9, time, 0)], "c": [(time, 1, time, 0)]})
    assert not engine.emitted["join1"], "b has not spoken, so rows of a may not be given up"
    engine.run({"b": [(0, 1, 7, 0), (150, 1, 8, 0)]})
    engine.run({})
    engine.close()
    assert engine.emitted["join1"] == {
        (1, 7, 0, 0, 0, 0): 1,
        (9, 0, 0, None, None, 0): 1,
        (9, 100, 0, None, None, 100): 1,
    }


@given(st.data(), st.booleans())
@settings(max_examples=settings().max_examples // 2)
def test_windows_over_a_union_close_with_its_slowest_stream(data: st.DataObject, ordered: bool) -> None:
    slide = data.draw(st.integers(1, 6))
    spec = WindowSpec(data.draw(st.integers(slide, 4 * slide)), slide, 0)
    window = PlainWindow("window1", "ab", spec, (), AGGREGATES)
    story = data.draw(uneven_stories(("a", "b"), ordered=ordered))
    engine = UnitedWindows([window], story.lateness, partitions=3)
    engine.unite({"ab": ("a", "b")})
    for batch in story.batches:
        engine.run({name: [_row(row[0], row[3]) for row in rows] for name, rows in batch.items()})
        clocks = engine.manifest.clocks
        settled_us = engine.manifest.settled_us["window1"]
        assert settled_us <= min(clock.watermark_us for clock in clocks.values())
        ends = [spec.size_us + row[0] for row in engine.emitted["window1"] if isinstance(row[0], int)]
        assert max(ends, default=settled_us) <= settled_us, "a window closed early"
    engine.run({}, flush=True)
    engine.close()
    rows = [_row(row[-1], row[2]) for name in "ab" for row in accepted(story, name)]
    found = {row[0]: row[1:] for row in engine.emitted["window1"]}
    assert sum(engine.emitted["window1"].values()) == len(found), "a window came twice"
    assert found == {key[0]: tuple(results) for key, results in window.expected(rows).items()}


def _row(time: object, value: object) -> WindowRow:
    others = dict.fromkeys(("word", "flag", "real", "price", "at"))
    return {"time": time, "whole": value, "small": value, **others}
