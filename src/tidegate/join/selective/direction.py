"""Join direction adaptation: the fraction of each window to process when one is more productive.

Paper: selective join, join direction adaptation, algorithm 4.

Comparing all new rows with a fraction r₁ of one window and r₂ of the other costs, per second,
r₁ · λ₂ · (λ₁ w₁) + r₂ · λ₁ · (λ₂ w₂). The rates cancel: the cost equals that of one fraction r for both as
long as

    r₁ w₁ + r₂ w₂ = r (w₁ + w₂).

The more productive window gets as much as it can use, the other one the rest.

Guarantee: the equation holds exactly (up to rounding), and 0 <= r₁, r₂ <= 1. Windows may differ in length,
and one may be zero. A tie goes to the first window, as in algorithm 4.

Where text and algorithm disagree: the running example says to take from W₂ first, although its own argument
(rows that match a new row of S₁ wait in W₂) makes W₁ the less useful one. Algorithm 4 compares o₁ and o₂, and
so do we.
"""

from __future__ import annotations


def directed_fractions(
    fraction: float, windows: tuple[float, float], values: tuple[float, float]
) -> tuple[float, float]:
    """Fractions r₁ and r₂ of the two windows, for the same cost as `fraction` of both."""
    first, second = windows
    work = min(max(fraction, 0.0), 1.0) * (first + second)
    # A window of length zero costs nothing whatever its fraction, so it keeps the common one.
    if first == 0 or second == 0:
        return fraction, fraction
    if values[0] >= values[1]:
        preferred = min(1.0, work / first)
        return preferred, _clipped((work - preferred * first) / second)
    preferred = min(1.0, work / second)
    return _clipped((work - preferred * second) / first), preferred


def _clipped(fraction: float) -> float:
    """The fraction within [0, 1], which rounding may have left."""
    return min(max(fraction, 0.0), 1.0)
