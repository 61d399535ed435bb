from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidegate.cli.demo import command
from tidegate.cli.demo.answers import Verdict, WindowVerdict
from tidegate.cli.demo.arrivals import prepare
from tidegate.cli.demo.city import burst_at
from tidegate.cli.demo.flow import NEAR
from tidegate.cli.demo.judge import latency_of, on_time, row_ticks
from tidegate.cli.demo.outcome import Latency, Outcome
from tidegate.cli.main import main
from tidegate.model.progress import LatencyProgress
from tidegate.observe.tally import BatchLatency, Tally


@pytest.mark.parametrize("option", ["--out", "--checkpoint"])
def test_a_directory_that_is_in_use_is_refused(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "old.parquet").touch()
    assert main(["demo", option, str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(
        f"tidegate demo: [DEMO_DIRECTORY_NOT_EMPTY] {option} must be a new or empty directory. "
        f"Got: {tmp_path}."
    )
    assert "Traceback" not in error


def test_a_file_is_no_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert main(["demo", "--out", str(tmp_path / "file")]) == 2


def test_a_busier_city_has_more_cells() -> None:
    small, large = command.city_of(400, 1, 4, 60), command.city_of(8_000, 1, 4, 60)
    assert large.cells == 20 * small.cells
    assert large.orders_per_second + large.tracks_per_second == 8_000


def test_there_is_one_rush_and_its_ends_are_told() -> None:
    city = command.city_of(400, seed=1, burst=4, seconds=60)
    bursting = [second for second in range(60) if burst_at(city, second) == 4]
    assert bursting == list(range(18, 27))
    lines = {second: said for second in range(60) if (said := command.said_of(city, second))}
    assert lines == {18: "a rush: 4 times the rows", 27: "the rush is over"}


def test_the_defaults_fit_a_minute_and_a_half() -> None:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    assert parser.parse_args([]).seconds <= 60


def test_latency_is_told_apart_for_the_rush(tmp_path: Path) -> None:
    city = command.city_of(100, seed=1, burst=4, seconds=10)
    prepared = prepare(city, 10, tmp_path)

    def measured(seconds: range) -> Tally:
        tally = Tally()
        for second in seconds:
            wait = 1.5 if burst_at(city, second) > 1 else 0.5 if second else 9.0
            tally.commits.append((0.0, int(prepared.tick_rows[second])))
            tally.latencies.append(BatchLatency(second, LatencyProgress(2.0, wait, wait, wait, 0.0, "file")))
        return tally

    latency = latency_of(prepared, city, measured(range(10)), 2.0)
    assert (latency.p95, latency.in_burst) == (1.5, 1.5)
    steady = latency_of(prepared, city, measured(range(2)), 2.0)
    assert (steady.p95, steady.in_burst) == (0.5, None)


def test_shares_on_time_count_pairs_by_the_commit_that_wrote_them(tmp_path: Path) -> None:
    city = command.city_of(100, seed=1, burst=4, seconds=10)
    prepared = prepare(city, 10, tmp_path / "city")
    moments = [100.0 + second for second in range(10)]
    tally = Tally()
    for second in range(10):
        # Batches have the numbers of their commits; every other one is too late.
        wait = 0.5 if second % 2 else 5.0
        tally.commits.append((moments[second] + wait, int(prepared.tick_rows[second])))
        tally.latencies.append(BatchLatency(2 * second, LatencyProgress(2.0, wait, wait, wait, 0.0, "file")))
    orders, tracks = row_ticks(prepared)
    out = tmp_path / "out" / NEAR
    out.mkdir(parents=True)
    for second in (2, 3, 5):
        columns = {
            "order_id": np.flatnonzero(orders == second)[:4],
            "track_id": np.flatnonzero(tracks < 2)[:4],
        }
        pq.write_table(pa.table(columns), out / f"part-{2 * second:010d}-00000.parquet")
    pairs, windows = (
        Verdict(12, 16, 0, 0),
        WindowVerdict(4, 2, 1, 0, (city.start_us, city.start_us + 9 * 10**6)),
    )
    outcome = Outcome(tally, Latency(2.0, 1.0, None), pairs, windows)
    found = on_time(prepared, city, tmp_path / "out", outcome, moments)
    # Without the first second: five of nine batches; two of three files of pairs, of sixteen in truth.
    assert found.batches == pytest.approx(5 / 9)
    assert found.pairs == pytest.approx(8 / 16)
    assert found.windows_before_burst == 0
