"""The queries as a user of Tidegate writes them: one source, filtered into people, auctions and bids."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

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

    @cached_property
    def bids_in_time(self) -> tg.Stream:
        """Bids, each with the auction that was open when it came."""
        return self.bids.join(
            self.auctions,
            {"auction": "auction_id"},
            within=tg.between(f"-{AUCTION_OPEN_MAX}", "0 seconds"),
            where="date_time <= expires",
            name="bids_in_time",
        )


def flow(name: str, market: Market) -> tg.Stream:
    """The result of a query."""
    return _FLOWS[name](market).select(*QUERIES[name].columns)


def _q0(market: Market) -> tg.Stream:
    return market.bids


def _q1(market: Market) -> tg.Stream:
    return market.bids.with_column("price", F.expr(f"cast({EUROS} * price as decimal(23, 3))"))


def _q2(market: Market) -> tg.Stream:
    return market.bids.filter(f"auction % {SOME} = 0")


def _q3(market: Market) -> tg.Stream:
    auctions = market.auctions.filter(f"category = {CATEGORY}")
    people = market.people.filter(F.col("state").isin(*STATES))
    return auctions.join(people, {"seller": "person_id"}, within=tg.UNBOUNDED, name="sellers")


def _q4(market: Market) -> tg.Stream:
    windows = market.bids_in_time.window(WINDOW, by=["auction", "category"], name="final_prices")
    final = windows.agg(final=F.max("price"))
    return final.window(WINDOW, by="category", name="average_prices").agg(average=F.avg("final"))


def _q5(market: Market) -> tg.Stream:
    windows = market.bids.window(WINDOW, slide=SLIDE, by="auction", name="bid_counts")
    counts = windows.agg(bids=F.count("*"))
    # Each of these windows holds the results of one window of the counts: their time is its start.
    most = counts.window(SLIDE, name="most_bids").agg(most=F.max("bids"))
    return counts.join(most, "window_start", within="0 seconds", where="bids = most", name="hot_auctions")


def _q7(market: Market) -> tg.Stream:
    highest = market.bids.window(WINDOW, name="highest_prices").agg(price=F.max("price"))
    return market.bids.join(highest, "price", within=tg.same_window(WINDOW), name="highest_bids")


def _q8(market: Market) -> tg.Stream:
    sellers = market.people.join(
        market.auctions,
        {"person_id": "seller"},
        within=tg.same_window(WINDOW),
        how="left_semi",
        name="new_sellers",
    )
    return sellers.with_column("window_start", F.window("date_time", WINDOW)["start"])


def _q9(market: Market) -> tg.Stream:
    # The price first, then the earlier time: both in one number, because windows cannot go by a struct.
    rank = f"price * {WINDOW_MS} + {WINDOW_MS - 1} - unix_millis(date_time) % {WINDOW_MS}"
    ranked = market.bids_in_time.with_column("rank", F.expr(rank))
    best = {name: F.max_by(name, "rank") for name in ("bidder", "price", "date_time", "extra")}
    same = {name: F.any_value(name) for name in AUCTION}
    return ranked.window(WINDOW, by="auction", name="winning_bids").agg(**best, **same)


def _q20(market: Market) -> tg.Stream:
    auctions = market.auctions.filter(f"category = {CATEGORY}").drop("extra")
    return market.bids.join(auctions, {"auction": "auction_id"}, within=tg.UNBOUNDED, name="of_category")


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
