from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tidegate.cli.demo import plot
from tidegate.cli.demo.timeline import Timeline
from tidegate.cli.main import main


def test_the_picture_is_1600_pixels_wide_and_not_empty(tmp_path: Path) -> None:
    image = pytest.importorskip("matplotlib.image")
    seconds = np.arange(20.0)
    spark, ours = Timeline(1 + 3 * seconds, 1 - seconds / 20), Timeline(1 + 0 * seconds, 1 - seconds / 80)
    scene = plot.Scene(2.0, 10.0, 5.0, 3.0, plot.Shares(0.2, 0.4), plot.Shares(0.8, 1.0))
    plot.draw(tmp_path / "a.png", spark, ours, scene)
    pixels = image.imread(tmp_path / "a.png")
    assert pixels.shape[1] == 1600
    assert pixels[..., :3].std() > 0.05


def test_shares_are_said_of_all_results_and_never_rounded_to_all_or_none() -> None:
    assert plot.Shares(0.784, 1.0).text == "78.4 % within the goal, all in the end"
    assert plot.Shares(0.99996, 0.99999).text == "99.9 % within the goal, 99.9 % in the end"
    assert plot.Shares(0.0, 1e-6).text == "none within the goal, 0.1 % in the end"
    assert plot.Shares(1.0, 1.0).text == "all within the goal"


def test_without_matplotlib_a_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(plot, "find_spec", lambda name: None)
    assert main(["demo", "--plot", str(tmp_path / "a.png")]) == 2
    error = capsys.readouterr().err
    assert "[DEMO_PLOT_UNAVAILABLE]" in error
    assert 'pip install "tidegate[plot]"' in error
    assert "Traceback" not in error
