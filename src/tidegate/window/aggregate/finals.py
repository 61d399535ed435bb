"""Computes the result of a window from its merged partials: the formulas of the catalogue.

Formulas and NULLs are those of Spark: a variance of one value is NULL as a sample and 0 as a population;
skewness, kurtosis and correlation are NULL where a variance is zero. (`corr` of a constant: Spark with ANSI
on would divide by zero.) Averages of decimals have four more digits after the point, or as many as fit into
38, rounded half away from zero. They are computed one by one with Python's integers: exact, but slower. An
average of more than 38 digits fails the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import BatchFailed
from tidegate.window.aggregate.columns import Column
from tidegate.window.aggregate.sums import decimal_words, unscaled

Reals: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]
#: Spark's average of decimal(p, s) has s + 4 digits after the point, as long as that is at most 38.
AVERAGE_DIGITS = 4


def finish(final: str, parts: Sequence[Column], *, digits: int = AVERAGE_DIGITS) -> Column:
    """The result column of a formula over the merged partial columns, in the order of the catalogue.

    `digits`: the digits after the point that an average of decimals has in addition to their sum.
    """
    if final == "avg of decimals":
        return _decimal_averages(parts[0], parts[1], digits)
    if final not in _FORMULAS:
        return parts[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        values, valid = _FORMULAS[final](*(part.values for part in parts))
    return Column(np.where(valid, values, 0.0), None if valid.all() else valid)


def _decimal_averages(sums: Column, counts: Column, digits: int) -> Column:
    """Averages of decimals of scale s, as decimals of scale s + digits."""
    quotients = [
        _half_up(unscaled(words) * 10**digits, count) if count else 0
        for words, count in zip(sums.values, counts.values.tolist(), strict=True)
    ]
    if any(abs(quotient) >= 10**38 for quotient in quotients):
        raise BatchFailed(
            "An average does not fit into 38 digits",
            code="AGGREGATE_OVERFLOW",
            why="Cut to 128 bits, it would be a wrong number",
            do="Cast the argument to a decimal of fewer digits, or to double",
        )
    valid = counts.values > 0
    return Column(decimal_words(quotients), None if valid.all() else valid)


def _half_up(value: int, divisor: int) -> int:
    magnitude = (2 * abs(value) + divisor) // (2 * divisor)
    return magnitude if value >= 0 else -magnitude


def _average(total: Reals, count: NDArray[np.int64]) -> tuple[Reals, Flags]:
    return total / count, count > 0


def _variance(less: int) -> Callable[..., tuple[Reals, Flags]]:
    return lambda n, _, m2: (m2 / (n - less), n > less)


def _deviation(less: int) -> Callable[..., tuple[Reals, Flags]]:
    return lambda n, _, m2: (np.sqrt(m2 / (n - less)), n > less)


def _covariance(less: int) -> Callable[..., tuple[Reals, Flags]]:
    return lambda n, _x, _y, _xx, _yy, c: (c / (n - less), n > less)


def _skewness(n: Reals, _: Reals, m2: Reals, m3: Reals) -> tuple[Reals, Flags]:
    return np.sqrt(n) * m3 / np.sqrt(m2 * m2 * m2), (n > 0) & (m2 != 0)


def _kurtosis(n: Reals, _: Reals, m2: Reals, __: Reals, m4: Reals) -> tuple[Reals, Flags]:
    return n * m4 / (m2 * m2) - 3.0, (n > 0) & (m2 != 0)


def _correlation(n: Reals, _x: Reals, _y: Reals, xx: Reals, yy: Reals, c: Reals) -> tuple[Reals, Flags]:
    return c / np.sqrt(xx * yy), (n > 1) & (xx * yy != 0)


_FORMULAS: dict[str, Callable[..., tuple[Reals, Flags]]] = {
    "avg": _average,
    "var_samp": _variance(1),
    "var_pop": _variance(0),
    "stddev_samp": _deviation(1),
    "stddev_pop": _deviation(0),
    "skewness": _skewness,
    "kurtosis": _kurtosis,
    "covar_samp": _covariance(1),
    "covar_pop": _covariance(0),
    "corr": _correlation,
}
