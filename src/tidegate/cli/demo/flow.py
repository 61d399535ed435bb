"""The flow of `tidegate demo`: orders with the free cabs near them, and sums by district.

    orders ─┬─▶ join ──────────▶ near: each order with the free cabs a step away, 20 s before or after it
    tracks ─┘    ▲
    orders ──────┴─▶ window ───▶ busy: orders and fares of each district, every 5 s

Reads the two directories that fill up while the query runs, and writes Parquet. Leaving the context always
stops the query and the session.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tidegate as tg
from tidegate.cli.demo.answers import Stay
from tidegate.cli.demo.arrivals import PreparedCity
from tidegate.cli.demo.city import City
from tidegate.driver.session import embedded_session
from tidegate.driver.streaming_query import StreamingQuery

ORDERS = "order_id long, ts timestamp, cell long, district long, fare double"
TRACKS = "track_id long, ts timestamp, cell long, district long, cab long, occupied boolean"

#: Small enough to leave memory for other processes on a small machine.
CORES, MEMORY = 2, "4g"
NEAR, BUSY = "near", "busy"
#: How long orders and tracks stay joinable.
STAY = Stay(left_us=20_000_000, right_us=20_000_000)
WINDOW_US = 5_000_000
#: The longest run of missing windows under overload.
MAX_GAP = 3


@contextmanager
def city_query(
    prepared: PreparedCity, city: City, *, out: Path, checkpoint: Path, goal_seconds: float
) -> Iterator[StreamingQuery]:
    """The running query; rows arrive when the files do."""
    session = embedded_session("tidegate demo", cores=CORES, memory=MEMORY)
    try:
        near, busy = _flow(session, prepared, city)
        query = tg.start(
            near.write_to("parquet", str(out / NEAR), name=NEAR),
            busy.write_to("parquet", str(out / BUSY), name=BUSY, max_gap=MAX_GAP),
            checkpoint=str(checkpoint),
            trigger="1 second",
            goal=tg.Goal(latency=f"{round(goal_seconds * 1000)} milliseconds"),
            shed=tg.Shed(repair="idle"),
            seed=city.seed,
        )
        try:
            yield query
        finally:
            query.stop()
    finally:
        session.stop()


def _flow(session: Any, prepared: PreparedCity, city: City) -> tuple[tg.Stream, tg.Stream]:
    orders, tracks = (
        tg.stream(
            _arriving(session, prepared.arrived(name), schema),
            time="ts",
            name=name,
            lateness=f"{city.disorder_us} microseconds",
        )
        for name, schema in (("orders", ORDERS), ("tracks", TRACKS))
    )
    within = tg.between(f"-{STAY.right_us} microseconds", f"{STAY.left_us} microseconds")
    close = tg.pairwise(city.grid, "cell")
    near = orders.join(tracks.filter("not occupied"), on=["district", close], within=within)
    every = orders.window(f"{WINDOW_US} microseconds", by=["district"])
    return near, every.agg(orders="count(*)", fares="sum(fare)")


def _arriving(session: Any, directory: Path, schema: str) -> Any:
    return session.readStream.schema(schema).parquet(str(directory))
