"""The queries as a user of Tidegate writes them: one source, filtered into people, auctions and bids."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import tidegate as tg
from tidegate_lab.bench.nexmark.queries.catalogue import (
    AUCTION,
    AUCTION_OPEN_MAX,
    CATEGORY,
    EUROS,
    LATENESS,
    QUERIES,
    SLIDE,
    SOME,
    STATES,
    WINDOW,
    WINDOW_MS,
)


@dataclass(frozen=True)
class Market:
    """The three streams of one source."""

    people: tg.Stream
    auctions: tg.Stream
    bids: tg.Stream

    @classmethod
    def of(cls, frame: DataFrame) -> Market:
        events = tg.stream(frame, name="events", time="date_time", lateness=LATENESS)
        return cls(
            people=events.filter("event_type = 0").select("date_time", "person.*"),
            auctions=events.filter("event_type = 1").select("date_time", "auction.*"),
            bids=events.filter("event_type = 2").select("date_time", "bid.*"),
        )


def flow(name: str, frame: DataFrame) -> tg.Stream:
    """The result of a query over the events of a data frame."""
    return _FLOWS[name](Market.of(frame)).select(*QUERIES[name].columns)


def _q0(market: Market) -> tg.Stream:
    return market.bids


def _q1(market: Market) -> tg.Stream:
    return market.bids.with_column("price", F.expr(f"cast({EUROS} * price as decimal(23, 3))"))


def _q2(market: Market) -> tg.Stream:
    return market.bids.filter(f"auction % {SOME} = 0")


def _q3(market: Market) -> tg.Stream:
    auctions = market.auctions.filter(f"category = {CATEGORY}")
    return auctions.join(
        market.people.filter(F.col("state").isin(*STATES)), {"seller": "person_id"}, within=tg.UNBOUNDED
    )


def _open_auctions(market: Market) -> tg.Stream:
    """Bids, each with the auction that was open when it came."""
    return market.bids.join(
        market.auctions,
        {"auction": "auction_id"},
        within=tg.between(f"-{AUCTION_OPEN_MAX}", "0 seconds"),
        where="date_time <= expires",
    )


def _q4(market: Market) -> tg.Stream:
    final = _open_auctions(market).window(WINDOW, by=["auction", "category"]).agg(final=F.max("price"))
    return final.window(WINDOW, by="category").agg(average=F.avg("final"))


def _q5(market: Market) -> tg.Stream:
    counts = market.bids.window(WINDOW, slide=SLIDE, by="auction").agg(bids=F.count("*"))
    # Each of these windows holds the results of one window of the counts: their time is its start.
    most = counts.window(SLIDE).agg(most=F.max("bids"))
    return counts.join(most, "window_start", within="0 seconds", where="bids = most")


def _q7(market: Market) -> tg.Stream:
    highest = market.bids.window(WINDOW).agg(price=F.max("price"))
    return market.bids.join(highest, "price", within=tg.same_window(WINDOW))


def _q8(market: Market) -> tg.Stream:
    joined = market.people.join(
        market.auctions, {"person_id": "seller"}, within=tg.same_window(WINDOW), how="left_semi"
    )
    return joined.with_column("window_start", F.window("date_time", WINDOW)["start"])


def _q9(market: Market) -> tg.Stream:
    # The price first, then the earlier time: both in one number, because windows cannot go by a struct.
    rank = f"price * {WINDOW_MS} + {WINDOW_MS - 1} - unix_millis(date_time) % {WINDOW_MS}"
    ranked = _open_auctions(market).with_column("rank", F.expr(rank))
    best = {name: F.max_by(name, "rank") for name in ("bidder", "price", "date_time", "extra")}
    same = {name: F.any_value(name) for name in AUCTION}
    return ranked.window(WINDOW, by="auction").agg(**best, **same)


def _q20(market: Market) -> tg.Stream:
    auctions = market.auctions.filter(f"category = {CATEGORY}").drop("extra")
    return market.bids.join(auctions, {"auction": "auction_id"}, within=tg.UNBOUNDED)


_FLOWS: dict[str, Callable[[Market], tg.Stream]] = {
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
