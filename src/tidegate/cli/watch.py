"""Stands by a running query: feeds it, shows how it does, and leaves when it has taken everything in.

Ctrl-C asks for an end: what the last finished batch wrote stays, the one under way is given up and would run
again on a restart. A second Ctrl-C does not wait for Spark to stop.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Event, current_thread, main_thread
from types import FrameType
from typing import Any, Protocol

from tidegate.errors import BatchFailed, explain
from tidegate.report.progress import Progress
from tidegate.report.tally import Tally

#: How often the screen is brought up to date.
LOOK_SECONDS = 0.25


class RunningQuery(Protocol):
    """What watching needs of a query."""

    @property
    def is_active(self) -> bool: ...

    @property
    def recent_progress(self) -> Sequence[Mapping[str, Any]]: ...

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
    progress: Progress,
    *,
    rows: int,
    stop: Event,
    look_seconds: float = LOOK_SECONDS,
) -> Tally:
    """Until `rows` rows are in and their outputs written, or `stop` is set; a failed query raises.

    The feed is told to go on when the query has taken in its first rows.
    """
    tally = Tally()
    while not stop.is_set():
        _raise_if_failed(query)
        tally.add(query.recent_progress)
        if tally.rows_in:
            feed.go()
        if feed.finished and tally.rows_in >= rows:
            query.process_all_available()
            break
        progress.show(_phase(feed, tally), feed.arrived, tally)
        stop.wait(look_seconds)
    tally.add(query.recent_progress)
    progress.show("stopped" if stop.is_set() else "done", feed.arrived, tally, last=True)
    return tally


def _phase(feed: Feed, tally: Tally) -> str:
    if not tally.rows_in:
        return "warming up"
    return "finishing" if feed.finished else "streaming"


def _raise_if_failed(query: RunningQuery) -> None:
    if query.is_active:
        return
    raise query.exception() or BatchFailed(
        explain(
            "The query ended by itself",
            why="Nobody stopped it, and it gave no error",
            do="Look into the log of Spark above",
        )
    )


@contextmanager
def ctrl_c_sets(stop: Event) -> Iterator[None]:
    """The first Ctrl-C sets `stop`, the second raises KeyboardInterrupt; afterwards all is as before."""
    if current_thread() is not main_thread():
        # Only the main thread may say what a signal does; elsewhere nobody presses Ctrl-C.
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
