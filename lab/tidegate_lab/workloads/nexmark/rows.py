"""The columns of people, auctions and bids, and the table of one file.

A row is one event, as a topic with three kinds of messages would deliver it: its type, its time, and three
structs of which two are null.

    event_type  date_time                person           auction          bid
    0           2023-11-14 22:13:20.000  {person_id, …}   null             null
    1           2023-11-14 22:13:20.000  null             {auction_id, …}  null
    2           2023-11-14 22:13:20.000  null             null             {auction, bidder, …}
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tidegate_lab.workloads.nexmark import events as nexmark
from tidegate_lab.workloads.nexmark.events import AUCTION, BID, CLOSING_MS, CYCLE, PERSON, Events, Ints
from tidegate_lab.workloads.nexmark.texts import card_numbers, extras, lengths_of, one_of, words

STATES = pa.array(["AZ", "CA", "ID", "OR", "WA", "WY"])
_CITIES = "Phoenix|Los Angeles|San Francisco|Boise|Portland|Bend|Redmond|Seattle|Kent|Cheyenne"
CITIES = pa.array(_CITIES.split("|"))
FIRST_NAMES = pa.array(
    ["Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter"]
)
LAST_NAMES = pa.array(
    ["Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris"]
)
HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
CHANNELS = 10_000
#: Bytes of an event on average, by the reference's way of counting.
PERSON_BYTES, AUCTION_BYTES, BID_BYTES = 200, 500, 100
#: Bytes of the numbers of an event, by the same way.
_PERSON_NUMBERS, _AUCTION_NUMBERS, _BID_NUMBERS = 8, 48, 32
#: A category that no auction has.
CATEGORIES_END = nexmark.FIRST_CATEGORY + nexmark.CATEGORIES

_TIME = "timestamp"
SPARK_SCHEMA = (
    f"event_type int, date_time {_TIME}, "
    "person struct<person_id: bigint, name: string, email_address: string, credit_card: string, "
    "city: string, state: string, extra: string>, "
    "auction struct<auction_id: bigint, item_name: string, description: string, initial_bid: bigint, "
    f"reserve: bigint, expires: {_TIME}, seller: bigint, category: bigint, extra: string>, "
    "bid struct<auction: bigint, bidder: bigint, price: bigint, channel: string, url: string, extra: string>"
)


def table(events: Events, file: int) -> pa.Table:
    """The events of one file."""
    rng, numbers = events.rng(file), events.numbers(file)
    types, times = nexmark.types_of(numbers), events.times_ms(numbers)
    parts = {
        "person": (PERSON, people(numbers[types == PERSON], rng)),
        "auction": (AUCTION, auctions(events, numbers[types == AUCTION], rng)),
        "bid": (BID, bids(numbers[types == BID], rng)),
    }
    columns = {"event_type": pa.array(types), "date_time": timestamps(times)}
    return pa.table(
        {**columns, **{name: _spread(rows, types == kind) for name, (kind, rows) in parts.items()}}
    )


def closing() -> pa.Table:
    """A person, an auction and a bid long after all others, which have nothing to do with each other.

    They move every watermark past every window, so that an engine that only goes by the input gives the same
    windows as one that knows that the input ended. Each stream needs its own, because an engine may filter
    the events before it looks at their times.
    """
    rows = table(Events(per_file=CYCLE), 0)
    types = rows["event_type"].to_numpy()
    one_each = rows.take([int(np.argmax(types == kind)) for kind in (PERSON, AUCTION, BID)])
    given = {"person_id": -1, "auction_id": -1, "seller": -2, "auction": -2, "category": CATEGORIES_END}
    columns = {"event_type": one_each["event_type"], "date_time": timestamps(np.full(3, CLOSING_MS))}
    for name in ("person", "auction", "bid"):
        structs = [
            row and {key: given.get(key, value) for key, value in row.items()}
            for row in one_each[name].to_pylist()
        ]
        columns[name] = pa.array(structs, rows.schema.field(name).type)
    return pa.table(columns)


def people(numbers: Ints, rng: np.random.Generator) -> dict[str, pa.Array]:
    count = numbers.size
    name = _joined(one_of(FIRST_NAMES, count, rng), one_of(LAST_NAMES, count, rng), between=" ")
    email = _joined(words(count, 7, rng), words(count, 5, rng), between="@", end=".com")
    card, city, state = card_numbers(count, rng), one_of(CITIES, count, rng), one_of(STATES, count, rng)
    taken = _PERSON_NUMBERS + lengths_of(name, email, card, city, state)
    return {
        "person_id": pa.array(nexmark.last_person(numbers) + nexmark.FIRST_ID),
        "name": name,
        "email_address": email,
        "credit_card": card,
        "city": city,
        "state": state,
        "extra": extras(taken, PERSON_BYTES, rng),
    }


def auctions(events: Events, numbers: Ints, rng: np.random.Generator) -> dict[str, pa.Array]:
    count = numbers.size
    name, description = words(count, 20, rng), words(count, 100, rng)
    first = nexmark.prices(count, rng)
    categories = nexmark.FIRST_CATEGORY + rng.integers(0, nexmark.CATEGORIES, count)
    return {
        "auction_id": pa.array(nexmark.last_auction(numbers) + nexmark.FIRST_ID),
        "item_name": name,
        "description": description,
        "initial_bid": pa.array(first),
        "reserve": pa.array(first + nexmark.prices(count, rng)),
        "expires": timestamps(nexmark.expiries_ms(events, numbers, rng)),
        "seller": pa.array(nexmark.sellers(numbers, rng)),
        "category": pa.array(categories),
        "extra": extras(_AUCTION_NUMBERS + lengths_of(name, description), AUCTION_BYTES, rng),
    }


def bids(numbers: Ints, rng: np.random.Generator) -> dict[str, pa.Array]:
    count = numbers.size
    # Half of the bids come through one of the hot channels.
    hot = rng.integers(0, 2, count) > 0
    channel = np.where(hot, rng.integers(0, len(HOT_CHANNELS), count), rng.integers(0, CHANNELS, count))
    channel = pa.array(np.where(hot, channel, channel + len(HOT_CHANNELS)))
    names, urls = _channels()
    return {
        "auction": pa.array(nexmark.auctions_bid_for(numbers, rng)),
        "bidder": pa.array(nexmark.bidders(numbers, rng)),
        "price": pa.array(nexmark.prices(count, rng)),
        "channel": names.take(channel),
        "url": urls.take(channel),
        "extra": extras(np.full(count, _BID_NUMBERS), BID_BYTES, rng),
    }


@lru_cache(maxsize=1)
def _channels() -> tuple[pa.Array, pa.Array]:
    """Names and addresses of the hot channels, then of all others; the same in every run."""
    rng = np.random.default_rng(1)
    count = len(HOT_CHANNELS) + CHANNELS
    paths = [words(count, 5, rng, special="_") for _ in range(3)]
    urls = pc.binary_join_element_wise(
        pa.repeat("https://www.nexmark.com", count), *paths, pa.repeat("item.htm?query=1", count), "/"
    )
    numbered = pa.array([""] * len(HOT_CHANNELS) + [f"&channel_id={_reversed(i)}" for i in range(CHANNELS)])
    # One of ten of the others has no number in its address.
    ends = pc.if_else(pa.array(rng.integers(0, 10, count) > 0), numbered, "")
    names = pa.array([*HOT_CHANNELS, *(f"channel-{i}" for i in range(CHANNELS))])
    return names, _joined(urls, ends)


def _reversed(number: int) -> int:
    """The 32 bits in the opposite order, as a signed number without its sign."""
    back = int(f"{number:032b}"[::-1], 2)
    return back if back < 1 << 31 else (1 << 32) - back


def _joined(*columns: pa.Array, between: str = "", end: str = "") -> pa.Array:
    found = pc.binary_join_element_wise(*columns, between)
    return pc.binary_join_element_wise(found, pa.repeat(end, len(found)), "") if end else found


def timestamps(millis: Ints) -> pa.Array:
    return pa.array(millis * 1000, pa.timestamp("us", tz="UTC"))


def _spread(rows: dict[str, pa.Array], present: NDArray[np.bool_]) -> pa.Array:
    """A struct column of the whole table: null in the rows of other types."""
    place = np.where(present, np.cumsum(present) - 1, 0)
    taken = pa.array(place, mask=~present)
    columns = [column.take(taken) for column in rows.values()]
    return pa.StructArray.from_arrays(columns, list(rows), mask=pa.array(~present))
