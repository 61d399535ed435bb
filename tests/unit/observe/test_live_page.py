from __future__ import annotations

from io import StringIO

from rich.console import Console

from tidegate.observe.live_page import LivePage, Rate
from tidegate.observe.tally import BatchLatency, StateSize, Tally


class HandClock:
    """A clock that only moves when told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


TALLY = Tally(
    rows_in=1200,
    rows_out=90,
    late=4,
    rejected=2,
    state=StateSize(500, 12_000),
    latencies=[BatchLatency(3)],
    batch_seconds=[0.2, 0.41],
    watermark="2025-03-03T17:00:31+00:00",
)


def test_a_file_gets_a_plain_line_now_and_then() -> None:
    file, clock = StringIO(), HandClock()
    with LivePage(Console(file=file, width=40), total=60, clock=clock) as progress:
        progress.show("streaming", 1, Tally())
        clock.now += 4
        progress.show("streaming", 5, TALLY)
        clock.now += 2
        progress.show("streaming", 7, TALLY)
    lines = file.getvalue().splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("streaming 1/60 s  rows in 0 (0/s)  rows out 0  no batch yet")
    assert lines[1] == (
        "streaming 7/60 s  rows in 1,200 (200/s)  rows out 90  batch 3 took 0.41 s  "
        "state 500 rows, 12.0 kB  watermark 17:00:31  late 4  rejected 2"
    )


def test_a_file_never_gets_a_control_code() -> None:
    file = StringIO()
    with LivePage(Console(file=file), total=60, clock=HandClock()) as progress:
        progress.show("streaming", 7, TALLY)
        progress.show("done", 60, TALLY, last=True)
    assert all(character.isprintable() or character == "\n" for character in file.getvalue())


def test_the_last_line_is_shown_even_when_none_is_due() -> None:
    file = StringIO()
    with LivePage(Console(file=file), total=60, clock=HandClock()) as progress:
        progress.show("streaming", 59, TALLY)
        progress.show("done", 60, TALLY, last=True)
    assert file.getvalue().splitlines()[-1].startswith("done 60/60 s")


def test_a_terminal_shows_bar_and_facts_and_gets_its_cursor_back() -> None:
    file = StringIO()
    console = Console(file=file, force_terminal=True, width=90)
    with LivePage(console, total=60, clock=HandClock()) as progress:
        progress.show("streaming", 30, TALLY)
    text = file.getvalue()
    assert "30/60 s" in text
    assert "state 500 rows, 12.0 kB" in text
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")


def test_the_rate_is_that_of_the_last_seconds_only() -> None:
    clock = HandClock()
    rate = Rate(clock)
    for count in range(0, 3000, 100):
        clock.now += 1
        shown = rate.of(count)
    assert shown == 100
    for _ in range(12):
        clock.now += 1
        shown = rate.of(2900)
    assert shown == 0


def test_what_the_query_does_about_it_stands_at_the_end() -> None:
    file = StringIO()
    with LivePage(Console(file=file), total=60, clock=HandClock()) as progress:
        progress.show("streaming", 7, TALLY, "looks at 43 % of the pairs")
        progress.say("   8 s  there is time again")
    assert file.getvalue().splitlines()[0].endswith("rejected 2  looks at 43 % of the pairs")
    assert file.getvalue().splitlines()[1] == "   8 s  there is time again"
