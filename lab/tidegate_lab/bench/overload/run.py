"""One run of an overloaded join on Spark: the work and the latency of each batch under each policy.

Latency is from the arrival of a row's file to the commit of the batch that processed it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import SparkSession

import tidegate as tg
from tidegate.api.goal import JoinPolicyName
from tidegate.cli.demo.arrivals import CityArrivals
from tidegate.driver.session import embedded_session
from tidegate.driver.streaming_query import StreamingQuery
from tidegate_lab.bench.overload.feed import SCHEMA, STREAMS, TICK_SECONDS, Feed, Story, prepare

WINDOW_SECONDS = 20
TRIGGER = "1 second"


def _near(left: Any, right: Any) -> Any:
    """A condition that is a function of the user's, over series of items."""
    return (left - right).abs() <= 1


#: How rows are joined: comparing sets, through an index of their items, single items by a function of the
#: user's, or by equality.
CONDITIONS: Mapping[str, Callable[[], Any]] = {
    "overlap": lambda: tg.overlap("items", at_least=3, index="none"),
    "indexed": lambda: tg.overlap("items", at_least=3),
    "pairwise": lambda: tg.pairwise(_near, "item"),
    "equality": lambda: "item",
}
#: Rows still on their way when all files have arrived get so long to come through.
LAST_ROWS_SECONDS = 6.0
#: How it goes is said after so many ticks.
TOLD_TICKS = 40


@dataclass(frozen=True)
class Batch:
    """One batch, as it went; seconds count from the arrival of the first tick."""

    number: int
    began: float
    seconds: float
    rows: int
    #: Seconds from arrival to commit, and how many left rows waited so long.
    waits: tuple[tuple[float, int], ...]
    #: r in force, pairs in reach and pairs looked at.
    fraction: float
    candidates: int
    probed_pairs: int
    outputs: int
    #: Seconds of a batch without rows, as the goal estimates them.
    fixed_seconds: float = 0.0

    @property
    def latency_p95(self) -> float:
        return p95([self])


def p95(batches: Sequence[Batch]) -> float:
    """The latency that 95 % of the rows of these batches do not exceed."""
    waits = np.concatenate([np.repeat([w for w, _ in b.waits], [n for _, n in b.waits]) for b in batches])
    return float(np.percentile(waits, 95))


@dataclass(frozen=True)
class Run:
    """A whole story under one policy."""

    policy: str
    story: Story
    batches: list[Batch]

    def rush(self, after: float = 0.0) -> list[Batch]:
        """Batches that began in the rush, so many seconds after it came at the earliest."""
        begin = self.story.calm_seconds + after
        return [b for b in self.batches if begin <= b.began < self.story.rate.seconds]


def play(
    story: Story, policies: Sequence[str], latency: str, temp: Path | None, say: Callable[[str], None]
) -> dict[str, Run]:
    """Run the story once, in a session and folders of its own; several policies side by side.

    Side by side they share the machine, with all that its neighbours do to it: nobody has the better minute.
    """
    with TemporaryDirectory(prefix="tidegate-overload-", dir=temp) as folder:
        feed = prepare(story, Path(folder))
        session = embedded_session("tidegate bench overload", cores=2, memory="4g")
        arrivals = CityArrivals(feed, seconds_per_tick=TICK_SECONDS)
        queries: dict[str, StreamingQuery] = {}
        try:
            for policy in policies:
                queries[policy] = _start(session, feed, story, policy, latency)
            _let_arrive(queries, arrivals, say)
        finally:
            arrivals.stop()
            for query in queries.values():
                query.stop()
            session.stop()
        return {
            policy: Run(policy, story, _batches(feed, arrivals.moments, query.telemetry))
            for policy, query in queries.items()
        }


def _start(session: SparkSession, feed: Feed, story: Story, policy: str, latency: str) -> StreamingQuery:
    left, right = (
        tg.stream(
            session.readStream.schema(SCHEMA).parquet(str(feed.root / stream)),
            time="ts",
            name=stream,
            lateness="0 seconds",
        )
        for stream in STREAMS
    )
    joined = left.join(
        right,
        on=CONDITIONS[story.join](),
        within=f"{WINDOW_SECONDS} seconds",
        name="pairs",
    )
    # A pair is told by the numbers of its rows: writing two sets takes longer than finding the pair.
    return tg.start(
        joined.select("n", "n_right").write_to("parquet", str(feed.root / policy / "out"), name="pairs"),
        checkpoint=str(feed.root / policy / "checkpoint"),
        trigger=TRIGGER,
        goal=tg.Goal(latency=latency),
        shed=tg.Shed(join=cast(JoinPolicyName, policy)),
    )


def _let_arrive(
    queries: Mapping[str, StreamingQuery], arrivals: CityArrivals, say: Callable[[str], None]
) -> None:
    """The first rows, and when Spark and its workers have warmed up on them, all others."""
    arrivals.start()
    for query in queries.values():
        while query.is_active and not any(progress["input_rows"] for progress in query.telemetry):
            time.sleep(0.1)
    arrivals.go()
    told = 0
    while not arrivals.finished and all(query.is_active for query in queries.values()):
        time.sleep(1.0)
        if arrivals.arrived >= told + TOLD_TICKS:
            told = arrivals.arrived
            say(", ".join(f"{policy}: {_state(query)}" for policy, query in queries.items()))
    for query in queries.values():
        query.await_termination(LAST_ROWS_SECONDS / len(queries))
        failed = query.exception()
        if failed is not None:
            raise failed


def _state(query: StreamingQuery) -> str:
    if not query.telemetry:
        return "no batch yet"
    last = query.telemetry[-1]
    return f"a batch of {last['duration_seconds']:.2f} s, r = {last['shed']['pairs']['fraction']:.3f}"


def _batches(feed: Feed, moments: list[float], told: list[dict[str, Any]]) -> list[Batch]:
    """Which ticks a batch took follows from the number of rows: files come in order, and whole."""
    until = np.cumsum(feed.rows[: len(moments)])
    arrived: NDArray[np.float64] = np.array(moments)
    batches: list[Batch] = []
    taken = 0
    # The first tick came while everything was cold; the story begins with the second.
    start = moments[1] - TICK_SECONDS if len(moments) > 1 else moments[0]
    for progress in told:
        rows = progress["offered"][STREAMS[0]]
        if not rows:
            continue
        first, last = np.searchsorted(until, taken, side="right"), np.searchsorted(until, taken + rows)
        taken += rows
        done = progress["started"] + progress["duration_seconds"]
        ticks = range(int(first), int(last) + 1)
        shed = progress["shed"]["pairs"]
        batches.append(
            Batch(
                number=progress["batch"],
                began=progress["started"] - start,
                seconds=progress["duration_seconds"],
                rows=progress["input_rows"],
                waits=tuple((done - arrived[tick], int(feed.rows[tick])) for tick in ticks),
                fraction=shed["fraction"],
                candidates=sum(window["in_reach"] for window in shed["windows"]),
                probed_pairs=sum(window["looked_at"] for window in shed["windows"]),
                outputs=progress["emitted"]["pairs"],
                fixed_seconds=(progress["goal"] or {}).get("fixed", 0.0),
            )
        )
    return batches
