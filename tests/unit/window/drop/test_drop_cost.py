from __future__ import annotations

import pytest

from tidegate.window.drop.drop_cost import dropped_rows
from tidegate.window.drop.drop_window import DropWindow, result
from tidegate.window.spec import WindowSpec


def test_behind_a_window_rows_come_once_a_slide_and_all_of_a_dropped_batch_go() -> None:
    assert dropped_rows(result(WindowSpec(30, 10), 4), grid_us=10) == 1.0
    # Of ten tumbling windows in a row, seen from in front of a nest: rows of nine and a bit.
    assert dropped_rows(DropWindow(109, 100, 10)) == pytest.approx(991 / 1000)
