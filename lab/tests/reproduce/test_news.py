"""Replayed news, on a few made-up items in files of the same shape."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidegate.cli.main import main
from tidegate.errors import FlowError
from tidegate_lab.reproduce.selective_join.news import (
    DESKS,
    FILES,
    PARTS,
    News,
    item_count,
    news_streams,
    replay_seconds,
)
from tidegate_lab.reproduce.selective_join.news_figures import scaled
from tidegate_lab.reproduce.selective_join.scenarios import PAPER_RUSH, one_window
from tidegate_lab.workloads.selective_join import Steps

ITEMS = 5 * 40
STEPS = Steps(((10.0, 1.0), (5.0, 6.0)))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Neighbours 2k and 2k + 1 share their only term, every fourth item is of a financial desk."""
    numbers = np.arange(1, ITEMS + 1)
    desks = ["F A" if n % 4 == 0 else "C G" for n in range(ITEMS)]
    pq.write_table(pa.table({"newid": numbers, "desk": desks}), tmp_path / FILES[0])
    terms = [f"term{n // 2}" for n in range(ITEMS)]
    weights = pa.array(np.full(ITEMS, 0.2), pa.float32())
    pq.write_table(pa.table({"newid": numbers, "term": terms, "weight": weights}), tmp_path / FILES[1])
    return tmp_path


def test_items_come_as_the_steps_say() -> None:
    seconds = replay_seconds(STEPS, 40)
    assert np.histogram(seconds, [0, 10, 15])[0].tolist() == [10, 30]
    assert (np.diff(seconds) > 0).all()


def test_neighbours_on_the_wire_go_to_two_feeds_and_are_found_alike(folder: Path) -> None:
    (left, right), pairs = news_streams(News(folder), STEPS, one_window(5.0), 0)
    assert left.times_us.size == right.times_us.size == ITEMS // PARTS // 2
    assert [part.tolist() for part in pairs._partners[0]][1] == list(range(20))


def test_a_source_that_lags_sends_everything_later(folder: Path) -> None:
    (_, right), _ = news_streams(News(folder), STEPS, one_window(5.0), 0)
    (_, late), _ = news_streams(News(folder, lag_seconds=3.0), STEPS, one_window(5.0), 0)
    assert (late.times_us - right.times_us == 3_000_000).all()


def test_desks_are_told_apart_and_seeds_are_parts_of_the_year(folder: Path) -> None:
    (left, right), _ = news_streams(News(folder, DESKS), STEPS, one_window(5.0), 0)
    assert (left.times_us.size, right.times_us.size) == (10, 30)
    assert item_count(News(folder)) == 40
    one, other = (news_streams(News(folder), STEPS, one_window(5.0), seed)[1] for seed in (1, 1 + PARTS))
    assert all((a == b).all() for a, b in zip(one._partners[0], other._partners[0], strict=True))


def test_rates_are_scaled_to_the_items_that_there_are() -> None:
    rush = scaled(PAPER_RUSH, 4800)
    assert sum(seconds * rate for seconds, rate in rush.steps.levels) == pytest.approx(2400)
    assert rush.fits / rush.rates[1] == pytest.approx(200 / 500)


def test_missing_files_are_named_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(FlowError, match=r"no reuters21578_news\.parquet.*do without real data"):
        News(tmp_path)


def test_the_command_runs_on_them(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEGATE_DATA", str(folder))
    arguments = ["reproduce", "selective-join", "--real", "--quick", "--seeds", "1", "--figure", "4"]
    assert main([*arguments, "--out", str(folder)]) == 0
    assert "wire, rush" in capsys.readouterr().out
    assert (folder / "real-figure-4.png").stat().st_size > 10_000


def test_without_a_folder_the_command_says_where_to_name_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TIDEGATE_DATA", raising=False)
    assert main(["reproduce", "selective-join", "--real"]) == 2
    assert "set TIDEGATE_DATA" in capsys.readouterr().err
