"""The demo's join by Spark alone: the same files and the same condition through Spark's stream-stream join.

Runs only for `tidegate demo --plot`, after Tidegate's own run, on the same machine and with the same session
settings. Spark computes the join alone; Tidegate also computes the windows of the demo. Each batch is written
as Parquet into a directory of its own, as Tidegate does, so that the moment of every pair is known.

Spark is exact but has no goal, so an overloaded run may take long. It is stopped `grace_seconds` after the
last file has arrived; pairs that are not written by then count as not on time, which they are.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from tidegate.cli.demo.arrivals import CityArrivals, PreparedCity
from tidegate.cli.demo.city import City
from tidegate.cli.demo.flow import CORES, MEMORY, NEAR, ORDERS, STAY, TRACKS
from tidegate.driver.session import embedded_session

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
