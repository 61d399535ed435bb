"""The Spark half of `tidegate demo`: a made-up city's orders, each with the free cabs that were near.

Reads the two directories that fill up while the query runs, joins them and writes parquet. Leaving the
context stops the query and the session, whatever happened inside.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import tidegate as tg
from tidegate.papers.arrivals import Prepared
from tidegate.papers.partners import Stay
from tidegate.spark.query import Query
from tidegate.spark.session import embedded_session

_ORDERS = "order_id long, ts timestamp, cell long, fare double"
_TRACKS = "track_id long, ts timestamp, cell long, cab long, occupied boolean"

#: The embedded Spark must leave room for others on a small machine.
CORES, MEMORY = 2, "4g"


@contextmanager
def city_query(
    prepared: Prepared, *, out: Path, checkpoint: Path, lateness_us: int, stay: Stay, seed: int
) -> Iterator[Query]:
    """The running query; rows arrive when the files do."""
    session = embedded_session("tidegate demo", cores=CORES, memory=MEMORY)
    try:
        query = tg.start(
            _near(session, prepared, lateness_us, stay).write_to("parquet", str(out), name="near"),
            checkpoint=str(checkpoint),
            trigger="1 second",
            seed=seed,
        )
        try:
            yield query
        finally:
            query.stop()
    finally:
        session.stop()


def _near(session: SparkSession, prepared: Prepared, lateness_us: int, stay: Stay) -> tg.Stream:
    """Each order with every free cab seen in its cell close in time, or with none."""
    lateness = f"{lateness_us} microseconds"
    orders = tg.stream(
        _arriving(session, prepared.arrived("orders"), _ORDERS), time="ts", name="orders", lateness=lateness
    )
    tracks = tg.stream(
        _arriving(session, prepared.arrived("tracks"), _TRACKS), time="ts", name="tracks", lateness=lateness
    )
    within = (f"{stay.left_us} microseconds", f"{stay.right_us} microseconds")
    return orders.join(tracks.filter("not occupied"), on="cell", within=within, how="left")


def _arriving(session: SparkSession, directory: Path, schema: str) -> DataFrame:
    return session.readStream.schema(schema).parquet(str(directory))
