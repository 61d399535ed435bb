"""Measures the overhead of a goal under steady load: two queries of a session take turns.

Two consecutive runs cannot resolve a few per cent: Java compiles differently, and the speed of the machine
drifts. Concurrent queries delay each other, because each runs a batch per second even without rows. So one
session runs a query for some seconds of rows, stops it, runs the other for the same rows, and so on in
alternating order; each continues from its own checkpoint. Each second of rows arrives when the last is done.

    with a goal   ▓▓▓▓▓▓            ▓▓▓▓▓▓▓▓▓▓▓▓            ▓▓▓▓▓▓
    without             ▓▓▓▓▓▓▓▓▓▓▓▓            ▓▓▓▓▓▓▓▓▓▓▓▓

The first batches after every start do not count. Even so the turns of one query vary by a tenth, so the
overhead is reported in parts (`bars.py`): driver time, measured within these batches, and task time, as
processor time for the same rows. The ratio of whole batches is reported as well.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from tempfile import TemporaryDirectory

from tidegate_lab.bench.day.contenders import Running, Sink, Start
from tidegate_lab.bench.day.feed import Feed, prepare
from tidegate_lab.bench.day.recorded import BatchOutcome
from tidegate_lab.bench.day.run import Say, session_of_bench
from tidegate_lab.workloads.day import TICK_SECONDS, Day

#: Rows come a second at a time, as a batch has them that begins every second.
TICKS = round(1 / TICK_SECONDS)
#: Seconds of rows in a turn, and those at its beginning that do not count.
TURN_SECONDS, COLD_SECONDS = 16, 5
#: Seldom: who looks takes time of the driver's, and is in its way.
LOOK_SECONDS = 0.1


@dataclass(frozen=True)
class Second:
    """One second of rows under one query."""

    contender: str
    number: int
    #: Of the batch that took them; None: it was cold, or they came in more than one.
    batch_seconds: float | None
    #: Of it: what the goal took to keep; and processor time of its tasks.
    goal_seconds: float = 0.0
    task_seconds: float = 0.0


def take_turns(day: Day, contenders: Mapping[str, Start], temp: Path | None, say: Say) -> list[Second]:
    """All rows of a day under each contender, in turns."""
    turns, found = int(day.seconds) // TURN_SECONDS, []
    with TemporaryDirectory(prefix="tidegate-turns-", dir=temp) as folder, ExitStack() as at_the_end:
        homes = {name: Path(folder) / str(place) for place, name in enumerate(contenders)}
        feeds = {name: prepare(day, home / "feed") for name, home in homes.items()}
        session = session_of_bench()
        at_the_end.callback(session.stop)
        for turn in range(turns):
            numbers = range(TURN_SECONDS * turn, TURN_SECONDS * (turn + 1))
            for name in list(contenders)[:: -1 if turn % 2 else 1]:
                running = contenders[name](session, feeds[name], homes[name], Sink(day, lambda: 0.0))
                told = _taken(running, feeds[name], numbers)
                rows = [_rows(feeds[name], number) for number in numbers]
                found += seconds_of(name, numbers[0], told, rows)
            say(f"turn {turn + 1} of {turns}")
    return found


def seconds_of(contender: str, first: int, told: Sequence[BatchOutcome], rows: Sequence[int]) -> list[Second]:
    """A turn: every second of its rows with the batch that took it. `rows`: left ones by second."""
    found, taken, ends = [], 0, list(accumulate(rows))
    for batch in told:
        taken += batch.left_rows
        if not batch.left_rows or taken not in ends:
            continue
        number = ends.index(taken)
        whole = batch.left_rows == rows[number] and number >= COLD_SECONDS
        seconds = batch.ended - batch.began if whole else None
        found.append(Second(contender, first + number, seconds, batch.goal_seconds, batch.task_seconds))
    return found


def _taken(running: Running, feed: Feed, numbers: Sequence[int]) -> list[BatchOutcome]:
    """Let a query take some seconds of rows, and stop it."""
    given = 0
    try:
        for number in numbers:
            _give(feed, number)
            given += _rows(feed, number)
            while running.taken() < given and running.is_active():
                time.sleep(LOOK_SECONDS)
        return running.told()
    finally:
        running.stop()


def _give(feed: Feed, number: int) -> None:
    """The files of a second arrive."""
    for tick in range(TICKS * number, TICKS * (number + 1)):
        for waiting, arrived in feed.files(tick):
            waiting.rename(arrived)


def _rows(feed: Feed, number: int) -> int:
    return int(feed.rows[TICKS * number : TICKS * (number + 1)].sum())
