"""Watches a running query: feeds it, shows its progress, and returns when it has processed all rows.

Ctrl-C stops the query: committed batches stay, and the running one is cancelled and would run again on a
restart. A second Ctrl-C does not wait for Spark to stop.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Event, current_thread, main_thread
from types import FrameType
from typing import Any, Protocol

from tidegate.errors import BatchFailed
from tidegate.observe.live_page import LivePage
from tidegate.observe.shed_summary import Changes, doing
from tidegate.observe.tally import Tally

#: The interval of screen updates.
LOOK_SECONDS = 0.25
#: The time for repair after the last row.
REPAIR_SECONDS_MAX = 45.0


class RunningQuery(Protocol):
    """What watching needs of a query."""

    @property
    def is_active(self) -> bool: ...

    @property
    def telemetry(self) -> Sequence[Mapping[str, Any]]: ...

    def exception(self) -> BaseException | None: ...

    def process_all_available(self) -> None: ...


class Feed(Protocol):
    """What brings the rows."""

    @property
    def arrived(self) -> int: ...

    @property
    def finished(self) -> bool: ...

    def go(self) -> None: ...


def watch(
    query: RunningQuery,
    feed: Feed,
    progress: LivePage,
    *,
    rows: int,
    stop: Event,
    look_seconds: float = LOOK_SECONDS,
    line_of: Callable[[int], str | None] = lambda tick: None,
) -> Tally:
    """Watch until `rows` rows are processed and written, or `stop` is set; a failed query raises.

    The feed continues after the query has processed its first rows. Debts get some more time for repair.
    `line_of`: the line to print when a tick has arrived.
    """
    tally, lines, seconds_left = Tally(), _Lines(line_of), REPAIR_SECONDS_MAX
    while not stop.is_set():
        _raise_if_failed(query)
        reports = query.telemetry
        tally.add(reports)
        for line in lines.new(feed.arrived, reports):
            progress.say(line)
        if tally.rows_in:
            feed.go()
        if feed.finished and tally.rows_in >= rows:
            if not tally.debt:
                query.process_all_available()
                break
            if seconds_left <= 0:
                break
            seconds_left -= look_seconds
        progress.show(_phase(feed, tally, rows), feed.arrived, tally, doing(reports[-1]) if reports else "")
        stop.wait(look_seconds)
    tally.add(query.telemetry)
    progress.show("stopped" if stop.is_set() else "done", feed.arrived, tally, last=True)
    return tally


class _Lines:
    """Lines about arriving rows and about changes of the query, each once."""

    def __init__(self, line_of: Callable[[int], str | None]) -> None:
        self._line_of, self._changes, self._ticks = line_of, Changes(), 0

    def new(self, arrived: int, reports: Sequence[Mapping[str, Any]]) -> Iterator[str]:
        for tick in range(self._ticks, arrived):
            if line := self._line_of(tick):
                yield f"{tick:4d} s  {line}"
        self._ticks = arrived
        for line in self._changes.of(reports):
            yield f"{arrived:4d} s  {line}"


def _phase(feed: Feed, tally: Tally, rows: int) -> str:
    if not tally.rows_in:
        return "warming up"
    if not feed.finished:
        return "streaming"
    return "repairing" if tally.rows_in >= rows else "finishing"


def _raise_if_failed(query: RunningQuery) -> None:
    if query.is_active:
        return
    raise query.exception() or BatchFailed(
        "The query ended by itself without an error",
        code="STREAMING_QUERY_ENDED",
        do="Read Spark's log above for the cause",
    )


@contextmanager
def ctrl_c_sets(stop: Event) -> Iterator[None]:
    """The first Ctrl-C sets `stop`, the second raises KeyboardInterrupt; the old handler is restored."""
    if current_thread() is not main_thread():
        # Only the main thread can set signal handlers.
        yield
        return

    def ask(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
