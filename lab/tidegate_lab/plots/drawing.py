"""Draws plots as PNG files, in one style with a palette for colour-blind readers.

The palette is Okabe and Ito's; grey scale prints stay readable because curves also differ in their dashes or
marks. The backend only writes files and opens no window. It is imported when the first plot is drawn, because
it loads slowly.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidegate_lab.plots.drawing_maps import draw_map, draw_scale
from tidegate_lab.plots.plots import Curve, Panel, Plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C8C8C")
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
#: Logarithmic axes reach so many times beyond their curves.
LOG_ROOM = 1.5
_INK, _FAINT = "#222222", "#666666"
_LOOK: Any = {
    "font.size": 10,
    "axes.edgecolor": "#999999",
    "axes.labelcolor": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E3E3E3",
    "grid.linewidth": 0.8,
    "xtick.color": _FAINT,
    "ytick.color": _FAINT,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "savefig.dpi": 150,
}


def draw(plot: Plot, folder: Path) -> Path:
    """Write the picture and say where it lies."""
    import matplotlib as mpl

    with mpl.rc_context(_LOOK):
        return _draw(plot, folder)


def _draw(plot: Plot, folder: Path) -> Path:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as NewFigure

    count = len(plot.panels) + len(plot.maps)
    columns = plot.columns or count
    rows = -(-count // columns)
    panel_width, panel_height = plot.panel_inches
    width = 7.6 if columns == 1 else panel_width * columns
    height = 5.0 if rows == 1 else 1.1 + panel_height * rows
    figure = NewFigure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    layout: Any = figure.get_layout_engine()
    layout.set(rect=(0, 0, 1, 1 - 0.8 / height))
    # Inches from the top left corner.
    left, top, below = 0.1 / width, 1 - 0.1 / height, 1 - 0.375 / height
    figure.text(left, top, plot.title, fontsize=13, fontweight="bold", color=_INK, va="top")
    figure.text(left, below, plot.subtitle, fontsize=9, color=_FAINT, va="top", linespacing=1.35)
    grid: Any = figure.subplots(rows, columns, squeeze=False, sharey=plot.same_height)
    all_axes: list[Axes] = list(grid.flat)
    _draw_panels(figure, all_axes, plot, legend_columns=2 if columns == 1 else 1)
    _draw_maps(figure, all_axes[len(plot.panels) : count], plot)
    for spare in all_axes[count:]:
        spare.remove()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{plot.name}.png"
    figure.savefig(path)
    return path


def _draw_panels(figure: Figure, all_axes: Sequence[Axes], plot: Plot, legend_columns: int) -> None:
    handles: dict[str, Any] = {}
    for axes, panel in zip(all_axes, plot.panels, strict=False):
        tallest = _tallest(plot.panels if plot.same_height else [panel])
        drawn = _draw_panel(axes, panel, tallest, 0 if plot.one_legend else legend_columns)
        handles |= {handle.get_label(): handle for handle in drawn}
        place: Any = axes.get_subplotspec()
        if plot.same_height and panel.y_label == plot.panels[0].y_label and not place.is_first_col():
            # They share an axis, and it has its name on the left.
            axes.set_ylabel("")
    if plot.one_legend:
        figure.legend(handles=list(handles.values()), loc="outside lower center", ncols=len(handles))


def _draw_maps(figure: Figure, all_axes: Sequence[Axes], plot: Plot) -> None:
    for axes, one in zip(all_axes, plot.maps, strict=True):
        draw_map(axes, one)
    if plot.maps:
        draw_scale(figure, all_axes, plot.maps[0].shade_label)


def _draw_panel(axes: Axes, panel: Panel, tallest: float, columns: int) -> list[Any]:
    """Draws it, with a legend of so many columns or none, and gives back what a legend shows."""
    from matplotlib.ticker import LogFormatter

    axes.set_title(panel.title, fontsize=10, color=_INK, loc="left")
    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label)
    # Room on top for the legend, so that it covers no curve.
    room = 1.06 + (0.08 * -(-len(panel.curves) // columns) if columns else 0)
    if panel.y_log:
        axes.set_yscale("log")
        axes.set_ylim(_lowest(panel) / LOG_ROOM, tallest * LOG_ROOM)
        axes.yaxis.set_major_formatter("{x:g}")
        # Within a decade or less some of the steps between have numbers as well: 2, not 2 × 10⁰.
        axes.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(1, 0.4)))
    else:
        axes.set_ylim(panel.y_from, panel.y_from + (tallest - panel.y_from) * room)
    axes.margins(x=0.02)
    sides = {False: axes}
    if panel.right_label:
        sides[True] = _right_axis(axes, panel.right_label, room)
    _draw_spans(axes, panel)
    handles = [_draw_curve(sides[curve.right], curve) for curve in panel.curves]
    if panel.ticks:
        axes.set_xticks([place for place, _ in panel.ticks], [name for _, name in panel.ticks])
    if columns:
        list(sides.values())[-1].legend(handles=handles, loc="upper left", ncols=columns)
    return handles


def _right_axis(axes: Axes, label: str, room: float) -> Axes:
    """For fractions: from 0 to 1."""
    right = axes.twinx()
    right.set_ylabel(label)
    right.set_ylim(0, room)
    right.set_yticks([0, 0.2, 0.4, 0.6, 0.8, 1.0])
    right.grid(visible=False)
    right.spines["right"].set_visible(True)
    return right


def _tallest(panels: Sequence[Panel]) -> float:
    """The highest point of any curve of the left axes."""
    left = [curve for panel in panels for curve in panel.curves if not curve.right]
    return max((max(curve.high or curve.y, default=0.0) for curve in left), default=0.0) or 1.0


def _lowest(panel: Panel) -> float:
    return min((min(curve.y) for curve in panel.curves if curve.y), default=1.0)


def _draw_spans(axes: Axes, panel: Panel) -> None:
    for number, (begin, end, name) in enumerate(panel.spans):
        axes.axvspan(begin, end, color=("#ECECEC", "#F5F5F5")[number % 2], zorder=0, linewidth=0)
        axes.annotate(
            name,
            ((begin + end) / 2, 0.0),
            (0, 4),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            ha="center",
            fontsize=8,
            color=_FAINT,
        )


def _draw_curve(axes: Axes, curve: Curve) -> Any:
    colour = PALETTE[curve.colour % len(PALETTE)]
    if curve.low and curve.high:
        axes.fill_between(curve.x, curve.low, curve.high, color=colour, alpha=0.15, linewidth=0)
    styles: dict[str, dict[str, Any]] = {
        "line": {"linestyle": "-"},
        "points": {"linestyle": "-", "marker": MARKS[curve.colour % len(MARKS)], "markersize": 5},
        "steps": {"linestyle": "-", "drawstyle": "steps-post"},
        "dashed": {"linestyle": (0, (4, 2)), "marker": MARKS[curve.colour % len(MARKS)], "markersize": 5},
        "dotted": {"linestyle": ":"},
    }
    (handle,) = axes.plot(
        curve.x, curve.y, color=colour, label=curve.name, linewidth=1.8, **styles[curve.style]
    )
    return handle
