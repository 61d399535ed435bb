"""Lines about what seeds gave: the middle one, from least to most, and whether it is what the paper says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median

from tidegate.observe.json_frame import Bar
from tidegate_lab.plots.bars import at_least
from tidegate_lab.reproduce.experiment import Line


def percent_line(
    figure: str,
    claim: str,
    paper: str,
    ratios: Sequence[float],
    *,
    least: float | None = None,
    most: float | None = None,
) -> Line:
    """Ratios of two figures, told as a change in per cent; one of `least` on, or of up to `most`, agrees."""
    changes = tuple(100 * (ratio - 1) for ratio in ratios)
    middle = median(changes)
    measured = told(changes, _signed, " %")
    return Line(figure, claim, paper, measured, middle, "%", changes, _agrees(middle, least, most))


def times_line(
    figure: str, claim: str, paper: str, ratios: Sequence[float], *, least: float | None = None
) -> Line:
    """Ratios of two throughputs, told as "times"; `least` is what agrees with the paper."""
    middle, measured = median(ratios), told(ratios, "{:.2f}".format, " ×")
    return Line(figure, claim, paper, measured, middle, "×", tuple(ratios), _agrees(middle, least, None))


def shorter_line(
    figure: str, claim: str, paper: str, ratios: Sequence[float], *, most: float | None = None
) -> Line:
    """Ratios of two latencies: told as a change in per cent, judged as ratios; up to `most` agrees."""
    middle, measured = median(ratios), told(ratios, lambda ratio: _signed(100 * (ratio - 1)), " %")
    agrees = _agrees(middle, None, most)
    return Line(figure, claim, paper, measured, middle, "× as long", tuple(ratios), agrees)


def number_line(
    figure: str, claim: str, paper: str, found: Sequence[float], *, agrees: bool | None = None, unit: str = ""
) -> Line:
    """A number, seed by seed."""
    return Line(figure, claim, paper, told(found, "{:.3g}".format), median(found), unit, tuple(found), agrees)


def series_line(
    figure: str, claim: str, paper: str, found: Sequence[float], *, agrees: bool | None = None, unit: str = ""
) -> Line:
    """What a setting does as it grows: one number after the other."""
    measured = " → ".join(f"{one:.2f}" for one in found) + unit
    return Line(figure, claim, paper, measured, samples=tuple(found), agrees=agrees)


def told(found: Sequence[float], form: Callable[[float], str], unit: str = "") -> str:
    """The median, and of several also the least and the most."""
    spread = f" ({form(min(found))} to {form(max(found))})" if len(found) > 1 else ""
    return f"{form(median(found))}{unit}{spread}"


def bar(line: Line, id: str, target: float) -> Bar:
    """What a line must at least be."""
    return at_least(id, line.value, line.unit, target)


def _signed(percent: float) -> str:
    """A change of nothing is +0."""
    return f"{round(percent, 0) + 0.0:+.0f}"


def _agrees(value: float, least: float | None, most: float | None) -> bool | None:
    if least is None and most is None:
        return None
    return (least is None or value >= least) and (most is None or value <= most)
