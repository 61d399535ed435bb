"""From Tidegate's run to the picture: runs the same rows through Spark alone, then draws both.

Runs only for `tidegate demo --plot`, after Tidegate's own run, on the same machine and with the same session
settings. Spark joins the same files on the same condition with its stream-stream join, and does nothing else;
Tidegate also computes the windows of the demo. Each batch is written as Parquet into a directory of its own,
as Tidegate does, so that the moment of every pair is known.

Spark is exact but has no goal, so an overloaded run may take long. It is stopped `grace_seconds` after the
last file has arrived; pairs that are not written by then count as not on time, which they are.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from tidegate.cli.demo.arrivals import CityArrivals, PreparedCity, prepare
from tidegate.cli.demo.city import City
from tidegate.cli.demo.flow import CORES, MEMORY, NEAR, ORDERS, STAY, TRACKS
from tidegate.cli.demo.judge import row_ticks
from tidegate.cli.demo.outcome import say
from tidegate.cli.demo.plot import Scene, Shares, draw
from tidegate.cli.demo.timeline import Ints, Timeline, pairs_by_tick, pairs_written, timeline
from tidegate.cli.quiet_console import standard_error_in
from tidegate.driver.session import embedded_session

if TYPE_CHECKING:
    from rich.console import Console

#: How long Spark may go on after the last row has arrived.
GRACE_SECONDS = 300.0


@dataclass(frozen=True)
class CityRun:
    """A finished run over a city."""

    prepared: PreparedCity
    out: Path
    #: When each batch was committed, and the rows it took, by batch.
    commits: Sequence[tuple[float, int]]
    #: When each second of the city arrived.
    moments: Sequence[float]


def compare(file: Path, city: City, ours: CityRun, goal_seconds: float, console: Console) -> None:
    """Run Spark alone on the same city, and draw both runs into `file`."""
    say(console, "The same rows through Spark's own join …")
    with TemporaryDirectory(prefix="tidegate-city-") as root:
        prepared = prepare(city, ours.prepared.seconds, Path(root))
        out = Path(root) / "out"
        with standard_error_in(Path(root) / "spark.log"):
            commits, moments = run_spark(
                prepared, city, out, Path(root) / "checkpoint", grace_seconds=GRACE_SECONDS
            )
        theirs = CityRun(prepared, out, commits, moments)
        ticks = row_ticks(prepared)
        exact = pairs_by_tick(prepared.orders, prepared.tracks, ticks, STAY, city.grid)
        spark, of_spark = _measured(theirs, exact, ticks, goal_seconds)
        tidegate, of_tidegate = _measured(ours, exact, ticks, goal_seconds)
    burst = (city.burst_factor, city.burst_first_seconds, city.burst_seconds)
    draw(file, spark, tidegate, Scene(goal_seconds, *burst, of_spark, of_tidegate))
    for name, run, shares in (("Spark alone", spark, of_spark), ("Tidegate", tidegate, of_tidegate)):
        worst = np.nanmax(run.latency_seconds)
        say(console, f"{name}: p95 latency up to {worst:.1f} s; results: {shares.text}")
    say(console, f"Picture:  {file}")


def _measured(
    run: CityRun, exact: Ints, ticks: tuple[Ints, Ints], goal_seconds: float
) -> tuple[Timeline, Shares]:
    """The curves of a run, and which share of the exact pairs it wrote within the goal, and at all."""
    pairs = pairs_written(run.out / NEAR)
    done = np.array([moment for moment, _ in run.commits])
    # Spark's last batch may have been written but not committed when it was stopped.
    known = pairs.batch < done.size
    pair_ticks = np.maximum(ticks[0][pairs.left], ticks[1][pairs.right])[known]
    curves = timeline(
        run.prepared.tick_rows,
        exact,
        pair_ticks,
        done[pairs.batch[known]],
        commits=run.commits,
        moments=run.moments,
        goal_seconds=goal_seconds,
    )
    # The first second is left out, as in the curves.
    in_time = float(np.nansum(curves.on_time * exact) / max(1, exact[1:].sum()))
    return curves, Shares(in_time, pair_ticks.size / max(1, int(exact.sum())))


_LOOK_SECONDS = 0.5

JOIN = """
    select o.order_id, t.track_id
    from orders o join tracks t
      on o.district = t.district and not t.occupied
     and t.ts between o.ts - interval {before} microseconds and o.ts + interval {after} microseconds
     and abs(o.cell div {width} - t.cell div {width}) + abs(o.cell % {width} - t.cell % {width}) <= 1
"""


def run_spark(
    prepared: PreparedCity, city: City, out: Path, checkpoint: Path, *, grace_seconds: float
) -> tuple[list[tuple[float, int]], list[float]]:
    """When each batch was committed and the rows it took, by batch; and when each second arrived."""
    session = embedded_session("tidegate demo: Spark alone", cores=CORES, memory=MEMORY)
    commits: dict[int, tuple[float, int]] = {}
    try:
        query = _started(session, prepared, city, out, checkpoint)
        arrivals = CityArrivals(prepared)
        arrivals.start()
        try:
            deadline = float("inf")
            while query.isActive and sum(rows for _, rows in commits.values()) < prepared.rows:
                commits |= _commits(query.recentProgress)
                if commits:
                    arrivals.go()
                if arrivals.finished and deadline == float("inf"):
                    deadline = time.monotonic() + grace_seconds
                if time.monotonic() > deadline:
                    break
                time.sleep(_LOOK_SECONDS)
        finally:
            arrivals.stop()
            query.stop()
    finally:
        session.stop()
    return [commits.get(batch, (0.0, 0)) for batch in range(max(commits, default=-1) + 1)], arrivals.moments


def _started(session: Any, prepared: PreparedCity, city: City, out: Path, checkpoint: Path) -> Any:
    for name, schema in (("orders", ORDERS), ("tracks", TRACKS)):
        frame = session.readStream.schema(schema).parquet(str(prepared.arrived(name)))
        frame.withWatermark("ts", f"{city.disorder_us} microseconds").createOrReplaceTempView(name)
    pairs = session.sql(
        JOIN.format(before=STAY.right_us, after=STAY.left_us, width=city.grid.width),
    )

    def write(frame: Any, batch: int) -> None:
        frame.write.mode("overwrite").parquet(str(out / NEAR / f"batch={batch}"))

    writer = pairs.writeStream.foreachBatch(write).option("checkpointLocation", str(checkpoint))
    return writer.trigger(processingTime="1 second").start()


def _commits(reports: Iterable[Mapping[str, Any]]) -> dict[int, tuple[float, int]]:
    """By batch: the moment of its commit and its rows. Triggers that ran no batch are left out."""
    commits = {}
    for report in reports:
        duration = report["durationMs"]
        if "addBatch" in duration:
            began = datetime.fromisoformat(report["timestamp"]).timestamp()
            commits[report["batchId"]] = (began + duration["triggerExecution"] / 1000, report["numInputRows"])
    return commits
