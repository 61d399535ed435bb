"""One query under a steady rate: files are published as time goes by, and each file's latency is noted.

    first file ─▶ … the query has started and committed it ─▶ files at the rate: warm-up ┊ counted ─▶ stop

All files exist beforehand: publishing links one into the folder that the query reads, and sets its time. The
events are the same at every rate, only faster: event time does not go by the clock.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tidegate_lab.bench.nexmark import play
from tidegate_lab.bench.nexmark.latency import committed_at, percentile
from tidegate_lab.bench.nexmark.task import Answer, Pace, Task
from tidegate_lab.workloads.nexmark.files import file_name

#: The first batch starts and compiles everything.
FIRST_BATCH_SECONDS = 120.0
#: How often it is looked whether the query has fallen behind.
LOOK_SECONDS = 2.0


class Publisher:
    """Puts files into the inbox, and knows when it did."""

    def __init__(self, events: Path, inbox: Path) -> None:
        self._events = events
        self._inbox = inbox
        inbox.mkdir(parents=True)
        self.published: dict[str, float] = {}

    def publish(self) -> str:
        name = file_name(len(self.published))
        source = self._events / name
        now = time.time()
        os.utime(source, (now, now))
        os.link(source, self._inbox / name)
        self.published[name] = now
        return name


def sustain(spark: SparkSession, task: Task) -> Answer:
    """Latencies of the files of the counted time; those that never came through count as still waiting."""
    pace = task.pace
    if pace is None:
        raise ValueError("a sustained run needs a pace")
    work = Path(task.work)
    publisher = Publisher(Path(task.events), work / "inbox")
    publisher.publish()
    query = play.start(spark, task, play.read(spark, work / "inbox"), pace.trigger)
    try:
        _first_batch(query, work / "checkpoint")
        counted, fell_behind = _publish_all(publisher, query, pace, work / "checkpoint")
        _drain(publisher, query, pace, work / "checkpoint")
    finally:
        query.stop()
        play.release(spark)
    done, now = committed_at(work / "checkpoint"), time.time()
    latencies = [done.get(name, now) - publisher.published[name] for name in counted]
    return {
        "event": "done",
        "latencies": latencies,
        "p50": percentile(latencies, 0.5),
        "p95": percentile(latencies, 0.95),
        "fell_behind": fell_behind,
        "batches": play.batch_seconds(query),
    }


def _first_batch(query: Any, checkpoint: Path) -> None:
    until = time.monotonic() + FIRST_BATCH_SECONDS
    while not committed_at(checkpoint):
        _check(query)
        if time.monotonic() > until:
            raise TimeoutError(f"no batch within {FIRST_BATCH_SECONDS:.0f} s")
        time.sleep(0.1)


def _publish_all(publisher: Publisher, query: Any, pace: Pace, checkpoint: Path) -> tuple[list[str], bool]:
    """The files of the counted time, and whether the query fell so far behind that the run was cut short."""
    begun = time.monotonic()
    counted: list[str] = []
    looked = begun
    for number in range(pace.files - 1):
        due = begun + number * pace.file_events / pace.rate
        time.sleep(max(0.0, due - time.monotonic()))
        name = publisher.publish()
        if due - begun >= pace.warmup_seconds:
            counted.append(name)
        if time.monotonic() - looked > LOOK_SECONDS:
            _check(query)
            looked = time.monotonic()
            if _waiting_seconds(publisher, checkpoint) > pace.give_up_seconds:
                return counted or [name], True
    return counted, False


def _drain(publisher: Publisher, query: Any, pace: Pace, checkpoint: Path) -> None:
    """Files still on their way may come through, for as long as it matters."""
    until = time.monotonic() + pace.give_up_seconds
    while _waiting_seconds(publisher, checkpoint) and time.monotonic() < until:
        _check(query)
        time.sleep(0.2)


def _waiting_seconds(publisher: Publisher, checkpoint: Path) -> float:
    """For how long the oldest file that is not committed has been waiting; 0 if there is none."""
    done = committed_at(checkpoint)
    waiting = [moment for name, moment in publisher.published.items() if name not in done]
    return time.time() - min(waiting) if waiting else 0.0


def _check(query: Any) -> None:
    failed = query.exception()
    if failed is not None:
        raise failed
