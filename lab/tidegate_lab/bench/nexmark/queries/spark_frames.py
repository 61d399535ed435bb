"""The queries as a user of Spark's Structured Streaming writes them, in append mode."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidegate_lab.bench.nexmark.queries.catalogue import (
    AUCTION_OPEN_MAX,
    CATEGORY,
    EUROS,
    LATENESS,
    QUERIES,
    SLIDE,
    SOME,
    STATES,
    WINDOW,
)


@dataclass(frozen=True)
class Tables:
    """The three streams of one source, with Spark's watermark."""

    people: DataFrame
    auctions: DataFrame
    bids: DataFrame

    @classmethod
    def of(cls, frame: DataFrame) -> Tables:
        events = frame.withWatermark("date_time", LATENESS)
        return cls(
            people=events.filter("event_type = 0").select("date_time", "person.*"),
            auctions=events.filter("event_type = 1").select("date_time", "auction.*"),
            bids=events.filter("event_type = 2").select("date_time", "bid.*"),
        )


def result(name: str, frame: DataFrame) -> DataFrame:
    """The result of a query over the events of a streaming data frame."""
    return _FRAMES[name](Tables.of(frame)).select(*QUERIES[name].columns)


def _q0(tables: Tables) -> DataFrame:
    return tables.bids


def _q1(tables: Tables) -> DataFrame:
    return tables.bids.withColumn("price", F.expr(f"cast({EUROS} * price as decimal(23, 3))"))


def _q2(tables: Tables) -> DataFrame:
    return tables.bids.filter(f"auction % {SOME} = 0")


def _q3(tables: Tables) -> DataFrame:
    auctions = tables.auctions.filter(f"category = {CATEGORY}")
    people = tables.people.filter(F.col("state").isin(*STATES))
    return auctions.join(people, F.expr("seller = person_id"))


def _open_auctions(tables: Tables) -> DataFrame:
    """Bids, each with the auction that was open when it came."""
    auctions = tables.auctions.withColumnRenamed("date_time", "opened").drop("extra")
    open_then = f"""auction = auction_id AND date_time <= expires
        AND date_time BETWEEN opened AND opened + INTERVAL {AUCTION_OPEN_MAX}"""
    return tables.bids.join(auctions, F.expr(open_then))


def _q4(tables: Tables) -> DataFrame:
    window = F.window("date_time", WINDOW).alias("window")
    final = _open_auctions(tables).groupBy(window, "auction", "category").agg(F.max("price").alias("final"))
    averages = final.groupBy("window", "category").agg(F.avg("final").alias("average"))
    return averages.withColumn("window_start", F.col("window.start"))


def _q5(tables: Tables) -> DataFrame:
    counts = tables.bids.groupBy(F.window("date_time", WINDOW, SLIDE).alias("window"), "auction")
    counted = counts.agg(F.count("*").alias("bids"))
    # One pass instead of a join of the counts with their maximum: Spark would count twice for that.
    most = counted.groupBy("window").agg(
        F.max("bids").alias("most"), F.collect_list(F.struct("auction", "bids")).alias("all")
    )
    return most.select(
        "window", F.explode(F.expr("filter(all, one -> one.bids = most)")).alias("one")
    ).select(F.col("window.start").alias("window_start"), "one.*")


def _q7(tables: Tables) -> DataFrame:
    windows = tables.bids.groupBy(F.window("date_time", WINDOW).alias("window"))
    # The last microsecond of the window: a time that Spark's watermark goes with.
    highest = windows.agg(F.max("price").alias("highest")).select(
        F.window_time("window").alias("at"), "highest"
    )
    inside = "date_time BETWEEN at - INTERVAL '9.999999' SECOND AND at"
    return tables.bids.join(highest, F.expr(f"price = highest AND {inside}"))


def _q8(tables: Tables) -> DataFrame:
    people = tables.people.withColumn("window", F.window("date_time", WINDOW))
    sellers = tables.auctions.select(F.window("date_time", WINDOW).alias("of"), "seller")
    joined = people.join(sellers, F.expr("window = of AND person_id = seller"), "left_semi")
    return joined.withColumn("window_start", F.col("window.start"))


def _q9(tables: Tables) -> DataFrame:
    columns = [name for name in QUERIES["q9"].columns if name not in ("window_start", "auction")]
    best = F.max_by(F.struct(*columns), F.struct("price", -F.unix_millis("date_time"), "bidder"))
    window = F.window("date_time", WINDOW).alias("window")
    found = _open_auctions(tables).groupBy(window, "auction").agg(best.alias("best"))
    return found.select(F.col("window.start").alias("window_start"), "auction", "best.*")


def _q20(tables: Tables) -> DataFrame:
    auctions = tables.auctions.filter(f"category = {CATEGORY}").drop("date_time", "extra")
    return tables.bids.join(auctions, F.expr("auction = auction_id"))


_FRAMES: dict[str, Callable[[Tables], DataFrame]] = {
    "q0": _q0,
    "q1": _q1,
    "q2": _q2,
    "q3": _q3,
    "q4": _q4,
    "q5": _q5,
    "q7": _q7,
    "q8": _q8,
    "q9": _q9,
    "q20": _q20,
}
