"""The events of Nexmark against the distributions of the reference generator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tidegate.errors import FlowError
from tidegate_lab.workloads.nexmark.events import CLOSING_MS, FIRST_ID, START_MS, Events
from tidegate_lab.workloads.nexmark.files import write
from tidegate_lab.workloads.nexmark.rows import STATES, table

EVENTS = Events(per_file=100_000)
#: Not the first file: there, too few people and auctions exist.
FILE = 3


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    return table(EVENTS, FILE)


def of_type(rows: pa.Table, kind: int, struct: str) -> dict[str, np.ndarray[Any, Any]]:
    found = rows.filter(pc.equal(rows["event_type"], kind))
    columns = pa.Table.from_struct_array(found[struct])
    return {name: columns[name].to_numpy() for name in columns.column_names} | {
        "date_time": found["date_time"].to_numpy()
    }


def test_a_cycle_of_fifty_events_has_one_person_three_auctions_and_then_bids(rows: pa.Table) -> None:
    types = rows["event_type"].to_numpy()
    assert types[:50].tolist() == [0, 1, 1, 1] + [2] * 46
    assert np.bincount(types).tolist() == [2_000, 6_000, 92_000]
    for struct, kind in (("person", 0), ("auction", 1), ("bid", 2)):
        assert rows[struct].is_valid().to_numpy().tolist() == (types == kind).tolist()


def test_event_time_follows_the_number_of_the_event_and_never_goes_back(rows: pa.Table) -> None:
    millis = rows["date_time"].to_numpy().astype("datetime64[ms]").astype(np.int64)
    assert millis[0] == START_MS + 30_000
    assert millis[-1] == START_MS + 39_999
    assert (np.diff(millis) >= 0).all()
    assert np.unique(np.diff(millis[::10])).tolist() == [1]


def test_ids_of_people_and_auctions_go_on_from_file_to_file(rows: pa.Table) -> None:
    people, auctions = of_type(rows, 0, "person"), of_type(rows, 1, "auction")
    assert people["person_id"].tolist() == list(range(FIRST_ID + 6_000, FIRST_ID + 8_000))
    assert auctions["auction_id"].tolist() == list(range(FIRST_ID + 18_000, FIRST_ID + 24_000))


def test_half_of_the_bids_are_for_the_first_of_the_last_hundred_auctions(rows: pa.Table) -> None:
    auction = of_type(rows, 2, "bid")["auction"] - FIRST_ID
    # Of the others, one of about 111 is the hot one by chance.
    assert np.mean(auction % 100 == 0) == pytest.approx(0.5 + 0.5 / 100, abs=0.006)
    last = np.repeat(np.arange(2_000) * 3 + 18_002, 46)
    cold = auction % 100 != 0
    back = (last - auction)[cold]
    assert back.min() == -10
    assert back.max() == 100
    assert np.mean(back) == pytest.approx(45, abs=1)


def test_three_quarters_of_the_bidders_and_sellers_are_the_hot_ones(rows: pa.Table) -> None:
    bidder = of_type(rows, 2, "bid")["bidder"] - FIRST_ID
    seller = of_type(rows, 1, "auction")["seller"] - FIRST_ID
    assert np.mean(bidder % 100 == 1) == pytest.approx(0.75 + 0.25 / 100, abs=0.006)
    assert np.mean(seller % 100 == 0) == pytest.approx(0.75 + 0.25 / 100, abs=0.02)
    last = np.repeat(np.arange(6_000, 8_000), 46)
    cold = bidder % 100 != 1
    back = (last - bidder)[cold]
    assert back.min() == -10
    assert back.max() == 999


def test_the_logarithm_of_a_price_is_uniform_over_six_decades(rows: pa.Table) -> None:
    price = np.sort(np.log10(of_type(rows, 2, "bid")["price"] / 100))
    uniform = np.linspace(0, 6, price.size)
    assert np.abs(price - uniform).max() < 0.05
    auctions = of_type(rows, 1, "auction")
    assert (auctions["reserve"] > auctions["initial_bid"]).all()


def test_auctions_are_open_until_as_many_others_have_come_as_may_be_in_flight(rows: pa.Table) -> None:
    auctions = of_type(rows, 1, "auction")
    open_ms = (auctions["expires"] - auctions["date_time"]).astype("timedelta64[ms]").astype(np.int64)
    # 100 auctions come with 1,666 events: 166 ms, and lengths are uniform up to twice that.
    assert open_ms.min() >= 1
    assert open_ms.max() in (331, 332, 333, 334)
    assert np.mean(open_ms) == pytest.approx(167, abs=5)
    assert np.bincount(auctions["category"])[10:].tolist() == pytest.approx([1_200] * 5, rel=0.1)


def test_texts_have_the_lengths_and_words_of_the_reference(rows: pa.Table) -> None:
    people, bids = of_type(rows, 0, "person"), of_type(rows, 2, "bid")
    assert set(people["state"]) == set(STATES.to_pylist())
    assert len(set(people["city"])) == 10
    sizes = 8 + sum(
        np.array([len(text) for text in people[name]])
        for name in ("name", "email_address", "credit_card", "city", "state", "extra")
    )
    assert np.mean(sizes) == pytest.approx(200, abs=3)
    lengths = np.array([len(text) for text in bids["extra"]])
    assert (lengths.min(), lengths.max()) == (54, 81)
    hot = np.isin(bids["channel"], ["Google", "Facebook", "Baidu", "Apple"])
    assert np.mean(hot) == pytest.approx(0.5, abs=0.01)
    numbered = np.array(["&channel_id=" in url for url in bids["url"][~hot]])
    assert np.mean(numbered) == pytest.approx(0.9, abs=0.02)
    assert len(set(bids["channel"])) > 9_000


def test_the_same_seed_gives_the_same_rows_and_another_one_others(rows: pa.Table) -> None:
    assert table(EVENTS, FILE).equals(rows)
    assert not table(Events(per_file=100_000, seed=8), FILE).equals(rows)


def test_event_time_runs_slower_at_a_higher_rate() -> None:
    fast = table(Events(per_file=1_000, per_second=100_000), 0)["date_time"].to_numpy()
    assert (fast[-1] - fast[0]).astype("timedelta64[ms]").astype(int) == 9


def test_only_the_last_file_ends_with_the_closing_events(tmp_path: Path) -> None:
    files = list(write(Events(per_file=500), tmp_path, 2))
    first, last = (pq.read_table(file) for file in files)
    assert (len(first), len(last)) == (500, 503)
    closing = last.slice(500)
    assert closing["event_type"].to_pylist() == [0, 1, 2]
    assert set(closing["date_time"].cast(pa.timestamp("ms", "UTC")).cast(pa.int64()).to_pylist()) == {
        CLOSING_MS
    }
    assert files[0].stat().st_mtime < files[1].stat().st_mtime
    assert pq.ParquetFile(files[0]).num_row_groups == 4


def test_events_that_outlast_the_closing_ones_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FlowError, match="until after the closing events"):
        list(write(Events(per_file=87_000_000, per_second=1_000), tmp_path, 1))


@pytest.mark.parametrize("settings", [{"per_file": 0}, {"per_second": 999}])
def test_settings_that_make_no_stream_are_refused(settings: dict[str, int]) -> None:
    with pytest.raises(FlowError, match="is too small for Nexmark"):
        Events(**settings)
