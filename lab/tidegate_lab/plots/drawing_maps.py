"""Draws maps: areas shaded by a number from 0 to 1, and dots on them.

Shades are greys, so that dots are the only colour and black and white prints stay readable. A dot of size 0
is drawn as a small hollow ring.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tidegate_lab.plots.plots import Map

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: From white to a grey on which dots and borders are still seen.
SHADES = ("#FFFFFF", "#6F6F6F")
DOT = "#0072B2"
_BORDER, _INK = "#444444", "#222222"
#: Areas on paper, in square points: of a dot that counts nothing, and of the one that counts most.
_EMPTY_DOT, _LARGEST_DOT = 3.0, 60.0


def draw_map(axes: Axes, one: Map) -> None:
    """Areas, borders, dots; the axes end where the areas do."""
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    axes.set_title(one.title, fontsize=10, color=_INK, loc="left")
    axes.set_xlabel(one.x_label)
    axes.set_ylabel(one.y_label)
    axes.grid(visible=False)
    axes.set_aspect("equal")
    # Long numbers, such as degrees, need room.
    axes.locator_params(nbins=5)
    patches = [
        Rectangle((left, bottom), right - left, top - bottom) for left, bottom, right, top, _ in one.areas
    ]
    areas: Any = PatchCollection(patches, cmap=_shades(), edgecolors=_BORDER, linewidths=0.8)
    areas.set_array([shade for *_, shade in one.areas])
    areas.set_clim(0.0, 1.0)
    axes.add_collection(areas)
    counted = [dot for dot in one.dots if dot[2] > 0]
    step = (_LARGEST_DOT - _EMPTY_DOT) / max((dot[2] for dot in counted), default=1.0)
    for dots, size, colour in (
        ([dot for dot in one.dots if dot[2] <= 0], [_EMPTY_DOT], "none"),
        (counted, [_EMPTY_DOT + step * dot[2] for dot in counted], DOT),
    ):
        axes.scatter(
            [dot[0] for dot in dots],
            [dot[1] for dot in dots],
            s=size,
            facecolors=colour,
            edgecolors=DOT,
            linewidths=0.4,
            alpha=0.7,
            zorder=3,
        )
    axes.set_xlim(min(area[0] for area in one.areas), max(area[2] for area in one.areas))
    axes.set_ylim(min(area[1] for area in one.areas), max(area[3] for area in one.areas))


def draw_scale(figure: Figure, all_axes: Sequence[Axes], label: str) -> None:
    """What the shades of these maps mean."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    scale = ScalarMappable(Normalize(0.0, 1.0), _shades())
    bar = figure.colorbar(scale, ax=list(all_axes), shrink=0.8, pad=0.01)
    bar.set_label(label)


def _shades() -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("shades", SHADES)
