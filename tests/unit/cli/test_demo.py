from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from tidegate.cli import demo
from tidegate.cli.main import main


@pytest.mark.parametrize("option", ["--out", "--checkpoint"])
def test_a_directory_that_is_in_use_is_refused(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "old.parquet").touch()
    assert main(["demo", option, str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"tidegate demo: {option} must be a new or empty directory. Got: {tmp_path}.")
    assert "Traceback" not in error


def test_a_file_is_no_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert main(["demo", "--out", str(tmp_path / "file")]) == 2


def test_a_busier_city_has_more_cells() -> None:
    small, large = demo.city_of(400, seed=1), demo.city_of(8_000, seed=1)
    assert large.cells == 20 * small.cells
    assert large.orders_per_second + large.tracks_per_second == 8_000


def test_the_defaults_fit_two_minutes() -> None:
    parser = argparse.ArgumentParser()
    demo.add_arguments(parser)
    assert parser.parse_args([]).seconds <= 75
