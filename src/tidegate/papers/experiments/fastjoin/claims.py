"""Lines about two settings compared, seed by seed: so much more throughput, so much less latency."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from tidegate.papers.experiments.experiment import Line, percent_line

more_line = percent_line


def less_line(
    figure: str, claim: str, paper: str, ratios: Sequence[float], *, most: float | None = None
) -> Line:
    """Ratios of two latencies, told as a change in per cent; one of at most `most` agrees with the paper."""
    line = percent_line(figure, claim, paper, ratios)
    agrees = None if most is None or line.value is None else line.value <= most
    return Line(figure, claim, paper, line.measured, line.value, "%", line.samples, agrees)


def number_line(
    figure: str, claim: str, paper: str, found: Sequence[float], *, agrees: bool | None = None, unit: str = ""
) -> Line:
    """A number, seed by seed."""
    spread = f" ({min(found):.3g} to {max(found):.3g})" if len(found) > 1 else ""
    middle = median(found)
    return Line(figure, claim, paper, f"{middle:.3g}{spread}", middle, unit, tuple(found), agrees)
