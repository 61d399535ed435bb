"""Replayed taxis, on a few made-up rows in files of the same shape."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidegate.cli.main import main
from tidegate.errors import FlowError
from tidegate_lab.bench.skew.feed import Workload
from tidegate_lab.reproduce.taxis import FILES, TaxiStreams, taxi_batches

START_US = 1_212_735_600_000_000
ROWS = 2_400


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A row every second at one of 60 places; every fourth track is occupied."""
    random = np.random.default_rng(4)
    times = pa.array(START_US + np.arange(ROWS) * 1_000_000, pa.timestamp("us", tz="UTC"))
    places = random.zipf(1.3, (2, ROWS)) % 60
    for name, place in zip(FILES, places, strict=True):
        columns = {
            "ts": times,
            "lat": pa.array(37.78 + 0.01 * (place // 10), pa.float32()),
            "lon": pa.array(-122.4 + 0.01 * (place % 10), pa.float32()),
        }
        if name == FILES[1]:
            columns["occupied"] = pa.array(np.arange(ROWS) % 4 == 0)
        pq.write_table(pa.table(columns), tmp_path / name)
    return tmp_path


def test_orders_meet_vacant_cars_of_the_same_cell_batch_by_batch(folder: Path) -> None:
    story = list(taxi_batches(TaxiStreams(folder, batches=6)))
    assert all(abs(left.size - 400) <= 1 for left, _ in story)
    assert sum(right.size for _, right in story) == ROWS * 3 // 4
    left, right = (np.unique(np.concatenate(side)) for side in zip(*story, strict=True))
    assert 30 < left.size <= 60
    assert np.intersect1d(left, right).size > 30


def test_larger_cells_are_fewer(folder: Path) -> None:
    fine, coarse = (
        np.unique(np.concatenate([left for left, _ in taxi_batches(TaxiStreams(folder, metres))])).size
        for metres in (500.0, 20_000.0)
    )
    assert coarse < fine


def test_another_seed_is_another_hash_of_the_same_rows(folder: Path) -> None:
    one, other = (next(taxi_batches(TaxiStreams(folder, seed=seed)))[0] for seed in (0, 1))
    assert not np.intersect1d(one, other).size
    assert np.unique(one, return_inverse=True)[1].max() == np.unique(other, return_inverse=True)[1].max()


def test_they_are_a_workload_of_the_skew_benchmark(folder: Path) -> None:
    workload = Workload("taxis", batches=6, seed=2, real=folder)
    assert sum(left.size for left, _ in workload.batch_codes()) == ROWS - 1


def test_the_skew_benchmark_says_what_is_missing_before_it_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TIDEGATE_DATA", raising=False)
    asked = ["bench", "skew", "--workloads", "zipf-0,taxis"]
    assert main(asked) == 2
    assert main([*asked, "--real", str(tmp_path)]) == 2
    without, wrong = capsys.readouterr().err.splitlines()
    assert "set TIDEGATE_DATA" in without
    assert "no sf_taxi_orders.parquet" in wrong


def test_missing_files_are_named_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(
        FlowError, match=r"no sf_taxi_orders\.parquet and no sf_taxi_tr.*do without real data"
    ):
        TaxiStreams(tmp_path)


def test_the_command_runs_on_them(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEGATE_DATA", str(folder))
    arguments = ["reproduce", "fastjoin", "--real", "--seeds", "1", "--figure", "11"]
    assert main([*arguments, "--out", str(folder)]) == 0
    assert "LI once settled" in capsys.readouterr().out
    assert (folder / "real-figure-11.png").stat().st_size > 10_000
