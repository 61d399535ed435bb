from __future__ import annotations

from pathlib import Path
from time import monotonic, sleep

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidegate.cli.demo.arrivals import CityArrivals, PreparedCity, prepare, row_waits, ticks_taken
from tidegate.cli.demo.city import City


@pytest.fixture
def prepared(tmp_path: Path) -> PreparedCity:
    return prepare(City(orders_per_second=50, tracks_per_second=80, cells=20), 3, tmp_path)


def wait_for(feed: CityArrivals) -> None:
    deadline = monotonic() + 10
    while not feed.finished:
        assert monotonic() < deadline, "the files did not arrive"
        sleep(0.01)


def test_nothing_has_arrived_before_the_start(prepared: PreparedCity) -> None:
    assert list(prepared.arrived("orders").iterdir()) == []
    assert prepared.rows > 200


def test_every_row_arrives_once_and_nothing_is_left_waiting(prepared: PreparedCity) -> None:
    feed = CityArrivals(prepared, seconds_per_tick=0.0)
    feed.start()
    feed.go()
    wait_for(feed)
    feed.stop()
    orders = pq.read_table(prepared.arrived("orders"))
    tracks = pq.read_table(prepared.arrived("tracks"))
    assert orders["order_id"].to_pylist() == list(range(len(prepared.orders.key)))
    assert tracks.num_rows == len(prepared.tracks.key)
    assert list((prepared.root / "waiting" / "orders").iterdir()) == []


def test_the_known_rows_are_those_in_the_files(prepared: PreparedCity) -> None:
    waiting = pq.read_table(prepared.root / "waiting" / "tracks")
    np.testing.assert_array_equal(waiting["cell"].to_numpy(), prepared.tracks.key)
    np.testing.assert_array_equal(waiting["ts"].cast(pa.int64()).to_numpy(), prepared.tracks.time_us)
    np.testing.assert_array_equal(waiting["occupied"].to_numpy(), ~prepared.tracks.counts)


def test_times_are_instants_in_utc(prepared: PreparedCity) -> None:
    schema = pq.read_schema(prepared.file("orders", 0)[0])
    assert schema.field("ts").type == pa.timestamp("us", tz="UTC")


def test_only_the_first_tick_comes_before_the_word_is_given(prepared: PreparedCity) -> None:
    feed = CityArrivals(prepared, seconds_per_tick=0.0)
    feed.start()
    sleep(0.1)
    assert feed.arrived == 1
    assert len(list(prepared.arrived("tracks").iterdir())) == 1
    feed.stop()
    assert feed.arrived == 1


def test_no_file_arrives_after_a_stop(prepared: PreparedCity) -> None:
    feed = CityArrivals(prepared, seconds_per_tick=30.0)
    feed.start()
    feed.go()
    feed.stop()
    assert not feed.finished
    assert len(list(prepared.arrived("tracks").iterdir())) == 1


def test_rows_of_a_tick_are_those_of_both_streams(prepared: PreparedCity) -> None:
    assert prepared.tick_rows.sum() == prepared.rows
    first = sum(pq.read_table(waiting).num_rows for waiting, _ in prepared.files(0))
    assert prepared.tick_rows[0] == first
    assert len(prepared.fares) == len(prepared.orders.key)


def test_the_ticks_of_a_batch_follow_from_its_rows() -> None:
    rows = np.array([5, 0, 10, 3])
    assert ticks_taken(rows, 0, 5) == ((0, 5),)
    assert [(tick, count) for tick, count in ticks_taken(rows, 5, 11) if count] == [(2, 10), (3, 1)]
    assert ticks_taken(rows, 7, 0) == ()
    assert ticks_taken(rows, 16, 99)[-1] == (3, 2)


def test_waits_are_from_arrival_to_commit_without_the_cold_first_tick() -> None:
    ticks, seconds, rows = row_waits(np.array([5, 10, 3]), [100.0, 101.0, 102.0], [(101.5, 5), (104.0, 13)])
    assert ticks.tolist() == [1, 2]
    assert seconds.tolist() == [3.0, 2.0]
    assert rows.tolist() == [10, 3]
