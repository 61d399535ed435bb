"""Which event is what, when, and about whom: the numbers behind Nexmark's events, for many events at once.

The reference is the generator of the Nexmark suite for Flink. Everything follows from the number of an event:

    event      0        1 … 3        4 … 49        50       51 … 53     …      a cycle of 50 events
    type       person   3 auctions   46 bids       person   3 auctions
    time       number / events a second, in whole milliseconds, never out of order

Keys are hot: half of the bids go to the first of the last hundred auctions, three quarters of them come from
the second of the last hundred people, three quarters of the auctions are of the first of these people. All
others are drawn among the auctions in flight and the active people, and a few that do not exist yet.

One thing differs on purpose: the reference adds the first id of a person twice to a bidder, so its bidders
are other people than its sellers; here they are the same people.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import FlowError

Ints = NDArray[np.int64]
PERSON, AUCTION, BID = 0, 1, 2
PEOPLE_A_CYCLE, AUCTIONS_A_CYCLE, BIDS_A_CYCLE = 1, 3, 46
CYCLE = PEOPLE_A_CYCLE + AUCTIONS_A_CYCLE + BIDS_A_CYCLE
FIRST_ID = 1000
FIRST_CATEGORY, CATEGORIES = 10, 5
#: One of so many auctions or people is hot.
HOT_ONE_OF = 100
#: The part of bids for a hot auction is 1 - 1/2, of auctions by a hot seller 1 - 1/4, of bids by a hot
#: bidder too.
HOT_AUCTIONS, HOT_SELLERS, HOT_BIDDERS = 2, 4, 4
AUCTIONS_IN_FLIGHT, ACTIVE_PEOPLE = 100, 1000
#: Keys drawn may be so far ahead of those that exist.
LEAD = 10
#: Event time of the first event, in milliseconds since the epoch: on the edge of a ten second window.
START_MS = 1_700_000_000_000
#: Event time of the closing events (`rows.closing`): long after all others.
CLOSING_MS = START_MS + 86_400_000
#: No other event is later than so long before them, and no window of theirs begins earlier.
MARGIN_MS = 60_000


@dataclass(frozen=True)
class Events:
    """A stream of events: how many a second of event time, how many in a file, and from which seed."""

    per_file: int = 500_000
    per_second: int = 10_000
    seed: int = 7

    def __post_init__(self) -> None:
        # Slower, an auction would be open longer than the queries' bound on its length.
        for name, least in (("per_file", 1), ("per_second", 1_000)):
            if getattr(self, name) < least:
                raise FlowError(
                    f"{name} is too small for Nexmark",
                    code="LAB_WORKLOAD_INVALID",
                    got=getattr(self, name),
                    do=f"Give at least {least}",
                )

    def rng(self, file: int) -> np.random.Generator:
        """Each file has its own, so that any file can be made by itself."""
        return np.random.default_rng([self.seed, file])

    def numbers(self, file: int) -> Ints:
        return np.arange(file * self.per_file, (file + 1) * self.per_file, dtype=np.int64)

    def times_ms(self, numbers: Ints) -> Ints:
        """Milliseconds since the epoch, rounded down twice as the reference does."""
        micros = (numbers * (1_000_000.0 / self.per_second)).astype(np.int64)
        return np.asarray(START_MS + micros // 1000)


def types_of(numbers: Ints) -> NDArray[np.int32]:
    offset = numbers % CYCLE
    past_people = (offset >= PEOPLE_A_CYCLE).astype(np.int32)
    return past_people + (offset >= PEOPLE_A_CYCLE + AUCTIONS_A_CYCLE).astype(np.int32)


def last_person(numbers: Ints) -> Ints:
    """The person of this event, or the last one before it; counted from 0."""
    return np.asarray(numbers // CYCLE * PEOPLE_A_CYCLE + np.minimum(numbers % CYCLE, PEOPLE_A_CYCLE - 1))


def last_auction(numbers: Ints) -> Ints:
    """The auction of this event, or the last one before it; counted from 0, -1 before the first."""
    offset = np.clip(numbers % CYCLE - PEOPLE_A_CYCLE, -1, AUCTIONS_A_CYCLE - 1)
    return np.asarray(numbers // CYCLE * AUCTIONS_A_CYCLE + offset)


def any_person(numbers: Ints, rng: np.random.Generator) -> Ints:
    """One of the active people, or of those who come next."""
    people = last_person(numbers) + 1
    active = np.minimum(people, ACTIVE_PEOPLE)
    return np.asarray(people - active + rng.integers(0, active + LEAD))


def any_auction(numbers: Ints, rng: np.random.Generator) -> Ints:
    """One of the auctions in flight, or of those that come next."""
    last = last_auction(numbers)
    oldest = np.maximum(last - AUCTIONS_IN_FLIGHT, 0)
    return np.asarray(oldest + rng.integers(0, last - oldest + 1 + LEAD))


def with_hot(hot: Ints, other: Ints, ratio: int, rng: np.random.Generator) -> Ints:
    """The hot key in all but one of `ratio` cases."""
    return np.where(rng.integers(0, ratio, hot.size) > 0, hot, other)


def sellers(numbers: Ints, rng: np.random.Generator) -> Ints:
    hot = last_person(numbers) // HOT_ONE_OF * HOT_ONE_OF
    return with_hot(hot, any_person(numbers, rng), HOT_SELLERS, rng) + FIRST_ID


def bidders(numbers: Ints, rng: np.random.Generator) -> Ints:
    """The second of the hundred is hot, so hot bidders are not hot sellers."""
    hot = last_person(numbers) // HOT_ONE_OF * HOT_ONE_OF + 1
    return with_hot(hot, any_person(numbers, rng), HOT_BIDDERS, rng) + FIRST_ID


def auctions_bid_for(numbers: Ints, rng: np.random.Generator) -> Ints:
    hot = last_auction(numbers) // HOT_ONE_OF * HOT_ONE_OF
    return with_hot(hot, any_auction(numbers, rng), HOT_AUCTIONS, rng) + FIRST_ID


def prices(count: int, rng: np.random.Generator) -> Ints:
    """Cents: the logarithm is uniform over six decades."""
    return np.rint(10.0 ** (rng.random(count) * 6.0) * 100.0).astype(np.int64)


def expiries_ms(events: Events, numbers: Ints, rng: np.random.Generator) -> Ints:
    """An auction is open, on average, until as many others as may be in flight have come."""
    now = events.times_ms(numbers)
    horizon = events.times_ms(numbers + AUCTIONS_IN_FLIGHT * CYCLE // AUCTIONS_A_CYCLE) - now
    return np.asarray(now + 1 + rng.integers(0, np.maximum(2 * horizon, 1)))
