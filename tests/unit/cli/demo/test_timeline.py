from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidegate.cli.demo.answers import Equal, Side, Stay
from tidegate.cli.demo.arrivals import prepare
from tidegate.cli.demo.city import City
from tidegate.cli.demo.timeline import pairs_by_tick, pairs_written, timeline

STAY = Stay(left_us=3_000_000, right_us=1_000_000)


def rows(rng: np.random.Generator, n: int) -> tuple[Side, np.ndarray]:
    tick = np.sort(rng.integers(0, 6, n))
    times = tick * 1_000_000 - rng.integers(0, 1_500_000, n)
    return Side(rng.integers(0, 4, n), times, rng.random(n) < 0.8), tick


@pytest.mark.parametrize("seed", range(5))
def test_every_pair_counts_in_the_tick_of_its_later_row(seed: int) -> None:
    rng = np.random.default_rng(seed)
    (left, left_tick), (right, right_tick) = rows(rng, 60), rows(rng, 80)
    expected = np.zeros(6, np.int64)
    for i in np.flatnonzero(left.counts):
        for j in np.flatnonzero(right.counts):
            apart = left.time_us[i] - right.time_us[j]
            if left.key[i] == right.key[j] and -STAY.left_us <= apart <= STAY.right_us:
                expected[max(left_tick[i], right_tick[j])] += 1
    found = pairs_by_tick(left, right, (left_tick, right_tick), STAY, Equal())
    assert expected.sum() > 100
    assert found.tolist() == expected[: found.size].tolist()


def test_a_pair_is_on_time_up_to_the_goal_after_its_later_row() -> None:
    moments = [100.0, 101.0, 102.0]
    commits = [(100.5, 10), (102.5, 10), (105.0, 10)]
    found = timeline(
        np.array([10, 10, 10]),
        exact=np.array([4, 4, 0]),
        pair_ticks=np.array([1, 1, 1]),
        written_at=np.array([102.5, 103.0, 105.0]),
        commits=commits,
        moments=moments,
        goal_seconds=2.0,
    )
    assert found.on_time[1] == 0.5
    assert np.isnan(found.on_time[[0, 2]]).all()
    assert found.latency_seconds[1:].tolist() == [1.5, 3.0]
    assert np.isnan(found.latency_seconds[0])


@pytest.mark.parametrize(
    "names",
    [
        ("part-0000000000-00000.parquet", "part-0000000012-00000.parquet"),
        ("batch=0/part-00001-a.parquet", "batch=12/part-00001-a.parquet"),
    ],
    ids=["ours", "Spark's"],
)
def test_pairs_carry_the_batch_in_the_name_of_their_file(tmp_path: Path, names: tuple[str, str]) -> None:
    for name, orders in zip(names, ([3], [4, 5]), strict=True):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        pq.write_table(pa.table({"order_id": orders, "track_id": [9] * len(orders)}), file)
    pairs = pairs_written(tmp_path)
    assert sorted(zip(pairs.left, pairs.right, pairs.batch, strict=True)) == [
        (3, 9, 0),
        (4, 9, 12),
        (5, 9, 12),
    ]


def test_a_prepared_city_knows_the_rows_of_each_stream_by_second(tmp_path: Path) -> None:
    prepared = prepare(City(orders_per_second=20, tracks_per_second=60), 4, tmp_path)
    orders, tracks = prepared.stream_rows
    assert (orders.sum(), tracks.sum()) == (len(prepared.orders.key), len(prepared.tracks.key))
    assert prepared.tick_rows.tolist() == (orders + tracks).tolist()
