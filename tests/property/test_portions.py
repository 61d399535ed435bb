"""Tasks that hold a few rows at a time give the same results, counts and state as tasks that hold all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracle.expected import naive
from tests.oracle.plain_engine import PlainEngine, small_rooms, small_steps
from tests.oracle.plain_window import PlainWindow, colliding, well_mixed
from tests.oracle.plain_window_engine import PlainWindows
from tests.oracle.stories import WITHIN, accepted, hows, stories
from tests.property import test_join_results as joins
from tests.property import test_join_routing as routing
from tests.property import test_window_results as windows

from tidegate.join.within import Within
from tidegate.worker.runtime import portions
from tidegate.worker.runtime.memory import MemoryMeter
from tidegate.worker.window.task import code_ranges


@pytest.fixture(autouse=True, scope="module")
def few_rows_at_a_time() -> Iterator[None]:
    with small_steps(), small_rooms():
        yield


def inner_test(test: Any) -> Any:
    """The body of a property test, to be run with other examples."""
    return test.hypothesis.inner_test


@given(st.data())
@settings(max_examples=settings().max_examples // 4)
def test_a_join_in_portions_is_the_join(data: st.DataObject) -> None:
    within = data.draw(WITHIN)
    how = data.draw(hows(within))
    story = data.draw(stories(ordered=False))
    joined, late = joins.played(data, joins.join_of(how, within), story)
    left, right = accepted(story, "a"), accepted(story, "b")
    timed = [row for stream in "ab" for row in story.all_rows(stream) if row[0] is not None]
    assert late == len(timed) - len(left) - len(right)
    assert joined == naive(left, right, within, how, (2, 2))


@pytest.mark.parametrize("how", ["inner", "left", "full", "left_semi"])
@given(data=st.data())
@settings(max_examples=settings().max_examples // 8)
def test_a_join_in_portions_is_the_join_wherever_its_keys_lie(how: str, data: st.DataObject) -> None:
    inner_test(routing.test_whatever_moves_the_result_is_that_of_one_instance)(how, data)


@given(data=st.data())
@settings(max_examples=settings().max_examples // 4)
def test_windows_in_portions_are_what_their_rows_say(data: st.DataObject) -> None:
    inner_test(windows.test_every_closed_window_comes_out_once_and_is_what_its_rows_say)(data)


@given(data=st.data())
@settings(max_examples=settings().max_examples // 4)
def test_all_aggregates_in_portions_are_what_their_rows_say(data: st.DataObject) -> None:
    inner_test(windows.test_all_aggregates_together_are_what_the_rows_of_their_windows_say)(data)


@given(data=st.data())
@settings(max_examples=settings().max_examples // 4)
def test_windows_that_close_with_the_rows_of_several_portions_have_all_of_them(data: st.DataObject) -> None:
    codes = data.draw(st.sampled_from([well_mixed, colliding]))
    by, single = data.draw(st.sampled_from(windows.BYS)), data.draw(st.booleans())
    spec, aggregates = data.draw(windows.specs()), data.draw(windows.chosen())
    window = PlainWindow("window1", "rides", spec, by, aggregates, codes, single)
    rows = [row for batch in data.draw(windows.stories()).batches for row in batch]
    engine = PlainWindows([window], {"rides": 0})
    engine.run({"rides": rows}, flush=True)
    windows.check_windows(window, engine, window.expected([row for row in rows if row["time"] is not None]))
    windows.check_counts(engine, "window1", windows.Story([rows], 0))
    assert not engine.manifest.pieces
    engine.close()


def test_a_task_with_many_rows_handles_them_in_portions() -> None:
    join = joins.join_of("left", Within(-2, 2))
    engine = PlainEngine([join], {"a": 0, "b": 0})
    engine.run({name: [(at, at % 3, at, at) for at in range(40)] for name in ("a", "b")})
    files = {piece.data.file for piece in engine.manifest.pieces}
    assert len(files) > 5
    report = engine.reports[0]
    assert report.memory.received_bytes > 5 * report.memory.room_bytes > 0
    joins.finish(engine, flush=True)
    rows = [(at % 3, at, at, at) for at in range(40)]
    assert engine.emitted["join1"] == naive(rows, rows, Within(-2, 2), "left", (2, 2))
    engine.close()


def test_a_replay_of_portions_gives_the_same_rows() -> None:
    join = joins.join_of("full", Within(0, 3))
    engine = PlainEngine([join], {"a": 0, "b": 0})
    for first in (0, 30):
        engine.run({n: [(at, 1, at, 0) for at in range(first, first + 30)] for n in ("a", "b")}, attempts=2)
    joins.finish(engine, flush=False)
    rows = [(1, at, 0, at) for at in range(60)]
    found = {row: count for row, count in engine.emitted["join1"].items() if row[0] is not None}
    assert found == naive(rows, rows, Within(0, 3), "full", (2, 2))
    engine.close()


@given(
    st.lists(st.lists(st.integers(0, 2**64 - 1), max_size=30).map(sorted), min_size=1, max_size=4),
    st.integers(1, 20),
)
def test_ranges_of_codes_hold_every_row_once(runs: list[list[int]], rows: int) -> None:
    codes = [np.array(run, np.uint64) for run in runs]
    for one in codes:
        parts = [(0, len(one)) if part is None else part.rows(one) for part in code_ranges(codes, rows)]
        assert [n for part in parts for n in range(*part)] == list(range(len(one)))


@given(st.lists(st.integers(0, 5), max_size=20), st.integers(1, 200))
def test_portions_hold_every_batch_once_in_order(sizes: list[int], at_most: int) -> None:
    batches = [pa.record_batch({"x": pa.array([n] * size, pa.int64())}) for n, size in enumerate(sizes)]
    meter = MemoryMeter()
    found = list(portions.portions(iter(batches), meter, at_most))
    assert [batch for portion, _ in found for batch in portion] == batches
    assert [last for _, last in found] == [False] * (len(found) - 1) + [True]
    assert all(
        sum(b.get_total_buffer_size() for b in portion) <= max(at_most, portion[0].get_total_buffer_size())
        for portion, _ in found
        if portion
    )
    assert meter.received_bytes == sum(batch.get_total_buffer_size() for batch in batches)


@given(st.lists(st.integers(0, 60), max_size=12))
def test_rows_beyond_the_room_come_back_from_their_file(sizes: list[int]) -> None:
    batches = [
        pa.record_batch(
            {"x": pa.array([n] * size, pa.int64()), "y": pa.array([None, "ß"] * size).slice(size)}
        )
        for n, size in enumerate(sizes)
    ]
    assert portions.held(iter(batches)) == batches
