"""One instance of a window aggregate, by hand: groups that share a code, times that a double cannot hold."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from tests.oracle.plain_aggregates import KINDS, USERS, PlainAggregate, Row
from tests.oracle.plain_engine import small_steps
from tests.oracle.plain_window import Codes, PlainWindow
from tests.oracle.plain_window_engine import PlainWindows

from tidegate.errors import BatchFailed
from tidegate.window.spec import WindowSpec

COUNT = PlainAggregate("count", ("flag",))


def row(time: int | None, word: str | None = None, **values: Any) -> Row:
    return {"time": time, "word": word, "flag": True, **values}


def one_code(group: tuple[Any, ...]) -> Codes:
    """All groups have one code; their check codes differ in a single bit."""
    return 2**63, {("a",): 2**63, ("b",): 1}.get(group, 0)


def windows(size: int, slide: int, by: tuple[str, ...] = ("word",), codes: Any = one_code) -> PlainWindow:
    return PlainWindow("window1", "rides", WindowSpec(size, slide), by, (COUNT,), codes)


def emitted(engine: PlainWindows) -> list[Any]:
    engine.close()
    return sorted(engine.emitted["window1"].elements())


@pytest.mark.parametrize("flush_only", [True, False])
def test_groups_that_share_a_code_stay_apart_where_their_check_codes_differ(flush_only: bool) -> None:
    engine = PlainWindows([windows(10, 5)], {"rides": 0})
    with small_steps():
        for words in ("abc", "cab", "bca", "a"):
            engine.run({"rides": [row(3, word) for word in words]})
        if not flush_only:
            engine.run({"rides": [row(100, "b")]})
            engine.run({})
        engine.run({}, flush=True)
    late = [] if flush_only else [(95, "b", 1), (100, "b", 1)]
    counts = {"a": 4, "b": 3, "c": 3}
    assert emitted(engine) == [*((at, word, n) for at in (-5, 0) for word, n in counts.items()), *late]


def test_merging_adds_up_each_group_and_pane_once_also_where_codes_are_equal() -> None:
    engine = PlainWindows([windows(10, 5)], {"rides": 10})
    with small_steps():
        for _ in range(2):
            engine.run({"rides": [row(time, word) for time in (1, 2, 6) for word in "abc"]})
        assert [piece.rows for piece in engine.manifest.pieces] == [3, 3, 3, 3]
        engine.run({})
    assert [piece.rows for piece in engine.manifest.pieces] == [3, 3]
    engine.run({}, flush=True)
    counts = {-5: 4, 0: 6, 5: 2}
    assert emitted(engine) == [(at, word, n) for at, n in counts.items() for word in "abc"]


@pytest.mark.parametrize("origin", [2**53 + 1, 2**60 + 1, -(2**60) - 1])
def test_times_that_a_double_cannot_hold_fall_into_their_windows(origin: int) -> None:
    engine = PlainWindows([windows(3, 1, ())], {"rides": 0}, partitions=1)
    window = engine.windows[0]
    rows = [row(origin + step) for step in (0, 1, 3, 7)]
    for one in rows:
        engine.run({"rides": [one]})
        assert engine.manifest.clocks["rides"].seen_us == one["time"]
    engine.run({}, flush=True)
    assert emitted(engine) == sorted((*key, *values) for key, values in window.expected(rows).items())


def test_rows_without_a_time_and_late_rows_are_counted_and_in_no_window() -> None:
    engine = PlainWindows([windows(10, 10)], {"rides": 5})
    engine.run({"rides": [row(20, "a"), row(None, "a"), row(1, "b")]})
    engine.run({"rides": [row(14, "a"), row(15, "a"), row(None, "b")]})
    engine.run({}, flush=True)
    counted = [
        (sum(report.rows.late), sum(report.rows.rejected), sum(report.rows.offered))
        for report in engine.reports
    ]
    assert counted == [(0, 1, 3), (1, 1, 3), (0, 0, 0)]
    assert emitted(engine) == [(0, "b", 1), (10, "a", 1), (20, "a", 1)]


def test_a_window_closes_when_the_watermark_reaches_its_end_and_not_before() -> None:
    engine = PlainWindows([windows(10, 10, ())], {"rides": 0}, partitions=1)
    engine.run({"rides": [row(0), row(9)]})
    engine.run({}, settle_after=True)
    assert not engine.emitted["window1"]
    engine.run({"rides": [row(10)]}, settle_after=True)
    assert list(engine.emitted["window1"]) == [(0, 2)]
    assert [piece.first_us for piece in engine.manifest.pieces] == [10]
    engine.close()


def test_an_average_of_decimals_has_the_scale_of_its_type_also_where_four_more_digits_do_not_fit() -> None:
    average = PlainAggregate("avg", ("price",))
    with patch.dict(KINDS, price=pa.decimal128(38, 36)):
        assert average.result_kind == pa.decimal128(38, 38)
        window = PlainWindow("window1", "rides", WindowSpec(9, 9), (), (average,))
        engine = PlainWindows([window], {"rides": 0}, partitions=1)
        engine.run({"rides": [row(1, price=Decimal("0.25")), row(2, price=Decimal("0.5"))]}, flush=True)
    assert emitted(engine) == [(0, Decimal("0.375"))]


# -- functions of users ------------------------------------------------------------------------------------


def users(function: str, size: int, slide: int, **broken: Any) -> PlainWindows:
    """An engine over a user-defined aggregate, parts of which are other than they should be."""
    layout = USERS[function]
    udaf = replace(layout.udaf, **broken)
    with patch.dict(USERS, {function: replace(layout, udaf=udaf)}):
        window = PlainWindow("window1", "rides", WindowSpec(size, slide), ("word",), (words(function),))
        return PlainWindows([window], {"rides": 0}, partitions=1)


def words(function: str) -> PlainAggregate:
    return PlainAggregate(function, ("word",))


def failed(engine: PlainWindows) -> str:
    with pytest.raises(BatchFailed) as caught:
        engine.run({"rides": [row(7_000_001, "a")]}, flush=True)
    engine.close()
    return str(caught.value)


SECOND = 1_000_000


@pytest.mark.parametrize("function", ["collect_list", "all_words"])
def test_items_are_in_order_of_time_whatever_batch_they_came_in(function: str) -> None:
    window = PlainWindow("window1", "rides", WindowSpec(10, 5), (), (words(function),))
    engine = PlainWindows([window], {"rides": 20}, partitions=1)
    rows = [
        row(at, word) for at, word in ((3, "c"), (9, "f"), (1, "a"), (4, "d"), (2, "b"), (4, "e"), (4, "d"))
    ]
    with small_steps():
        for some in (rows[:2], rows[2:3], rows[3:5], rows[5:]):
            engine.run({"rides": some})
        engine.run({}, flush=True)
    first, *others = (found for _, found in emitted(engine))
    assert first[:3] == ("a", "b", "c")
    assert sorted(first[3:]) == ["d", "d", "e"]
    assert others == [(*first, "f"), ("f",)]
    assert others[0] == window.expected(rows)[0,][0]


def test_a_result_of_another_type_is_told_with_its_group_and_window() -> None:
    said = failed(users("last_word", 2 * SECOND, 2 * SECOND, finish=lambda state: [3]))
    assert (
        "'last_word' failed in finish, for the group word='a' and the window from 1970-01-01 00:00:06 UTC"
        in said
    )
    assert "Got: The result: list where string was declared" in said


def test_a_state_of_another_type_is_told_with_the_windows_that_it_would_be_part_of() -> None:
    said = failed(users("last_word", 3 * SECOND, SECOND, update=lambda state, words: ("many", None)))
    assert "failed in update, for the group word='a' and the window from 1970-01-01 00:00:05 UTC" in said
    assert (
        "those that follow, up to the one from 1970-01-01 00:00:07 UTC. Got: Field n: str where int64" in said
    )


def test_what_functions_do_not_get_stays_as_it_was_and_is_there_for_the_mended_ones() -> None:
    engine = users("last_word", 10, 10)
    engine.run({"rides": [row(1, "a")]})
    before = engine.manifest
    layout = engine._window_layouts["window1"]
    bad = {
        name: replace(one, udaf=replace(one.udaf, merge=lambda one, other: ()))
        for name, one in layout.udafs.items()
    }
    engine._window_layouts["window1"] = replace(layout, udafs=bad)
    with pytest.raises(BatchFailed, match=r"AGGREGATOR_FAILED.*failed in merge"):
        engine.run({"rides": [row(2, "a")]}, flush=True)
    assert engine.manifest == before
    engine._window_layouts["window1"] = layout
    engine.run({"rides": [row(2, "a")]}, flush=True)
    assert emitted(engine) == [(0, "a", "a")]
