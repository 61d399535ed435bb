"""What a goal costs where nothing has to be left out: two queries of one session take the same rows in turns.

One run after the other says nothing to a few per cent: Java compiles other things, and the machine has other
hours. Queries whose batches begin at the same moments wait for each other. So both stand side by side, and
every second of rows is given to one of them and, when it is done, to the other; the next, the other way
round. Both take what comes as soon as it comes.

    with a goal   ▓▓        ▓▓ ▓▓        ▓▓
    without          ▓▓ ▓▓        ▓▓ ▓▓

A query without rows has a batch a second, too, to let time pass. Turns during which the other one had such a
batch do not count.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import SparkSession

from tidegate.papers.day import TICK_SECONDS, Day
from tidegate.spark.bench.day.contenders import Running, Sink
from tidegate.spark.bench.day.feed import Feed, prepare
from tidegate.spark.bench.day.recorded import Told
from tidegate.spark.bench.day.run import Say, session_of_bench

#: A turn has a second of rows, as a batch has that begins every second.
TICKS = round(1 / TICK_SECONDS)
LOOK_SECONDS = 0.03
#: How it goes is said after so many turns.
TOLD_TURNS = 20

Start = Callable[[SparkSession, Feed, Path, Sink], Running]


@dataclass(frozen=True)
class Turn:
    """One second of rows under one query."""

    contender: str
    number: int
    #: Of the batch that took them; None: more than one did, or the other query had a batch meanwhile.
    seconds: float | None


def take_turns(day: Day, contenders: Mapping[str, Start], temp: Path | None, say: Say) -> list[Turn]:
    """All rows of a day under each contender, a second at a time."""
    names = list(contenders)
    with TemporaryDirectory(prefix="tidegate-turns-", dir=temp) as folder, ExitStack() as at_the_end:
        home, session = Path(folder), session_of_bench()
        at_the_end.callback(session.stop)
        feeds = {name: prepare(day, home / f"{place}" / "feed") for place, name in enumerate(names)}
        running: dict[str, Running] = {}
        for place, (name, start) in enumerate(contenders.items()):
            checkpoint = home / f"{place}" / "query"
            running[name] = start(session, feeds[name], checkpoint, Sink(day, lambda: 0.0))
            at_the_end.callback(running[name].stop)
        for number in range(day.ticks // TICKS):
            for name in names if number % 2 == 0 else names[::-1]:
                _give(feeds[name], number)
                _wait_until_taken(running, name, _given(feeds[name], number + 1))
            if (number + 1) % TOLD_TURNS == 0:
                say(f"{number + 1} turns of {day.ticks // TICKS}")
        told = {name: one.told() for name, one in running.items()}
    return turns_of(told, {name: feed.rows[: day.ticks].tolist() for name, feed in feeds.items()})


def turns_of(told: Mapping[str, Sequence[Told]], rows: Mapping[str, Sequence[int]]) -> list[Turn]:
    """By contender and turn: the batch that took it, where it was the only one that ran.

    `told`: all batches of all contenders; `rows`: left rows by tick.
    """
    found = []
    for name, batches in told.items():
        others = [batch for other, some in told.items() if other != name for batch in some]
        taken, ends = 0, {sum(rows[name][: TICKS * (n + 1)]): n for n in range(len(rows[name]) // TICKS)}
        whole = {n: sum(rows[name][TICKS * n : TICKS * (n + 1)]) for n in ends.values()}
        for batch in batches:
            taken += batch.left_rows
            number = ends.get(taken)
            if number is None or not batch.left_rows:
                continue
            alone = not any(one.began < batch.ended and batch.began < one.ended for one in others)
            seconds = batch.ended - batch.began if alone and batch.left_rows == whole[number] else None
            found.append(Turn(name, number, seconds))
    return found


def _give(feed: Feed, number: int) -> None:
    """The files of a turn arrive."""
    for tick in range(TICKS * number, TICKS * (number + 1)):
        for waiting, arrived in feed.files(tick):
            waiting.rename(arrived)


def _given(feed: Feed, turns: int) -> int:
    return int(feed.rows[: TICKS * turns].sum())


def _wait_until_taken(running: Mapping[str, Running], name: str, rows: int) -> None:
    while running[name].taken() < rows and all(one.is_active() for one in running.values()):
        time.sleep(LOOK_SECONDS)
