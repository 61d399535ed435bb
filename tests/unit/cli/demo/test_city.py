from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tidegate.cli.demo.city import City, Tick, burst_at, ticks
from tidegate.errors import FlowError

QUIET = City(orders_per_second=200, tracks_per_second=600, cells=100, burst_factor=1.0)


def column(drawn: list[Tick], stream: str, name: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    joined: np.ndarray[tuple[int], np.dtype[np.int64]] = np.concatenate(
        [getattr(tick, stream)[name] for tick in drawn]
    )
    return joined


def test_the_same_settings_give_the_same_rows() -> None:
    for one, other in zip(ticks(QUIET, 5), ticks(QUIET, 5), strict=True):
        for stream in ("orders", "tracks"):
            for name, values in getattr(one, stream).items():
                np.testing.assert_array_equal(values, getattr(other, stream)[name])


def test_another_seed_gives_other_rows() -> None:
    one, other = next(ticks(QUIET, 1)), next(ticks(replace(QUIET, seed=8), 1))
    assert one.orders["cell"].tolist() != other.orders["cell"].tolist()


def test_another_rate_of_orders_leaves_the_tracks_alone() -> None:
    one, other = list(ticks(QUIET, 3)), list(ticks(replace(QUIET, orders_per_second=1), 3))
    np.testing.assert_array_equal(column(one, "tracks", "ts"), column(other, "tracks", "ts"))


@pytest.mark.parametrize("stream", ["orders", "tracks"])
def test_no_event_time_is_further_behind_than_the_disorder_allows(stream: str) -> None:
    times = column(list(ticks(QUIET, 10)), stream, "ts").astype(np.int64)
    behind = np.maximum.accumulate(times) - times
    assert 0 < behind.max() <= QUIET.disorder_us


def test_without_disorder_times_never_go_back() -> None:
    times = column(list(ticks(replace(QUIET, disorder_us=0), 5)), "orders", "ts").astype(np.int64)
    assert (np.diff(times) >= 0).all()


def test_no_row_is_stamped_after_its_tick() -> None:
    for tick in ticks(QUIET, 5):
        end_us = QUIET.start_us + (tick.number + 1) * 1_000_000
        assert tick.tracks["ts"].astype(np.int64).max() < end_us


@pytest.mark.parametrize(("stream", "key"), [("orders", "order_id"), ("tracks", "track_id")])
def test_ids_count_up_from_zero_across_ticks(stream: str, key: str) -> None:
    ids = column(list(ticks(QUIET, 4)), stream, key)
    assert ids.tolist() == list(range(len(ids)))


def test_popularity_falls_off_as_zipf_from_the_centre() -> None:
    city = City(cells=400, zipf=1.0, orders_per_second=50_000, burst_factor=1.0)
    visits = np.sort(np.bincount(column(list(ticks(city, 4)), "orders", "cell"), minlength=400))[::-1]
    shares = visits / visits.sum()
    harmonic = (1 / np.arange(1, 401)).sum()
    np.testing.assert_allclose(shares[[0, 1, 3]], np.array([1, 1 / 2, 1 / 4]) / harmonic, rtol=0.1)


def test_the_busiest_cell_is_in_the_middle_of_the_grid() -> None:
    city = City(cells=400, zipf=1.0, orders_per_second=20_000)
    busiest = int(np.bincount(next(ticks(city, 1)).orders["cell"]).argmax())
    row, col = divmod(busiest, 20)
    assert abs(row - 9.5) <= 2
    assert abs(col - 9.5) <= 2


def test_a_rush_multiplies_both_rates_while_it_lasts() -> None:
    city = replace(QUIET, burst_factor=5.0, burst_first_seconds=2, burst_seconds=2, burst_every_seconds=10)
    sizes = np.array([len(tick.orders["ts"]) for tick in ticks(city, 14)])
    bursting = np.array([burst_at(city, s) == 5.0 for s in range(14)])
    assert np.flatnonzero(bursting).tolist() == [2, 3, 12, 13]
    assert sizes[bursting].min() > 800
    assert sizes[~bursting].max() < 300


def test_a_city_without_orders_still_has_tracks() -> None:
    tick = next(ticks(replace(QUIET, orders_per_second=0), 1))
    assert len(tick.orders["ts"]) == 0
    assert len(tick.tracks["ts"]) > 0


def test_a_setting_below_its_least_is_refused_by_name() -> None:
    with pytest.raises(
        FlowError, match=r"DEMO_SETTING_INVALID.*City\(cells=…\) must be at least 1\. Got: 0\."
    ):
        City(cells=0)


def test_not_a_number_is_refused() -> None:
    with pytest.raises(FlowError, match=r"DEMO_SETTING_INVALID.*zipf"):
        City(zipf=float("nan"))


def test_a_share_above_one_is_refused() -> None:
    with pytest.raises(FlowError, match=r"DEMO_SETTING_INVALID.*occupied_share=….*Got: 1\.2\."):
        City(occupied_share=1.2)
