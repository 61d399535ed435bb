"""Whatever the batches, every complete window of rows comes out once, and is what its rows say.

The stories are those of windows of time (`test_window_results.py`): rows out of order and late, batches cut
anywhere and run twice, partitions and single groups that move to other instances, merges with few pieces.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracle.plain_aggregates import AGGREGATES, PlainAggregate
from tests.oracle.plain_engine import small_steps
from tests.oracle.plain_rows import PlainRows
from tests.oracle.plain_window import PlainWindow, colliding, well_mixed
from tests.oracle.plain_window_engine import PlainWindows
from tests.property.test_window_results import (
    BYS,
    Story,
    check_counts,
    check_windows,
    chosen,
    played,
    stories,
)
from tests.property.test_window_results import specs as time_specs

from tidegate.model.pieces import Piece
from tidegate.state.segments import SegmentCache
from tidegate.window.spec import RowsSpec
from tidegate.worker.runtime.layout import CHECK, CODE, TIME
from tidegate.worker.runtime.runs import StoredRun

COUNT, LAST = PlainAggregate("count", ("word",)), PlainAggregate("max", ("word",))


@pytest.fixture(autouse=True, scope="module")
def merges_early() -> Iterator[None]:
    with small_steps():
        yield


def crowded() -> st.SearchStrategy[Story]:
    """Few groups and many rows of one time, so that there are windows, and ties in their order."""
    return stories(steps=(0, 0, 0, 1, 2, 9), words=("bus", None), rows=(5, 30))


@st.composite
def specs(draw: st.DrawFn) -> RowsSpec:
    slide = draw(st.integers(1, 3))
    return RowsSpec(draw(st.integers(slide, 5)), slide)


def waiting(engine: PlainWindows, piece: Piece) -> Iterator[Mapping[str, Any]]:
    """The rows of a piece that are not consumed."""
    run = StoredRun(piece, piece.slices(range(10**6)), SegmentCache(engine.store))
    consumed = np.unpackbits(run.stored_bits, bitorder="little")
    for start, stop in run.slices:
        for row in run.rows.select([CODE, CHECK, TIME]).slice(start, stop - start).to_pylist():
            if not consumed[start]:
                yield row
            start += 1


def check_kept(engine: PlainWindows) -> None:
    """A group keeps fewer rows below the watermark than make a window."""
    for window in engine.windows:
        pieces = [piece for piece in engine.manifest.pieces if piece.operator == window.name]
        if isinstance(window, PlainRows):
            rows = [row for piece in pieces for row in waiting(engine, piece)]
            settled_us = engine.manifest.settled_us[window.name]
            kept = Counter((row[CODE], row[CHECK]) for row in rows if row[TIME] < settled_us)
            assert all(count < window.spec.size for count in kept.values())


@given(data=st.data())
@settings(max_examples=settings().max_examples // 3)
def test_every_complete_window_comes_out_once_and_is_what_its_rows_say(data: st.DataObject) -> None:
    codes = data.draw(st.sampled_from([well_mixed, well_mixed, colliding]), label="codes")
    by = data.draw(st.sampled_from(BYS), label="by")
    window = PlainRows("window1", "rides", data.draw(specs()), by, data.draw(chosen()), codes)
    story = data.draw(crowded())
    flush = data.draw(st.booleans(), label="flush")
    engine = played(data, [window], story, flush=flush, check=check_kept)
    settled_us = engine.manifest.settled_us["window1"]
    assert engine.emitted["window1"] == window.complete(story.accepted(), settled_us)
    check_counts(engine, "window1", story)


@given(data=st.data())
@settings(max_examples=settings().max_examples // 12)
def test_all_aggregates_together_are_what_the_rows_of_their_windows_say(data: st.DataObject) -> None:
    window = PlainRows("window1", "rides", data.draw(specs()), ("word",), AGGREGATES)
    story = data.draw(crowded())
    engine = played(data, [window], story, flush=True, check=check_kept)
    assert engine.emitted["window1"] == window.complete(story.accepted(), 2**63)


@given(data=st.data())
@settings(max_examples=settings().max_examples // 6)
def test_windows_of_time_over_windows_of_rows_miss_none(data: st.DataObject) -> None:
    """What they believe of time is held back by the rows that wait, or a window would close too early."""
    inner = PlainRows("window1", "rides", data.draw(specs()), ("word",), (COUNT,))
    outer = PlainWindow("window2", "window1", data.draw(time_specs()), (), (COUNT, LAST))
    story = data.draw(crowded())
    flush = data.draw(st.booleans(), label="flush")
    engine = played(data, [inner, outer], story, flush=flush, check=check_kept)
    complete = inner.complete(story.accepted(), engine.manifest.settled_us["window1"])
    assert engine.emitted["window1"] == complete
    rows = [{"time": start, "word": word} for start, _, word, _ in complete.elements()]
    check_windows(outer, engine, outer.expected(rows))


@given(data=st.data())
@settings(max_examples=settings().max_examples // 12)
def test_windows_of_rows_over_windows_of_time_are_those_of_the_closed_ones(data: st.DataObject) -> None:
    inner = PlainWindow("window1", "rides", data.draw(time_specs()), ("word",), (COUNT,))
    outer = PlainRows("window2", "window1", data.draw(specs()), ("word",), (COUNT,))
    story = data.draw(crowded())
    engine = played(data, [inner, outer], story, flush=True, check=check_kept)
    rows = [{"time": start, "word": word} for start, word in inner.expected(story.accepted())]
    assert engine.emitted["window2"] == outer.complete(rows, 2**63)
