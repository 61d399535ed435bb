"""Numbers as people give them. Python takes more for a number than they mean: True, NaN, infinity."""

from __future__ import annotations

from math import inf
from typing import TypeGuard


def is_number(given: object, least: float = -inf, below: float = inf) -> TypeGuard[float]:
    """A number from `least` to below `below`, and finite."""
    if isinstance(given, bool) or not isinstance(given, int | float):
        return False
    return -inf < given < inf and least <= given < below


def is_whole(given: object, least: int = 1) -> TypeGuard[int]:
    """A whole number of at least `least`."""
    return isinstance(given, int) and not isinstance(given, bool) and given >= least
