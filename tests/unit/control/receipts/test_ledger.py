"""Lines of readers, streams and operators: every row is counted once, and a lost one shows."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.control.test_outcome import a_report

from tidegate.control.receipts.ledger import (
    RANDOM_DROP,
    SIFTER,
    STALE,
    WINDOW_DROP,
    Counted,
    LedgerLine,
    added_up,
    lines_of,
    of_stream,
)
from tidegate.model.graph import Reader
from tidegate.model.reports import MatchReport, PartitionLoad, SideRows, TaskReport

LEFT = Reader("join1", 0, "orders", RANDOM_DROP, whole=True, keeps_keyless=False, joins=True)
RIGHT = replace(LEFT, side=1, source="tracks")
WINDOW = Reader("window1", 0, "orders", WINDOW_DROP, whole=True)
MATCH = Reader("match1", 0, "orders", SIFTER, whole=True)


def joined(
    stored: int,
    *,
    late: int = 0,
    rejected: int = 0,
    dropped: int = 0,
    stale: int = 0,
    keyless: int = 0,
    side: int = 0,
) -> TaskReport:
    def one(rows: int) -> tuple[int, int]:
        return (rows, 0) if side == 0 else (0, rows)

    return replace(
        a_report("join1"),
        partitions=(PartitionLoad(0, one(stored)),),
        rows=SideRows(
            offered=one(stored + late + rejected + dropped + stale + keyless),
            late=one(late),
            rejected=one(rejected),
            dropped=one(dropped),
            stale=one(stale),
            keyless=one(keyless),
        ),
    )


def matched(received: int, *, late: int = 0, tried: int | None = None) -> MatchReport:
    return MatchReport(
        "match1", received, late, 0, None, 0, 0, 0.0, tried=received - late if tried is None else tried
    )


def only(reader: Reader, *reports: TaskReport, counted: Counted | None = None) -> LedgerLine:
    return lines_of([reader], reports, (), counted or Counted())[reader]


def test_a_row_is_late_rejected_dropped_or_joined_and_a_null_key_is_no_loss() -> None:
    line = only(LEFT, joined(5, late=1, rejected=2, dropped=3, keyless=4), joined(10, late=1))
    assert line == LedgerLine(26, 19, 2, 2, {RANDOM_DROP: 3})
    assert line.unexplained == 0
    stale = only(LEFT, joined(5, late=1, dropped=3, stale=6))
    assert stale == LedgerLine(15, 5, 1, 0, {RANDOM_DROP: 3, STALE: 6})
    assert stale.unexplained == 0


def test_a_side_that_stores_rows_without_a_key_does_not_count_them_twice() -> None:
    report = replace(joined(5), rows=SideRows(offered=(5, 0), keyless=(2, 0)))
    assert only(replace(LEFT, keeps_keyless=True), report) == LedgerLine(5, 5, shed={RANDOM_DROP: 0})


def test_a_row_that_a_task_lost_is_unexplained() -> None:
    lost = replace(joined(5), rows=SideRows(offered=(6, 0)))
    assert only(LEFT, lost).unexplained == 1


def test_rows_that_never_reached_a_reader_without_boxes_are_unexplained() -> None:
    assert only(LEFT, joined(5), counted=Counted({"orders": 7}, {"orders": 1})).unexplained == 1


def test_rows_that_the_users_boxes_took_out_are_processed() -> None:
    behind = replace(LEFT, whole=False)
    line = only(behind, joined(5, late=1), counted=Counted({"orders": 10}, {"orders": 1}))
    assert line == LedgerLine(10, 8, 1, 1, {RANDOM_DROP: 0}, filtered=3)


def test_rows_that_a_transform_made_are_offered() -> None:
    behind = replace(LEFT, whole=False)
    line = only(behind, joined(20, dropped=20), counted=Counted({"orders": 10}, {"orders": 1}))
    assert line == LedgerLine(41, 20, 0, 1, {RANDOM_DROP: 20})
    assert line.unexplained == 0


def test_what_a_sifter_dropped_here_or_at_the_sources_is_shed() -> None:
    counted = Counted({"orders": 100}, {"orders": 4}, {"match1": 96}, {"match1": 50})
    line = lines_of([MATCH], (), [matched(60, late=10), matched(6)], counted)[MATCH]
    assert line == LedgerLine(150, 56, 10, 4, {SIFTER: 80})
    assert line.unexplained == 0
    lost = lines_of([MATCH], (), [matched(66, tried=65)], Counted())[MATCH]
    assert lost.unexplained == 1


def test_a_stream_of_several_readers_has_the_line_of_the_one_that_got_least() -> None:
    window = replace(a_report("window1"), rows=SideRows(offered=(12, 0), late=(1, 0)))
    lines = lines_of([WINDOW, LEFT], [window, joined(6, late=1, dropped=5)], (), Counted())
    line, readers = of_stream("orders", lines, Counted())
    assert line == LedgerLine(12, 6, 1, 0, {RANDOM_DROP: 5})
    assert set(readers) == {"window1", "join1.left"}
    assert readers["window1"].processed == 11


def test_readers_that_see_all_rows_must_see_as_many() -> None:
    window = replace(a_report("window1"), rows=SideRows(offered=(12, 0)))
    lines = lines_of([WINDOW, LEFT], [window, joined(11)], (), Counted())
    assert [line.unexplained for line in lines.values()] == [0, 1]


def test_a_stream_that_nobody_reads_is_written_as_it_is() -> None:
    line, readers = of_stream("orders", {}, Counted({"orders": 9}, {"orders": 2}, late={"orders": 3}))
    assert (line, readers) == (LedgerLine(9, 4, 3, 2), {})


NUMBERS = st.integers(0, 50)


@given(
    st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS, NUMBERS, st.booleans()), max_size=5),
    NUMBERS,
    NUMBERS,
)
def test_what_tasks_count_rightly_balances_whatever_stands_in_front(
    tasks: list[tuple[int, int, int, int, int, bool]], arrived: int, rejected: int
) -> None:
    reports = [
        joined(stored, late=late, rejected=bad, dropped=dropped, keyless=keyless, side=int(right))
        for stored, late, bad, dropped, keyless, right in tasks
    ]
    boxed = replace(RIGHT, whole=False)
    counted = Counted({"tracks": arrived + rejected}, {"tracks": rejected})
    lines = lines_of([LEFT, boxed], reports, (), counted)
    for line in (*lines.values(), added_up(lines.values())):
        assert line.unexplained == 0
        assert min(line.offered, line.processed, line.late, line.rejected, line.filtered, line.dropped) >= 0
    assert lines[boxed].offered >= arrived + rejected
