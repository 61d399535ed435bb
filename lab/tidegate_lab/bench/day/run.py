"""Plays a scripted day: files arrive by the clock while a contender processes them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import SparkSession

from tidegate.cli.demo.arrivals import CityArrivals
from tidegate.driver.session import embedded_session
from tidegate_lab.bench.day.contenders import Running, Sink, Start
from tidegate_lab.bench.day.feed import Feed
from tidegate_lab.bench.day.recorded import Recorded, recorded
from tidegate_lab.workloads.day import TICK_SECONDS

Say = Callable[[str], None]
CORES, MEMORY = 2, "4g"
#: Rows still on their way when the day is over get so long to come through: a part of the day, or seconds.
OVERTIME, OVERTIME_SECONDS_MIN = 0.25, 10.0
#: Java compiles what runs often while it runs: in its first minute a query takes twice as long as later. So
#: before the day begins, batches without rows come and go for a part of it, or seconds.
WARM, WARM_SECONDS_MAX = 0.2, 45.0
#: How it goes is said after so many seconds.
TOLD_SECONDS = 20.0
LOOK_SECONDS = 0.25


def session_of_bench() -> SparkSession:
    # Spark remembers a hundred batches unless told otherwise, and a day has more.
    kept = {"spark_sql_streaming_numRecentProgressUpdates": "100000"}
    return embedded_session("tidegate bench overload", cores=CORES, memory=MEMORY, **kept)


def play(feed: Feed, contenders: Mapping[str, Start], temp: Path | None, say: Say) -> dict[str, Recorded]:
    """The day once, in a session and folders of its own; several contenders share the machine."""
    arrivals = CityArrivals(feed, seconds_per_tick=TICK_SECONDS)
    clock = _Clock(arrivals)
    sinks = {name: Sink(feed.day, clock) for name in contenders}
    running: dict[str, Running] = {}
    with TemporaryDirectory(prefix="tidegate-day-", dir=temp) as home, ExitStack() as at_the_end:
        at_the_end.callback(feed.put_back)
        session = session_of_bench()
        at_the_end.callback(session.stop)
        at_the_end.callback(arrivals.stop)
        for name, start in contenders.items():
            running[name] = start(session, feed, Path(home) / name, sinks[name])
            at_the_end.callback(running[name].stop)
        _let_arrive(feed, running, arrivals, clock, say)
        stopped = time.time()
        told = {name: one.told() for name, one in running.items()}
    return {
        name: recorded(
            name,
            feed.day,
            arrivals.moments,
            feed.rows,
            told[name],
            sinks[name].found,
            stopped,
            TICK_SECONDS,
        )
        for name in contenders
    }


class _Clock:
    """Seconds of the day; it begins a tick before the second tick."""

    def __init__(self, arrivals: CityArrivals) -> None:
        self._arrivals = arrivals

    def __call__(self) -> float:
        moments = self._arrivals.moments
        return time.time() - moments[1] + TICK_SECONDS if len(moments) > 1 else 0.0


def _let_arrive(
    feed: Feed, running: Mapping[str, Running], arrivals: CityArrivals, clock: _Clock, say: Say
) -> None:
    """The first rows, and when Spark and its workers have warmed up on them, all others."""
    arrivals.start()
    _wait(running, lambda: all(one.taken() for one in running.values()), float("inf"))
    warm = min(WARM_SECONDS_MAX, WARM * feed.day.seconds)
    _wait(running, lambda: False, time.monotonic() + warm)
    arrivals.go()
    due = TOLD_SECONDS
    while not arrivals.finished and all(one.is_active() for one in running.values()):
        time.sleep(LOOK_SECONDS)
        if clock() >= due:
            due += TOLD_SECONDS
            behind = int(feed.rows[: arrivals.arrived].sum())
            state = ", ".join(f"{name}: {_state(one, behind)}" for name, one in running.items())
            say(f"{clock():4.0f} s, {feed.day.at(clock()).name}: {state}")
    rows, overtime = int(feed.rows.sum()), max(OVERTIME_SECONDS_MIN, OVERTIME * feed.day.seconds)
    everyone = running.values()
    _wait(running, lambda: all(one.taken() >= rows for one in everyone), time.monotonic() + overtime)


def _wait(running: Mapping[str, Running], done: Callable[[], bool], patience: float) -> None:
    while not done() and time.monotonic() < patience and all(one.is_active() for one in running.values()):
        time.sleep(LOOK_SECONDS)


def _state(one: Running, arrived: int) -> str:
    last = one.told()[-1]
    kept = "" if last.fraction is None else f", r = {last.fraction:.2f}"
    return f"batch of {last.ended - last.began:.2f} s, {2 * (arrived - one.taken()):,} rows waiting{kept}"
