"""A plot as plain data: panels with curves, axes and marks, and maps. `drawing.py` draws it.

Experiments describe plots without a drawing library, so they can be tested by their numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tidegate.errors import FlowError

#: How a curve is drawn: joined points, a staircase (a value that holds until the next), a dashed line with
#: marks, or a dotted one without: a mark to be reached.
STYLES = ("line", "points", "steps", "dashed", "dotted")


@dataclass(frozen=True)
class Curve:
    """One curve; `low` and `high` draw a band around it, `right` puts it on the right axis."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    style: str = "line"
    right: bool = False
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    #: Place in the palette; the same thing has the same colour in all plots of an experiment.
    colour: int = 0

    def __post_init__(self) -> None:
        lengths = {len(self.x), len(self.y)} | {len(side) for side in (self.low, self.high) if side}
        if len(lengths) != 1 or self.style not in STYLES:
            raise FlowError(
                f"The curve {self.name!r} cannot be drawn",
                code="LAB_CURVE_INVALID",
                got=f"lengths {sorted(lengths)}, style {self.style!r}",
                do=f"Give as many y as x, and a style of {', '.join(STYLES)}",
            )


@dataclass(frozen=True)
class Panel:
    """One pair of axes (and a right one, if a curve asks for it)."""

    x_label: str
    y_label: str
    curves: Sequence[Curve]
    title: str = ""
    right_label: str = ""
    #: Stretches of the x axis with a name, drawn behind the curves.
    spans: Sequence[tuple[float, float, str]] = ()
    #: Names instead of numbers on the x axis: (place, name).
    ticks: Sequence[tuple[float, str]] = ()
    #: Where the left axis begins; anything but 0 only where no heights are to be compared.
    y_from: float = 0.0
    #: Logarithmic height, for what differs by orders of magnitude; all values must be above 0.
    y_log: bool = False


@dataclass(frozen=True)
class Map:
    """A plane that areas cover, shaded from 0 to 1, with dots on it; both axes have the same scale."""

    x_label: str
    y_label: str
    #: left, bottom, right, top and shade.
    areas: Sequence[tuple[float, float, float, float, float]]
    #: x, y and size: the size is a number that people count, drawn as the area of the dot.
    dots: Sequence[tuple[float, float, float]]
    title: str = ""
    #: What the shade says; maps of one plot share a scale.
    shade_label: str = ""

    def __post_init__(self) -> None:
        for left, bottom, right, top, shade in self.areas:
            if not (left <= right and bottom <= top and 0 <= shade <= 1):
                raise FlowError(
                    f"The map {self.title!r} cannot be drawn",
                    code="LAB_MAP_INVALID",
                    got=f"an area from {left}, {bottom} to {right}, {top} with shade {shade}",
                    do="Give left <= right, bottom <= top and a shade from 0 to 1",
                )


@dataclass(frozen=True)
class Plot:
    """One picture, and the name of its file without the ending."""

    name: str
    title: str
    subtitle: str
    panels: Sequence[Panel] = ()
    #: Panels that show the same quantity can be compared by height.
    same_height: bool = False
    #: Panels in a row; None: all of them.
    columns: int | None = None
    #: Panels that share curves need only one legend, below all of them.
    one_legend: bool = False
    #: Width and height of a panel where there are several; wide ones suit long times.
    panel_inches: tuple[float, float] = (4.7, 3.6)
    #: After the panels, where there are any.
    maps: Sequence[Map] = ()

    def to_json(self) -> dict[str, Any]:
        return {"kind": "plot", **asdict(self)}
