"""The contenders of a day: this controller, random drop to the same goal, Spark, Spark with a row limit.

All read the same files, trigger every second and write to the same sink, which counts results by tick and is
slow when the script says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery as SparkQuery

import tidegate as tg
from tidegate.driver.streaming_query import StreamingQuery
from tidegate_lab.bench.day.feed import BITS, SETS, STREAMS, Feed
from tidegate_lab.bench.day.recorded import BatchOutcome
from tidegate_lab.bench.day.telling import told_by_spark, told_by_tidegate
from tidegate_lab.workloads.day import COMMON, Day
from tidegate_lab.workloads.day_answer import CHECKSUM_SQL

GOAL, GOAL_SECONDS = "2 seconds", 2.0
TRIGGER = "1 second"
#: Files of a tick may be taken in two batches, and in any order.
LATENESS = "1 second"
#: Files of each stream that a limited batch takes: twice what a second of calm brings.
FILES_MAX = 4


class Sink:
    """Counts results by the tick that they belong to, and takes its time when the day says so."""

    def __init__(self, day: Day, second_of_day: Callable[[], float]) -> None:
        self._day, self._second_of_day = day, second_of_day
        #: By batch: tick, results, checksum.
        self.found: dict[int, tuple[tuple[int, int, int], ...]] = {}

    def __call__(self, results: DataFrame, batch: int) -> None:
        tick = F.greatest("tick", "tick_right").alias("tick")
        counted = results.groupBy(tick).agg(F.count("*"), F.expr(CHECKSUM_SQL)).collect()
        self.found[batch] = tuple((int(t), int(n), int(checksum)) for t, n, checksum in counted)
        time.sleep(self._day.at(self._second_of_day()).sink_seconds)


class Running(Protocol):
    """A contender at work."""

    def is_active(self) -> bool: ...

    def told(self) -> list[BatchOutcome]: ...

    def taken(self) -> int:
        """Left rows so far."""
        ...

    def stop(self) -> None:
        """End it; raises what it failed of."""
        ...


Start = Callable[[SparkSession, Feed, Path, Sink], Running]


def tidegate(session: SparkSession, feed: Feed, home: Path, sink: Sink) -> Running:
    return _start(session, feed, home, sink, tg.Goal(GOAL), tg.Shed(repair="idle"))


def with_goal_at_once(session: SparkSession, feed: Feed, home: Path, sink: Sink) -> Running:
    """The same, with batches that begin as soon as rows are there."""
    return _start(session, feed, home, sink, tg.Goal(GOAL), tg.Shed(repair="idle"), trigger=None)


def without_goal_at_once(session: SparkSession, feed: Feed, home: Path, sink: Sink) -> Running:
    return _start(session, feed, home, sink, None, None, trigger=None)


def random(session: SparkSession, feed: Feed, home: Path, sink: Sink) -> Running:
    return _start(session, feed, home, sink, tg.Goal(GOAL), tg.Shed(join="random_drop"))


def partial(session: SparkSession, feed: Feed, home: Path, sink: Sink) -> Running:
    return _start(session, feed, home, sink, tg.Goal(GOAL), tg.Shed(join="partial"))


def spark(session: SparkSession, feed: Feed, home: Path, sink: Sink) -> Running:
    return _start_spark(session, feed, home, sink, {})


def spark_capped(session: SparkSession, feed: Feed, home: Path, sink: Sink) -> Running:
    return _start_spark(session, feed, home, sink, {"maxFilesPerTrigger": str(FILES_MAX)})


CONTENDERS: dict[str, Start] = {
    "tidegate": tidegate,
    "random": random,
    "spark": spark,
    "spark-capped": spark_capped,
}


def _start(
    session: SparkSession,
    feed: Feed,
    home: Path,
    sink: Sink,
    goal: tg.Goal | None,
    shed: tg.Shed | None,
    trigger: str | None = TRIGGER,
) -> Running:
    left, right = (
        tg.stream(
            session.readStream.schema(SETS).parquet(str(feed.root / name)),
            time="ts",
            name=name,
            lateness=LATENESS,
        )
        for name in STREAMS
    )
    pairs = left.join(
        right,
        on=["k", tg.overlap("items", at_least=COMMON)],
        within=f"{feed.day.window_us} microseconds",
        name="pairs",
    )
    query = tg.start(
        pairs.write_to(sink, name="pairs"),
        checkpoint=str(home / "checkpoint"),
        trigger=trigger,
        goal=goal,
        shed=shed,
        seed=feed.day.seed,
    )
    return _Tidegate(query)


def _start_spark(session: SparkSession, feed: Feed, home: Path, sink: Sink, limit: dict[str, str]) -> Running:
    """Spark's own join in the form that suits it best: equal keys, a range of time, and words of bits."""
    left, right = (
        session.readStream.schema(BITS)
        .options(**limit)
        .parquet(str(feed.root / name))
        .withWatermark("ts", LATENESS)
        .alias(name[0])
        for name in STREAMS
    )
    span = f"interval {feed.day.window_us} microseconds"
    near = f"l.k = r.k and l.ts >= r.ts - {span} and l.ts <= r.ts + {span}"
    pairs = left.join(right, F.expr(f"{near} and bit_count(l.bits & r.bits) >= {COMMON}"))
    columns = ("l.n", "l.tick", "r.n as n_right", "r.tick as tick_right")
    writer = pairs.selectExpr(*columns).writeStream.foreachBatch(sink)
    writer = writer.option("checkpointLocation", str(home / "checkpoint")).trigger(processingTime=TRIGGER)
    return _Spark(writer.start())


@dataclass(frozen=True)
class _Tidegate:
    query: StreamingQuery

    def is_active(self) -> bool:
        return self.query.is_active

    def told(self) -> list[BatchOutcome]:
        return [told_by_tidegate(progress) for progress in self.query.telemetry]

    def taken(self) -> int:
        return sum(progress["offered"][STREAMS[0]] for progress in self.query.telemetry)

    def stop(self) -> None:
        self.query.stop()
        failure = self.query.exception()
        if failure is not None:
            raise failure


@dataclass(frozen=True)
class _Spark:
    query: SparkQuery

    def is_active(self) -> bool:
        return bool(self.query.isActive)

    def told(self) -> list[BatchOutcome]:
        return [told_by_spark(progress) for progress in self.query.recentProgress]

    def taken(self) -> int:
        return sum(told.left_rows for told in self.told())

    def stop(self) -> None:
        failure = self.query.exception()
        self.query.stop()
        if failure is not None:
            raise failure
