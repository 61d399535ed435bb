"""Whatever the batches, every closed window of every group comes out once, and is what its rows say.

Stories are drawn at random: rows out of order and late, batches cut anywhere and run twice, partitions and
single groups that move to other instances in between, merges with few pieces.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracle.plain_aggregates import AGGREGATES, PlainAggregate, Row
from tests.oracle.plain_engine import small_steps
from tests.oracle.plain_window import PlainWindow, colliding, well_mixed
from tests.oracle.plain_window_engine import PlainWindows

from tidegate.model.times import LEFT
from tidegate.route.assignment import Assignment
from tidegate.window.lifetime import Lifetime
from tidegate.window.spec import WindowSpec

BYS: tuple[tuple[str, ...], ...] = ((), ("word",), ("word", "flag"))
WORDS = ("bus", "tram", "", "ß", None)
Batches = Sequence[Sequence[Row]]


@pytest.fixture(autouse=True, scope="module")
def merges_early() -> Iterator[None]:
    with small_steps():
        yield


@dataclass(frozen=True)
class Story:
    """Rows in the order in which they come, and where the batches are cut."""

    batches: Batches
    lateness: int

    def accepted(self) -> list[Row]:
        """Rows that are not late: not below the newest of earlier batches less lateness."""
        kept: list[Row] = []
        newest: int | None = None
        for batch in self.batches:
            timed = [row for row in batch if row["time"] is not None]
            kept += [row for row in timed if newest is None or row["time"] >= newest - self.lateness]
            newest = max([row["time"] for row in timed] + ([] if newest is None else [newest]), default=None)
        return kept


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "word": st.sampled_from(WORDS),
    "flag": st.sampled_from([True, False, None]),
    "small": st.none() | st.integers(-128, 127),
    "whole": st.none() | st.integers(-3, 3) | st.sampled_from([-(2**63), 2**63 - 1]),
    "real": st.none() | st.integers(-9, 9).map(lambda n: n / 2) | st.sampled_from([math.nan, math.inf]),
    "price": st.none() | st.integers(-(10**9) + 1, 10**9 - 1).map(lambda n: Decimal(n) / 100),
    "at": st.none() | st.integers(-5, 5),
}
#: Where time begins: the epoch, today, and where a double no longer holds every microsecond.
ORIGINS = (0, -40, 1_780_000_000_000_000, 2**60 + 1, -(2**60) - 1)


@st.composite
def specs(draw: st.DrawFn) -> WindowSpec:
    slide = draw(st.integers(1, 6))
    offset = draw(st.just(0) | st.integers(-20, 20))
    return WindowSpec(draw(st.one_of(st.just(slide), st.integers(slide, 20 * slide))), slide, offset)


@st.composite
def stories(
    draw: st.DrawFn,
    steps: Sequence[int] = (0, 0, 1, 1, 2, 5, 9, 300),
    words: Sequence[str | None] = WORDS,
    rows: tuple[int, int] = (0, 25),
) -> Story:
    lateness = draw(st.integers(0, 8))
    now, batches = draw(st.sampled_from(ORIGINS)), list[list[Row]]([[]])
    values_of = st.fixed_dictionaries({**VALUES, "word": st.sampled_from(words)})
    events = st.tuples(st.sampled_from(steps), st.integers(0, 12), st.integers(0, 19), values_of)
    for step, behind, chance, values in draw(st.lists(events, min_size=rows[0], max_size=rows[1])):
        now += step
        batches[-1].append({"time": None if chance == 19 else now - behind, **values})
        batches += [[] for _ in range((0, 0, 0, 1, 1, 2)[chance % 6])]
    return Story(batches, lateness)


def chosen(least: int = 1, most: int = 5) -> st.SearchStrategy[tuple[PlainAggregate, ...]]:
    some = st.lists(st.sampled_from(AGGREGATES), min_size=least, max_size=most, unique=True)
    return some.map(tuple)


def assignments(window: PlainWindow, partitions: int) -> st.SearchStrategy[Assignment]:
    """Partitions, and a few groups by name, at any instance; never at several."""
    groups = [(), *((word,) for word in WORDS), *((word, flag) for word in WORDS for flag in (True, None))]
    codes = sorted({window.codes(group)[0] for group in groups})

    def on(instances: int) -> st.SearchStrategy[Assignment]:
        owner = st.integers(0, instances - 1)
        table = st.lists(owner, min_size=partitions, max_size=partitions).map(tuple)
        keys = st.dictionaries(st.sampled_from(codes), owner.map(lambda one: (one,)), max_size=2)
        return st.builds(Assignment, st.just(instances), table, st.just(1), keys)

    return st.integers(1, 4).flatmap(on)


def played(
    data: st.DataObject,
    windows: Sequence[PlainWindow],
    story: Story,
    *,
    flush: bool,
    check: Callable[[PlainWindows], None] | None = None,
) -> PlainWindows:
    """The engine behind the last batch, with another assignment in most of them."""
    partitions = data.draw(st.integers(1, 5), label="partitions")
    wanted = assignments(windows[0], partitions)
    engine = PlainWindows(
        windows, {"rides": story.lateness}, partitions=partitions, first=data.draw(wanted, label="first")
    )
    settle_after = data.draw(st.booleans(), label="settle after each batch")
    for batch in story.batches:
        for window in windows:
            if data.draw(st.booleans(), label="assign"):
                engine.assign(window.name, data.draw(wanted))
        attempts = 2 if data.draw(st.integers(0, 7), label="again") == 0 else 1
        engine.run({"rides": batch}, settle_after=settle_after, attempts=attempts)
        (check or check_state)(engine)
    if flush:
        engine.run({}, flush=True)
        assert not engine.manifest.pieces
        assert not list(engine.store.list())
    engine.close()
    return engine


def check_state(engine: PlainWindows) -> None:
    """Nothing is kept that no open window needs, but for what lies in one slot with what is needed."""
    for window in engine.windows:
        lifetime = Lifetime(window.spec)
        needed_us = lifetime.dead_before(LEFT, engine.manifest.settled_us[window.name])
        for piece in engine.manifest.pieces:
            if piece.operator == window.name:
                assert piece.last_us >= needed_us
                assert piece.slot is None or piece.first_us > needed_us - lifetime.slot_us(LEFT)


def check_counts(engine: PlainWindows, name: str, story: Story) -> None:
    """Each row was offered once, and those in no window are late or rejected."""
    mine = [report for report in engine.reports if report.operator == name]
    rows = [row for batch in story.batches for row in batch]
    rejected = sum(row["time"] is None for row in rows)
    assert sum(report.rows.offered[LEFT] for report in mine) == len(rows)
    assert sum(report.rows.rejected[LEFT] for report in mine) == rejected
    assert sum(report.rows.late[LEFT] for report in mine) == len(rows) - rejected - len(story.accepted())


def check_windows(
    window: PlainWindow, engine: PlainWindows, wanted: Mapping[tuple[Any, ...], tuple[Any, ...]]
) -> None:
    """Every window that the watermark has closed is there once, with these results."""
    settled_us = engine.manifest.settled_us[window.name]
    closed = {key: row for key, row in wanted.items() if key[0] + window.spec.size_us <= settled_us}
    keys = 1 + len(window.by)
    found = {row[:keys]: row[keys:] for row in engine.emitted[window.name]}
    assert sum(engine.emitted[window.name].values()) == len(found), "a window came twice"
    assert found.keys() == closed.keys()
    for key, results in closed.items():
        for one, mine, theirs in zip(window.aggregates, found[key], results, strict=True):
            assert alike(mine, theirs), f"{one.name} of {key}: {mine}, not {theirs}"


def alike(mine: Any, theirs: Any) -> bool:
    if isinstance(theirs, float) and isinstance(mine, float):
        return math.isclose(mine, theirs, rel_tol=1e-9, abs_tol=1e-9)
    return bool(mine == ("NaN" if theirs != theirs else theirs))


@given(data=st.data())
@settings(max_examples=settings().max_examples // 2)
def test_every_closed_window_comes_out_once_and_is_what_its_rows_say(data: st.DataObject) -> None:
    codes = data.draw(st.sampled_from([well_mixed, well_mixed, colliding]), label="codes")
    by = data.draw(st.sampled_from(BYS), label="by")
    single = data.draw(st.booleans(), label="rows one by one")
    window = PlainWindow("window1", "rides", data.draw(specs()), by, data.draw(chosen()), codes, single)
    story = data.draw(stories())
    engine = played(data, [window], story, flush=data.draw(st.booleans(), label="flush"))
    check_windows(window, engine, window.expected(story.accepted()))
    check_counts(engine, "window1", story)


@given(data=st.data())
@settings(max_examples=settings().max_examples // 8)
def test_all_aggregates_together_are_what_the_rows_of_their_windows_say(data: st.DataObject) -> None:
    by = data.draw(st.sampled_from(BYS), label="by")
    window = PlainWindow("window1", "rides", data.draw(specs()), by, AGGREGATES)
    story = data.draw(stories())
    engine = played(data, [window], story, flush=True)
    check_windows(window, engine, window.expected(story.accepted()))


@given(data=st.data())
@settings(max_examples=settings().max_examples // 6)
def test_windows_of_windows_are_those_of_the_closed_ones(data: st.DataObject) -> None:
    aggregates = (PlainAggregate("count", ("word",)), PlainAggregate("max", ("word",)))
    inner = PlainWindow("window1", "rides", data.draw(specs()), ("word",), aggregates)
    outer = PlainWindow("window2", "window1", data.draw(specs()), (), aggregates)
    story = data.draw(stories())
    engine = played(data, [inner, outer], story, flush=data.draw(st.booleans(), label="flush"))
    windows = inner.expected(story.accepted())
    check_windows(inner, engine, windows)
    check_windows(outer, engine, outer.expected([{"time": start, "word": word} for start, word in windows]))
