"""Rows of a simulated stream whose rate changes from second to second."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def counts(rates: Sequence[int], before: float, now: float) -> Iterator[tuple[float, float, int]]:
    """Begin, end and number of rows of every second, or part of one, between two moments."""
    for second in range(int(before), int(now) + 1):
        begin, end = max(before, second), min(now, second + 1)
        yield begin, end, round(rates[min(second, len(rates) - 1)] * max(0.0, end - begin))
