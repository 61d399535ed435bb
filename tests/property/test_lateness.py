"""Rows are late by the slowest watermark, as Spark judges them: one batch behind, and results stay exact.

The definition is that of the docs: before a batch the watermark is the newest time of all earlier batches
less the lateness, of the slowest stream; rows of the batch are late by the watermark before the batch before
it, or by a newer one where a commit without rows came between. What is not late counts in full.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracle.expected import Flat, naive
from tests.oracle.plain_aggregates import AGGREGATES, PlainAggregate
from tests.oracle.plain_aggregates import Row as WindowRow
from tests.oracle.plain_engine import PlainEngine, small_steps
from tests.oracle.plain_join import PlainJoin
from tests.oracle.plain_rows import PlainRows
from tests.oracle.plain_unions import UnitedWindows
from tests.oracle.plain_window import PlainWindow
from tests.oracle.plain_window_engine import PlainWindows
from tests.oracle.stories import WITHIN, Story, hows, stories
from tests.property.test_join_results import finish, join_of
from tests.property.test_window_results import specs

from tidegate.join.within import Within
from tidegate.model.times import BEGINNING_US
from tidegate.route.assignment import Assignment
from tidegate.window.lifetime import Lifetime
from tidegate.window.spec import RowsSpec, WindowSpec


@pytest.fixture(autouse=True, scope="module")
def merges_early_and_small_chunks() -> Iterator[None]:
    with small_steps():
        yield


def watermarks(story: Story) -> list[int]:
    """Before each batch, and before the first one: of the slowest stream."""
    found, newest = [BEGINNING_US], dict.fromkeys(story.lateness, BEGINNING_US)
    for batch in story.batches:
        found.append(min(max(BEGINNING_US, newest[name] - late) for name, late in story.lateness.items()))
        for name, rows in batch.items():
            newest[name] = max([newest[name], *(row[0] for row in rows if row[0] is not None)])
    return found


def accepted(story: Story, stream: str, edges: Sequence[int]) -> list[Flat]:
    """The rows that are not below the edge of their batch."""
    return [
        (*cells, time)
        for batch, edge in zip(story.batches, edges, strict=False)
        for time, *cells in batch.get(stream, ())
        if time is not None and time >= edge
    ]


def check_edges(story: Story, edges: Sequence[int], late_before: object, *, settled: bool) -> None:
    """Rows were judged by the watermark of the batch before; with commits between, by a newer one at most."""
    known = watermarks(story)
    for number, edge in enumerate(edges[: len(story.batches)]):
        before, now = (late_before(at) for at in known[number : number + 2])  # type: ignore[operator]
        assert edge == before or (settled and before <= edge <= now)


def last_batches(engine: PlainEngine, data: st.DataObject) -> None:
    finish(engine, flush=data.draw(st.booleans(), label="flush"))
    engine.close()


@given(st.data())
@settings(max_examples=settings().max_examples // 2)
def test_a_join_takes_what_the_slowest_watermark_of_the_batch_before_lets_in(data: st.DataObject) -> None:
    within = data.draw(WITHIN)
    how = data.draw(hows(within))
    join = join_of(how, within)
    story = data.draw(stories(ordered=False))
    engine = PlainEngine([join], story.lateness, partitions=3, instances=3, rule="slowest")
    settled = data.draw(st.booleans(), label="settle after each batch")
    grids = st.sampled_from([(0,), (2,), (0, 1, 2)])
    for batch in story.batches:
        if data.draw(st.integers(0, 2), label="assign") == 0:
            split = data.draw(grids, label="where the hot key lies")
            engine.assign("join1", Assignment(3, (0, 1, 2), 1, {join.coder(1): split}, {join.coder(1): 1}))
        engine.run(batch, settle_after=settled, attempts=data.draw(st.sampled_from([1, 1, 1, 2])))
    last_batches(engine, data)
    edges = [[one["join1"][side] for one in engine.edges] for side in (0, 1)]
    for some in edges:
        check_edges(story, some, within.late_before, settled=settled)
    left, right = (accepted(story, name, some) for name, some in zip("ab", edges, strict=True))
    assert engine.emitted["join1"] == naive(left, right, within, how, (2, 2))
    timed = [row for name in "ab" for row in story.all_rows(name) if row[0] is not None]
    late = sum(sum(report.rows.late) for report in engine.reports)
    assert late == len(timed) - len(left) - len(right)


@given(st.data())
@settings(max_examples=settings().max_examples // 4)
def test_a_chain_of_joins_is_exact_for_the_rows_that_it_takes(data: st.DataObject) -> None:
    first, second = data.draw(WITHIN), data.draw(WITHIN)
    how, then = data.draw(hows(first)), data.draw(hows(second))
    near = PlainJoin("join1", "a", "b", how, first, ("a_n", "a_v"), ("b_n", "b_v"))
    far = PlainJoin("join2", "join1", "c", then, second, near.shown_columns, ("c_n", "c_v"))
    story = data.draw(stories(("a", "b", "c"), ordered=False))
    engine = PlainEngine([near, far], story.lateness, partitions=3, instances=2, rule="slowest")
    settled = data.draw(st.booleans(), label="settle after each batch")
    for batch in story.batches:
        engine.run(batch, settle_after=settled)
    finish(engine, flush=True)
    engine.close()
    edges = [[one["join1"][0] for one in engine.edges], [one["join1"][1] for one in engine.edges]]
    third = [one["join2"][1] for one in engine.edges]
    left, right = (accepted(story, name, some) for name, some in zip("ab", edges, strict=True))
    middle = naive(left, right, first, how, (2, 2))
    assert engine.emitted["join1"] == middle
    widths = (len(near.shown_columns), 2)
    rows = list(middle.elements()), accepted(story, "c", third)
    assert engine.emitted["join2"] == naive(*rows, second, then, widths)


def as_row(row: Flat) -> WindowRow:
    others = dict.fromkeys(("word", "flag", "real", "price", "at"))
    return {"time": row[-1], "whole": row[2], "small": row[2], **others}


@given(st.data())
@settings(max_examples=settings().max_examples // 2)
def test_a_window_takes_rows_while_it_is_open(data: st.DataObject) -> None:
    """Over one stream, or over a union: a row counts for those of its windows that are not closed."""
    spec: WindowSpec = data.draw(specs())
    streams = data.draw(st.sampled_from([("a",), ("a", "b")]))
    window = PlainWindow("window1", "ab", spec, (), AGGREGATES, single=data.draw(st.booleans()))
    story = data.draw(stories(streams, ordered=False))
    engine = UnitedWindows([window], story.lateness, partitions=2, rule="slowest")
    engine.unite({"ab": streams})
    settled = data.draw(st.booleans(), label="settle after each batch")
    marks, wanted = [], dict[int, list[WindowRow]]()
    for batch in story.batches:
        marks.append(engine.manifest.late_before_us("window1"))
        given_rows = {name: [as_row((*cells, time)) for time, *cells in rows] for name, rows in batch.items()}
        engine.run(given_rows, settle_after=settled)
        for row in (row for rows in given_rows.values() for row in rows if row["time"] is not None):
            start = row["time"] - (row["time"] - spec.offset_us) % spec.slide_us
            while row["time"] < start + spec.size_us:
                if start + spec.size_us > marks[-1]:
                    wanted.setdefault(start, []).append(row)
                start -= spec.slide_us
    engine.run({}, flush=True)
    engine.close()
    check_edges(story, marks, lambda at: at, settled=settled)
    edges = [one["window1"][0] for one in engine.edges]
    check_edges(story, edges, Lifetime(spec).late_before, settled=settled)
    results = {start: tuple(one.result(rows) for one in AGGREGATES) for start, rows in wanted.items()}
    assert sum(engine.emitted["window1"].values()) == len(results), "a window came twice, or not at all"
    found = {row[0]: row[1:] for row in engine.emitted["window1"]}
    assert {start: repr(one) for start, one in found.items()} == {
        start: repr(tuple("NaN" if v != v else v for v in one)) for start, one in results.items()
    }


@given(st.data())
@settings(max_examples=settings().max_examples // 4)
def test_row_windows_hold_the_rows_that_are_not_late(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 4))
    count = (PlainAggregate("count", ("whole",)), PlainAggregate("sum", ("whole",)))
    window = PlainRows("window1", "a", RowsSpec(size, data.draw(st.integers(1, size))), (), count)
    story = data.draw(stories(("a",), ordered=False))
    engine = PlainWindows([window], story.lateness, partitions=2, rule="slowest")
    for batch in story.batches:
        rows = {name: [as_row((*cells, time)) for time, *cells in some] for name, some in batch.items()}
        engine.run(rows, settle_after=data.draw(st.booleans()))
    engine.run({}, flush=True)
    engine.close()
    edges = [one["window1"][0] for one in engine.edges]
    taken = [as_row(row) for row in accepted(story, "a", edges)]
    assert engine.emitted["window1"] == window.complete(taken, 2**63)


def test_rows_of_a_split_key_wait_for_matches_on_other_instances() -> None:
    """The watermark passes the rows at 102 as they come, and other instances find their matches."""
    join = join_of("left", Within(-5, 5))
    hot = join.coder(1)
    engine = PlainEngine(
        [join], {"a": 0, "b": 0}, partitions=2, first=[Assignment(4, (0, 1))], rule="slowest"
    )
    engine.assign("join1", Assignment(4, (0, 1), 1, {hot: (0, 1, 2, 3)}, {hot: 2}))
    engine.run({"a": [(100, 2, 0, 0)], "b": [(100, 1, 0, 0)]})
    engine.run({name: [(200, 2, 0, 0)] for name in "ab"})
    engine.run({"a": [(102, 1, n, 0) for n in range(12)]})
    for time in (201, 300, 400):
        engine.run({name: [(time, 3, 0, 0)] for name in "ab"})
    engine.close()
    hot_rows = [row for row in engine.emitted["join1"].elements() if row[0] == 1]
    assert len(hot_rows) == 12
    assert not [row for row in hot_rows if row[3] is None]
