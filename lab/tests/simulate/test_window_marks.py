"""The paper's marks on rows: table 3 line by line, fake rows, and the example of figure 4."""

from __future__ import annotations

import pytest

from tidegate.errors import FlowError
from tidegate.window.drop.decisions import Decisions
from tidegate.window.drop.drop_window import DropWindow
from tidegate.window.drop.network import DropSourceNode, DropStepNode, DropWindowNode, Network
from tidegate.window.spec import RowsSpec, WindowSpec
from tidegate_lab.simulate.windows.window_marks import (
    CLOSED,
    SILENT,
    Marked,
    aggregate,
    decode,
    drop_windows,
    pass_box,
)
from tidegate_lab.simulate.windows.window_network import Program, Row, all_windows

OPEN_UNTIL = 50
FOUR = DropWindowNode("window", "rows", WindowSpec(4, 2))
PROGRAM = Program(Network((DropSourceNode("rows"), FOUR)))


@pytest.mark.parametrize(
    ("starts", "mark", "within", "opens", "passes_on"),
    [
        (True, OPEN_UNTIL, True, True, True),
        (True, OPEN_UNTIL, False, True, True),
        (True, CLOSED, True, True, True),
        (True, CLOSED, False, False, False),
        (True, SILENT, True, True, False),
        (True, SILENT, False, False, False),
        (False, OPEN_UNTIL, True, False, True),
        (False, OPEN_UNTIL, False, False, True),
        (False, CLOSED, True, False, True),
        (False, CLOSED, False, False, True),
        (False, SILENT, True, False, False),
        (False, SILENT, False, False, False),
    ],
)
def test_marks_are_decoded_by_table_3(
    starts: bool, mark: int, within: bool, opens: bool, passes_on: bool
) -> None:
    assert decode(starts, mark, within) == (opens, passes_on)


def test_the_operator_marks_the_starts_of_windows_and_drops_what_no_kept_window_needs() -> None:
    rows = [Row(time, 0, time) for time in range(6, 19)]
    # Logical windows of figure 4, size 5 and slide 3: of those from 6, 9, 12, 15 and 18 on, 9 and 12 go.
    marked = drop_windows(rows, DropWindow(5, 3, 2), Decisions(3, 2, 7, ((3, 5),)))
    assert [each.time for each in marked if each.row] == [6, 7, 8, 9, 10, 15, 16, 17, 18]
    assert {each.time: each.mark for each in marked if each.mark != SILENT} == {
        0: 5, 3: 8, 6: 11, 9: CLOSED, 12: CLOSED, 15: 20, 18: 23,
    }  # fmt: skip
    assert [each.time for each in marked if each.row is None] == [0, 3, 12]


def test_a_filter_lets_a_mark_pass_on_a_fake_row() -> None:
    program = Program(
        Network((DropSourceNode("rows"), DropStepNode("box", "rows"))), {"box": lambda row: row.value > 5}
    )
    rows = [
        Marked(1, Row(1, 0, 9), 7),
        Marked(2, Row(2, 0, 1), 8),
        Marked(3, Row(3, 0, 1)),
        Marked(4, None, 0),
    ]
    assert list(pass_box(rows, program, "box")) == [rows[0], Marked(2, None, 8), rows[3]]


def test_an_aggregate_hands_a_mark_on_shortened_by_its_size() -> None:
    rows = [Marked(10, Row(10, 0, 1), 20), Marked(11, Row(11, 0, 1)), Marked(13, Row(13, 0, 1), 23)]
    found = aggregate(rows, PROGRAM, FOUR)
    # The window of 10 carries the first mark; where none starts, at 13, a fake row carries the second one.
    assert found[0] == Marked(10, Row(10, 0, 3), 17)
    assert Marked(13, None, 20) in found


def test_windows_that_start_where_no_row_is_are_opened_within_the_range() -> None:
    rows = [Marked(10, Row(10, 0, 1), 17), Marked(15, Row(15, 0, 1))]
    assert [each.row for each in aggregate(rows, PROGRAM, FOUR)] == [Row(10, 0, 1), Row(12, 0, 1)]
    # Up to 17 - 3 = 14: the window of 14 is not opened, though its row is there.


def test_windows_of_so_many_rows_are_not_simulated() -> None:
    with pytest.raises(FlowError, match="not simulated"):
        all_windows(PROGRAM, DropWindowNode("window", "rows", RowsSpec(3, 3)), [])
