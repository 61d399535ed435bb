"""Windows by their definition: for every window and group, all rows that lie in it, in plain Python."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

Row = tuple[Any, int, Any]


def windows_of_rows(
    rows: Iterable[Row], size: int, slide: int, first: int, stop: int
) -> dict[tuple[Any, int], list[Any]]:
    """(group, window) → values, for rows (group, time, value) and windows first … stop − 1."""
    held: dict[tuple[Any, int], list[Any]] = defaultdict(list)
    for group, time, value in rows:
        for window in range(first, stop):
            if window * slide <= time < window * slide + size:
                held[group, window].append(value)
    return dict(held)


def present(values: Sequence[Any]) -> list[Any]:
    return [value for value in values if value is not None]


def null_if_none(function: Callable[[list[Any]], Any], least: int = 1) -> Callable[[Sequence[Any]], Any]:
    """As SQL does it: nulls are left out, and of too few values the result is null."""

    def apply(values: Sequence[Any]) -> Any:
        kept = present(values)
        return function(kept) if len(kept) >= least else None

    return apply


def central_moment(values: Sequence[float], power: int) -> float:
    """Σ (x − mean)^power, exactly rounded."""
    exact = [Fraction(value) for value in values]
    mean = sum(exact) / len(exact)
    return float(sum((value - mean) ** power for value in exact))
