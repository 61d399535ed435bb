from __future__ import annotations

import signal
from collections.abc import Callable
from io import StringIO
from threading import Event
from typing import Any

import pytest
from rich.console import Console

from tidegate.cli.watch import ctrl_c_sets, watch
from tidegate.errors import BatchFailed
from tidegate.observe.live_page import LivePage


def report(batch: int, rows: int) -> dict[str, Any]:
    return {
        "batch": batch,
        "duration_seconds": 0.1,
        "input_rows": rows,
        "emitted": {"near": rows},
        "state_rows": 1,
        "state_bytes": 1,
        "watermarks": {},
        "late": {},
        "rejected": {},
    }


class ScriptedQuery:
    """A query whose reports are known beforehand: one more each time it is asked, as a real one."""

    def __init__(self, rows: list[int], after: Callable[[int], None] = lambda asked: None) -> None:
        self._rows = rows
        self._after = after
        self._asked = 0
        self.drained = False
        self.error: BaseException | None = None

    @property
    def is_active(self) -> bool:
        return self.error is None

    @property
    def telemetry(self) -> list[dict[str, Any]]:
        self._asked += 1
        self._after(self._asked)
        return [report(batch, rows) for batch, rows in enumerate(self._rows[: self._asked])]

    def exception(self) -> BaseException | None:
        return self.error

    def process_all_available(self) -> None:
        self.drained = True


class Arrived:
    """A feed that is through as soon as it is told to go."""

    arrived = 3

    def __init__(self) -> None:
        self.finished = False

    def go(self) -> None:
        self.finished = True


def watched(query: ScriptedQuery, stop: Event | None = None, rows: int = 30, **more: Any) -> tuple[Any, str]:
    file = StringIO()
    with LivePage(Console(file=file), total=3, clock=lambda: 0.0) as progress:
        tally = watch(query, Arrived(), progress, rows=rows, stop=stop or Event(), look_seconds=0.0, **more)
    return tally, file.getvalue()


def test_it_leaves_when_every_row_is_in_and_written() -> None:
    query = ScriptedQuery([10, 15, 5, 0])
    tally, text = watched(query)
    assert query.drained
    assert tally.rows_in == 30
    assert text.splitlines()[-1].startswith("done 3/3 s")


def test_the_feed_goes_on_only_after_the_first_rows() -> None:
    stop = Event()
    feed = Arrived()
    query = ScriptedQuery([0, 0, 10], after=lambda asked: stop.set() if asked == 2 else None)
    with LivePage(Console(file=StringIO()), total=3, clock=lambda: 0.0) as progress:
        watch(query, feed, progress, rows=30, stop=stop, look_seconds=0.0)
    assert not feed.finished


def test_a_failed_query_raises_its_own_error() -> None:
    query = ScriptedQuery([10])
    query.error = BatchFailed("a task gave no report", code="INTERNAL_REPORTS_MISSING")
    with pytest.raises(BatchFailed, match="a task gave no report"):
        watched(query)


def test_a_query_that_ends_by_itself_is_an_error_too() -> None:
    class Gone(ScriptedQuery):
        is_active = False

    with pytest.raises(BatchFailed, match=r"STREAMING_QUERY_ENDED.*ended by itself"):
        watched(Gone([]))


def test_a_stop_leaves_before_the_rows_are_in() -> None:
    stop = Event()
    query = ScriptedQuery([10], after=lambda asked: stop.set() if asked == 2 else None)
    tally, text = watched(query, stop)
    assert not query.drained
    assert tally.rows_in == 10
    assert text.splitlines()[-1].startswith("stopped 3/3 s")


class Owing(ScriptedQuery):
    """A query that owes something until it has been asked a few times."""

    @property
    def telemetry(self) -> list[dict[str, Any]]:
        found = super().telemetry
        owed = max(0, 5 - self._asked)
        return [
            {**one, "debts": {"comparisons": owed, "repaired": {"comparisons": 1, "matches": 1}}}
            for one in found
        ]


def test_what_was_left_out_is_made_up_for_before_it_leaves() -> None:
    query = Owing([10, 15, 5, 0, 0, 0, 0])
    tally, text = watched(query)
    assert query.drained
    assert tally.debt == 0
    assert "repairing 3/3 s" not in text.splitlines()[-1]
    assert "   3 s  all skipped pairs are repaired" in text.splitlines()


def test_what_is_still_owed_after_a_while_does_not_hold_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.cli.watch.REPAIR_SECONDS_MAX", 0.0)
    query = Owing([30])
    tally, _ = watched(query)
    assert not query.drained, "a query that owes is drained only when all is paid"
    assert tally.debt > 0


def test_lines_about_the_feed_are_said_once_each() -> None:
    _, text = watched(ScriptedQuery([10, 15, 5, 0]), line_of=lambda tick: "a rush" if tick == 1 else None)
    assert text.splitlines().count("   1 s  a rush") == 1


def test_the_first_ctrl_c_asks_and_the_second_insists() -> None:
    before = signal.getsignal(signal.SIGINT)
    stop = Event()
    with ctrl_c_sets(stop):
        signal.raise_signal(signal.SIGINT)
        assert stop.is_set()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before
