"""Which queries there are, what their results look like, and the bounds that all engines share.

    q0   pass the bids through                          q5   auctions with the most bids, 10 s every 2 s
    q1   convert prices of bids                         q7   highest bids of each 10 s
    q2   bids for some auctions                         q8   new people who open auctions in the same 10 s
    q3   sellers of three states and their auctions     q9   winning bid of each auction, by 10 s of the bids
    q4   average winning price of each category,        q20  bids with their auctions, of one category
         by 10 s of the bids

In the reference, q4 and q9 correct earlier results for ever; here they have windows, so that every result is
final. q7 and q8 are about tumbling windows, without the edge that the reference counts twice. q3 and q20 join
the full history, as in the reference.
"""

from __future__ import annotations

from dataclasses import dataclass

#: Bids are for auctions that are open, and none is open longer than this (the generator sees to it).
AUCTION_OPEN_MAX = "10 seconds"
#: How far behind the newest event another may be, as in the reference.
LATENESS = "4 seconds"
WINDOW, SLIDE = "10 seconds", "2 seconds"
WINDOW_MS = 10_000
EUROS = "0.908"
#: q2 takes the auctions whose number this divides.
SOME = 123
CATEGORY = 10
STATES = ("OR", "ID", "CA")


@dataclass(frozen=True)
class Query:
    """One query: the columns of its result in order, with the types by which they are compared."""

    name: str
    columns: dict[str, str]
    #: Keeps rows or aggregates from one batch to the next.
    stateful: bool = True

    @property
    def time(self) -> str | None:
        """The column that says when the row, or its window, was."""
        return next((name for name in ("window_start", "date_time") if name in self.columns), None)


_BID = {"auction": "bigint", "bidder": "bigint", "price": "bigint"}
_TIMED = {"date_time": "timestamp", "extra": "varchar"}
AUCTION = {
    "item_name": "varchar",
    "description": "varchar",
    "initial_bid": "bigint",
    "reserve": "bigint",
    "expires": "timestamp",
    "seller": "bigint",
    "category": "bigint",
}

QUERIES = {
    query.name: query
    for query in (
        Query("q0", {**_BID, **_TIMED}, stateful=False),
        Query("q1", {**_BID, "price": "decimal(23,3)", **_TIMED}, stateful=False),
        Query("q2", {"auction": "bigint", "price": "bigint"}, stateful=False),
        Query("q3", {"name": "varchar", "city": "varchar", "state": "varchar", "auction_id": "bigint"}),
        Query("q4", {"window_start": "timestamp", "category": "bigint", "average": "double"}),
        Query("q5", {"window_start": "timestamp", "auction": "bigint", "bids": "bigint"}),
        Query("q7", {**_BID, **_TIMED}),
        Query("q8", {"person_id": "bigint", "name": "varchar", "window_start": "timestamp"}),
        Query("q9", {"window_start": "timestamp", **_BID, **_TIMED, **AUCTION}),
        Query("q20", {**_BID, "channel": "varchar", "url": "varchar", **_TIMED, **AUCTION}),
    )
}
STATEFUL = tuple(name for name, query in QUERIES.items() if query.stateful)
