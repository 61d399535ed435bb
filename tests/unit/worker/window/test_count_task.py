"""One instance of windows of rows, by hand: the order of rows of one time, what is kept, and for how long."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from tests.oracle.plain_aggregates import PlainAggregate, Row, tie
from tests.oracle.plain_rows import PlainRows, hash_of
from tests.oracle.plain_window import Codes, well_mixed
from tests.oracle.plain_window_engine import PlainWindows

from tidegate.control.planning import output_watermark
from tidegate.window.spec import RowsSpec

SUM, COUNT = PlainAggregate("sum", ("small",)), PlainAggregate("count", ("word",))


def row(time: int | None, small: int = 0, word: str = "a") -> Row:
    return {"time": time, "word": word, "small": small}


def one_code(group: tuple[Any, ...]) -> Codes:
    """All groups have one code; their check codes differ."""
    return 2**63, {("a",): 2**63, ("b",): 1}.get(group, 0)


def engine_of(
    size: int, slide: int, by: tuple[str, ...] = (), lateness: int = 0, codes: Any = well_mixed
) -> PlainWindows:
    window = PlainRows("window1", "rides", RowsSpec(size, slide), by, (SUM,), codes)
    return PlainWindows([window], {"rides": lateness}, partitions=1)


def emitted(engine: PlainWindows) -> list[Any]:
    engine.close()
    return sorted(engine.emitted["window1"].elements())


def stored_rows(engine: PlainWindows) -> list[int]:
    return [piece.rows for piece in engine.manifest.pieces]


def test_a_window_starts_and_ends_with_its_first_and_last_row() -> None:
    engine = engine_of(3, 2)
    engine.run({"rides": [row(time, time) for time in (7, 1, 5, 2, 9)]})
    engine.run({})
    engine.run({}, flush=True)
    assert emitted(engine) == [(1, 5, 8), (5, 9, 21)]


@pytest.mark.parametrize("cut", [0, 1, 2, 3])
def test_rows_of_one_time_are_in_the_order_of_their_hashes_however_they_came(cut: int) -> None:
    rows = [row(4, n) for n in (1, 2, 3, 4)]
    ordered = [one["small"] for one in sorted(rows, key=hash_of)]
    wanted = sorted((4, 4, sum(ordered[i : i + 2])) for i in (0, 2))
    for order in permutations(rows):
        engine = engine_of(2, 2)
        engine.run({"rides": order[:cut]})
        engine.run({"rides": order[cut:]})
        engine.run({}, flush=True)
        assert emitted(engine) == wanted


@pytest.mark.parametrize("cut", [0, 2, 5])
def test_lists_hold_the_rows_of_their_window_in_its_order(cut: int) -> None:
    """Hashes of values have another order than those of rows: a list that went by them would mix windows."""
    rows = [row(4, n, word) for n, word in enumerate("abcdef")]
    listed = tuple(PlainAggregate(one, ("word",)) for one in ("collect_list", "all_words", "last_word"))
    window = PlainRows("window1", "rides", RowsSpec(3, 1), (), listed)
    engine = PlainWindows([window], {"rides": 0}, partitions=1)
    engine.run({"rides": rows[:cut]})
    engine.run({"rides": rows[cut:]})
    engine.run({}, flush=True)
    ordered = [one["word"] for one in sorted(rows, key=hash_of)]
    assert ordered != sorted(ordered, key=tie)
    windows = [tuple(ordered[i : i + 3]) for i in range(4)]
    assert emitted(engine) == sorted((4, 4, words, words, max(words)) for words in windows)


def test_groups_that_share_a_code_stay_apart_where_their_check_codes_differ() -> None:
    engine = engine_of(2, 1, ("word",), codes=one_code)
    for time, words in enumerate(("abc", "ca", "b", "a")):
        engine.run({"rides": [row(time, time, word) for word in words]})
    engine.run({"rides": [row(9, word="b")]})
    engine.run({})
    engine.run({}, flush=True)
    wanted = [(0, 1, "a", 1), (0, 1, "c", 1), (0, 2, "b", 2), (1, 3, "a", 4), (2, 9, "b", 2)]
    assert emitted(engine) == wanted


def test_a_row_at_the_watermark_may_still_get_a_row_before_it() -> None:
    engine = engine_of(2, 2)
    engine.run({"rides": [row(3), row(5)]}, settle_after=True)
    assert not engine.emitted["window1"]
    engine.run({"rides": [row(6)]}, settle_after=True)
    assert emitted(engine) == [(3, 5, 0)]


def test_what_no_window_needs_leaves_when_half_of_a_piece_is_consumed() -> None:
    engine = engine_of(4, 2)
    engine.run({"rides": [row(time) for time in range(9)]}, settle_after=True)
    # Eight rows are settled, and the windows 0-3, 2-5, 4-7 are out: rows 6, 7 wait for two more, row 8 too.
    assert stored_rows(engine) == [3]
    engine.run({"rides": [row(9), row(10)]}, settle_after=True)
    # The window 6-9 is out, rows 6 and 7 are consumed: two of three.
    assert sorted(stored_rows(engine)) == [1, 2]
    assert not any(piece.matched for piece in engine.manifest.pieces)
    engine.close()


def test_less_than_half_is_remembered_beside_the_piece() -> None:
    engine = engine_of(2, 2, ("word",))
    rows = [row(time, word=word) for time, word in enumerate("aabcdefg")]
    engine.run({"rides": rows}, settle_after=True)
    (piece,) = engine.manifest.pieces
    assert piece.rows == 8
    assert list(piece.matched) == ["0"]
    engine.run({}, flush=True)
    assert emitted(engine) == [(0, 1, "a", 0)]


def test_windows_that_are_never_complete_never_come_out() -> None:
    engine = engine_of(3, 3, ("word",))
    engine.run({"rides": [row(time, word=word) for time, word in enumerate("aababbb")]}, flush=True)
    assert emitted(engine) == [(0, 3, "a", 0), (2, 5, "b", 0)]


def test_the_oldest_row_that_waits_holds_back_the_time_of_what_follows() -> None:
    engine = engine_of(2, 2, ("word",))
    (operator,) = engine.operators.values()

    def published() -> int:
        return output_watermark(operator, engine.manifest)

    engine.run({"rides": [row(3, word="slow"), row(4), row(5), row(6)]}, settle_after=True)
    assert published() == 3
    engine.run({"rides": [row(70, word="slow"), row(80), row(90), row(100)]}, settle_after=True)
    assert published() == 90
    engine.run({"rides": [row(101)]}, settle_after=True)
    assert published() == 101
    engine.close()


def test_late_rows_and_rows_without_a_time_are_counted_and_in_no_window() -> None:
    engine = engine_of(2, 2, lateness=5)
    engine.run({"rides": [row(20), row(None)]})
    engine.run({"rides": [row(14), row(15), row(16)]})
    engine.run({}, flush=True)
    counted = [
        (sum(report.rows.late), sum(report.rows.rejected), sum(report.rows.offered))
        for report in engine.reports
    ]
    assert counted == [(0, 1, 2), (1, 0, 3), (0, 0, 0)]
    assert emitted(engine) == [(15, 16, 0)]
