from __future__ import annotations

from io import StringIO

from rich.console import Console

from tidegate.observe.table import print_table

LONG = "/a/very/long/path/" + "x" * 120


def printed(console_width: int, *, terminal: bool) -> str:
    file = StringIO()
    console = Console(file=file, width=console_width, force_terminal=terminal)
    print_table(console, "Title", ("name", "rows"), [("[a]", "1,234"), (LONG, "7")])
    return file.getvalue()


def test_a_table_in_a_file_is_as_wide_as_it_needs() -> None:
    assert LONG in printed(80, terminal=False)


def test_a_table_in_a_file_has_no_control_codes() -> None:
    assert "\x1b" not in printed(80, terminal=False)


def test_what_looks_like_markup_is_printed_as_it_is() -> None:
    assert "[a]" in printed(80, terminal=False)


def test_a_title_longer_than_the_table_stays_in_one_line() -> None:
    file = StringIO()
    print_table(Console(file=file, width=40), "Checkpoint " + LONG, ("", ""), [("a", "1")])
    assert file.getvalue().splitlines()[0] == "Checkpoint " + LONG


def test_figures_stand_right() -> None:
    lines = printed(200, terminal=False).splitlines()
    first, second = (next(line for line in lines if mark in line) for mark in ("1,234", LONG))
    assert first.rstrip().endswith("1,234")
    assert len(first.rstrip()) == len(second.rstrip())


def test_a_table_on_a_terminal_keeps_to_its_width() -> None:
    from rich.text import Text

    widths = [len(Text.from_ansi(line).plain) for line in printed(60, terminal=True).splitlines()]
    assert max(widths) <= 60
