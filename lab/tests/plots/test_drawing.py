from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tidegate.errors import FlowError
from tidegate_lab.plots.drawing import PALETTE, draw
from tidegate_lab.plots.drawing_maps import SHADES
from tidegate_lab.plots.plots import Curve, Map, Panel, Plot

STEPS = Curve("rates", [0, 10, 20], [100, 500, 100], "steps", colour=1)
FRACTION = Curve("r", [0, 10, 20], [1.0, 0.2, 1.0], right=True, low=[0.9, 0.1, 0.9], high=[1.0, 0.3, 1.0])
PLOT = Plot(
    "one",
    "A title",
    "a subtitle",
    [Panel("time", "rate", [STEPS, FRACTION], right_label="r", spans=[(10, 20, "rush")])],
)


def pixels(path: Path) -> np.ndarray[Any, np.dtype[np.float64]]:
    from matplotlib.image import imread

    return np.asarray(imread(path))[:, :, :3].reshape(-1, 3)


def share_of(colour: str, picture: np.ndarray[Any, np.dtype[np.float64]]) -> float:
    wanted = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    return float((np.abs(picture - wanted).max(axis=1) < 0.02).mean())


def test_every_curve_is_seen_in_its_colour(tmp_path: Path) -> None:
    picture = pixels(draw(PLOT, tmp_path / "made" / "on the way"))
    assert share_of(PALETTE[0], picture) > 0.001
    assert share_of(PALETTE[1], picture) > 0.001
    assert share_of(PALETTE[2], picture) == 0


def test_panels_stand_side_by_side_and_names_can_stand_on_the_x_axis(tmp_path: Path) -> None:
    panel = Panel("size", "output", [Curve("a", [0, 1], [3, 4], "dashed")], ticks=[(0, "1"), (1, "none")])
    one, two = (
        draw(Plot(f"p{n}", "t", "s", [panel] * n, same_height=True), tmp_path).stat().st_size for n in (1, 2)
    )
    assert two > one > 1000


def test_a_curve_of_zeros_can_be_drawn(tmp_path: Path) -> None:
    plot = Plot("zeros", "t", "s", [Panel("x", "y", [Curve("a", [0, 1], [0, 0])])])
    assert draw(plot, tmp_path).exists()


def test_panels_stand_in_rows_with_one_legend_for_all(tmp_path: Path) -> None:
    from matplotlib.image import imread

    panels = [Panel("x", "y", [STEPS])] * 3
    plots = [Plot(f"{columns}", "t", "s", panels, columns=columns, one_legend=True) for columns in (3, 2)]
    one, two = (np.asarray(imread(draw(plot, tmp_path))) for plot in plots)
    # Three panels in two columns need a second row.
    assert two.shape[0] > 1.5 * one.shape[0]
    assert two.shape[1] < one.shape[1]


def test_a_legend_for_all_names_every_curve_of_every_panel(tmp_path: Path) -> None:
    first, last = Panel("x", "y", [STEPS]), Panel("x", "y", [Curve("a", [0, 1], [0, 0], colour=4)])
    picture = pixels(draw(Plot("both", "t", "s", [first, last], one_legend=True), tmp_path))
    alone = pixels(draw(Plot("one", "t", "s", [first, first], one_legend=True), tmp_path))
    # A curve of zeros lies on the axis: what is seen of its colour is in the legend.
    assert share_of(PALETTE[4], picture) > 0
    assert share_of(PALETTE[4], alone) == 0


def test_a_logarithmic_axis_shows_small_and_large_alike(tmp_path: Path) -> None:
    curves = [Curve("small", [0, 1], [1, 2]), Curve("large", [0, 1], [1000, 2000], "dotted", colour=1)]
    plain, log = (
        pixels(draw(Plot(name, "t", "s", [Panel("x", "y", curves, y_log=y_log)]), tmp_path))
        for name, y_log in (("plain", False), ("log", True))
    )
    # Rising by half of the height takes more ink than lying on the ground.
    assert share_of(PALETTE[0], log) > share_of(PALETTE[0], plain)


def test_a_map_has_shaded_areas_and_dots_of_their_size(tmp_path: Path) -> None:
    areas = [(0.0, 0.0, 0.5, 1.0, 0.0), (0.5, 0.0, 1.0, 1.0, 1.0)]
    blue = []
    for name, sizes in (("none", (0, 0)), ("one", (5, 0)), ("both", (5, 5)), ("large and small", (5, 1))):
        dots = [(0.2, 0.3, sizes[0]), (0.2, 0.7, sizes[1])]
        one = Map("x", "y", areas, dots, "a map", "dropped")
        picture = pixels(draw(Plot(name, "t", "s", maps=[one]), tmp_path))
        assert share_of(SHADES[1], picture) > 0.1
        blue.append(float((picture[:, 2] - picture[:, 0] > 0.3).mean()))
    none, single, both, large_and_small = blue
    assert none < single < large_and_small < both


@pytest.mark.parametrize(
    "area", [(0.5, 0.0, 0.4, 1.0, 0.5), (0.0, 1.0, 1.0, 0.0, 0.5), (0.0, 0.0, 1.0, 1.0, 1.5)]
)
def test_an_area_that_cannot_be_drawn_is_refused_by_the_name_of_its_map(area: Any) -> None:
    with pytest.raises(FlowError, match="'a map'"):
        Map("x", "y", [area], [], "a map")


@pytest.mark.parametrize(
    "wrong", [{"y": [1.0]}, {"low": [1.0]}, {"style": "wavy"}], ids=["too few", "band", "style"]
)
def test_a_curve_that_cannot_be_drawn_is_refused_by_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(FlowError, match="'a curve'"):
        Curve(**{"name": "a curve", "x": [0, 1], "y": [1.0, 2.0], **wrong})


def test_describing_a_plot_imports_no_drawing_library() -> None:
    program = "import sys, tidegate_lab.plots.drawing; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
