"""Draws the picture of `tidegate demo --plot`: one overloaded join, with Spark alone and with Tidegate.

Two panels share the seconds of arrival: how long rows waited for their results, and which share of the exact
results came within the goal. Takes plain arrays; matplotlib is imported when the picture is drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from tidegate.cli.demo.timeline import Timeline
from tidegate.errors import FlowError

#: Blue and vermillion of Okabe and Ito, which people with any common colour blindness tell apart.
_TIDEGATE, _SPARK, _GREY = "#0072B2", "#D55E00", "#6E6E6E"
#: 800 pixels wide on a page, drawn at twice that for dense screens.
_WIDTH_INCHES, _HEIGHT_INCHES, _DPI = 8.0, 5.0, 200


@dataclass(frozen=True)
class Shares:
    """The shares of the exact results that a run wrote: within the goal, and by its end."""

    in_time: float
    total: float

    @property
    def text(self) -> str:
        late = "" if self.in_time >= 1 else f", {_percent(self.total)} in the end"
        return f"{_percent(self.in_time)} within the goal{late}"


@dataclass(frozen=True)
class Scene:
    """What the picture says beside its curves."""

    goal_seconds: float
    burst_factor: float
    burst_first_seconds: float
    burst_seconds: float
    spark: Shares
    tidegate: Shares


def require_matplotlib() -> None:
    """Fail before the demo runs, not after it."""
    if find_spec("matplotlib") is None:
        raise FlowError(
            "--plot needs matplotlib, which is not installed",
            code="DEMO_PLOT_UNAVAILABLE",
            do='Run: pip install "tidegate[plot]"',
        )


def draw(file: Path, spark: Timeline, tidegate: Timeline, scene: Scene) -> None:
    """Write the picture; the name's ending decides the format."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH_INCHES, _HEIGHT_INCHES), dpi=_DPI, layout="constrained")
    waiting, share = figure.subplots(2, 1, sharex=True)
    for panel in (waiting, share):
        _bare(panel)
        panel.axvspan(
            scene.burst_first_seconds,
            scene.burst_first_seconds + scene.burst_seconds,
            color="#EDEDED",
            linewidth=0,
        )
    _latency(waiting, spark, tidegate, scene)
    _on_time(share, spark, tidegate, scene)
    share.set_xlabel("second in which rows arrive")
    share.set_xlim(0, spark.on_time.size)
    figure.savefig(file)


def _latency(panel: Any, spark: Timeline, tidegate: Timeline, scene: Scene) -> None:
    spark_worst, our_worst = (float(np.nanmax(run.latency_seconds)) for run in (spark, tidegate))
    _title(
        panel,
        "Latency, p95 of rows (s, log scale)",
        spark=f"Spark: up to {spark_worst:.{_digits(spark_worst)}f} s",
        tidegate=f"Tidegate: up to {our_worst:.{_digits(our_worst)}f} s",
    )
    _curve(panel, spark.latency_seconds, _SPARK)
    _curve(panel, tidegate.latency_seconds, _TIDEGATE)
    panel.axhline(scene.goal_seconds, color=_GREY, linewidth=1.2, linestyle=(0, (4, 3)))
    # Seconds and minutes in one panel: only a logarithmic axis shows both the goal and how far it is missed.
    panel.set_yscale("log")
    lowest = min(float(np.nanmin(run.latency_seconds)) for run in (spark, tidegate))
    panel.set_ylim(0.7 * min(1.0, lowest), 1.6 * max(spark_worst, our_worst, scene.goal_seconds))
    panel.yaxis.set_major_formatter("{x:g}")
    panel.minorticks_off()
    note = {"textcoords": "offset points", "color": _GREY, "fontsize": 10}
    panel.annotate(f"goal {scene.goal_seconds:g} s", (0, scene.goal_seconds), (4, 4), **note)
    middle = scene.burst_first_seconds + scene.burst_seconds / 2
    top = panel.get_ylim()[1]
    panel.annotate(f"{scene.burst_factor:g}× the rows", (middle, top), (0, -3), ha="center", va="top", **note)


def _on_time(panel: Any, spark: Timeline, tidegate: Timeline, scene: Scene) -> None:
    _title(
        panel,
        f"Results within {scene.goal_seconds:g} s (%)",
        spark=f"Spark: {_percent(scene.spark.in_time)}",
        tidegate=f"Tidegate: {_percent(scene.tidegate.in_time)}; {_percent(scene.tidegate.total)} in the end",
    )
    _curve(panel, 100 * spark.on_time, _SPARK)
    _curve(panel, 100 * tidegate.on_time, _TIDEGATE)
    panel.set_ylim(0, 105)


def _percent(share: float) -> str:
    """Never rounded up to all of them, nor down to none."""
    return "all" if share >= 1 else f"{min(99.9, max(0.1, 100 * share)):.1f} %" if share else "none"


def _digits(seconds: float) -> int:
    return 0 if seconds >= 10 else 1


def _curve(panel: Any, values: Any, colour: str) -> None:
    panel.plot(np.arange(values.size) + 0.5, values, color=colour, linewidth=2.2, solid_capstyle="round")


def _title(panel: Any, text: str, *, spark: str, tidegate: str) -> None:
    """What is drawn, and each curve's name and figure in its colour: above the curves, so never on one."""
    panel.set_title(text, loc="left", fontsize=12)
    for part, place, colour in ((spark, 0.61, _SPARK), (tidegate, 1.0, _TIDEGATE)):
        panel.annotate(
            part,
            (place, 1),
            (0, 7),
            xycoords="axes fraction",
            textcoords="offset points",
            ha="right",
            color=colour,
            fontsize=11,
            fontweight="bold",
        )


def _bare(panel: Any) -> None:
    """Only the axes that carry numbers."""
    for side in ("top", "right"):
        panel.spines[side].set_visible(False)
    panel.tick_params(labelsize=10, colors="#404040")
    panel.grid(axis="y", color="#E3E3E3", linewidth=0.8)
    panel.set_axisbelow(True)
