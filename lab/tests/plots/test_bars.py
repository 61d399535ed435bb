from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from tidegate.observe.json_frame import Bar
from tidegate_lab.plots.bars import at_least, at_most, print_bars


@pytest.mark.parametrize(("value", "holds"), [(2.0, True), (2.1, True), (1.9, False), (None, False)])
def test_at_least_holds_from_the_target_on(value: float | None, holds: bool) -> None:
    assert at_least("a", value, "x", 2) == Bar("a", value, "x", ">= 2", holds)


@pytest.mark.parametrize(("value", "holds"), [(2.0, True), (2.1, False), (1.9, True), (None, False)])
def test_at_most_holds_up_to_the_target(value: float | None, holds: bool) -> None:
    assert at_most("a", value, "x", 2) == Bar("a", value, "x", "<= 2", holds)


def test_a_missed_bar_is_printed_as_such_and_so_is_one_that_was_not_measured() -> None:
    file = StringIO()
    print_bars(Console(file=file), [at_least("a", 1.0, "x", 2), at_least("b", None, "x", 2)])
    assert "MISSED" in file.getvalue()
    assert "not measured" in file.getvalue()
