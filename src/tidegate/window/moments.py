"""Moments of panes into moments of windows: variance, skewness, kurtosis, covariance, correlation.

Paper: Chan, Golub and LeVeque, "Updating Formulae and a Pairwise Algorithm for Computing Sample Variances"
(1979); Pébay, "Formulas for Robust, One-Pass Parallel Computation of Covariances and Arbitrary-Order
Statistical Moments" (2008). The same formulas as Spark's own.

A partial is the number of values, their mean, and sums of powers of the distances from that mean:

    n,  mean,  m2 = Σ (x − mean)²,  m3 = Σ (x − mean)³,  m4 = Σ (x − mean)⁴
    n,  mean of x and of y,  m2 of x and of y,  c = Σ (x − mean x)(y − mean y)

Sums of squares would be simpler and wrong: for values around 10⁹ that differ by one nothing is left of them.

Stretches slide as in `sliding.py`, with the whole partial in the place of one number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tidegate.window.kernel import COLUMNS, INTEGERS, inlined, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tidegate.window.closing import Stretches

    Reals = NDArray[np.float64]

#: The lines of a table of moments: n, mean, m2, m3, m4.
MOMENTS = 5
#: n, mean of x, mean of y, m2 of x, m2 of y, c.
COMOMENTS = 6


def moments(table: Reals, stretches: Stretches) -> Reals:
    """Lines n, mean, m2, and perhaps m3 and m4; a column per row, all zero where nothing was counted.

    The result has the same lines, and a column per stretch.
    """
    lines = table.shape[0]
    full = np.zeros((MOMENTS, table.shape[1]))
    full[:lines] = table
    merged: Reals = _slide_moments(full, stretches.begin, stretches.end)
    return merged[:lines]


def comoments(table: Reals, stretches: Stretches) -> Reals:
    """Lines n, mean x, mean y, m2 x, m2 y, c; the same of every stretch."""
    merged: Reals = _slide_comoments(np.ascontiguousarray(table), stretches.begin, stretches.end)
    return merged


@inlined
def _merge_moments(one: Any, other: Any) -> Any:
    n1, mean1, m21, m31, m41 = one
    n2, mean2, m22, m32, m42 = other
    if n1 == 0:
        return other
    if n2 == 0:
        return one
    n, delta = n1 + n2, mean2 - mean1
    d = delta / n
    cross = delta * d * n1 * n2
    return (
        n,
        mean1 + d * n2,
        m21 + m22 + cross,
        m31 + m32 + cross * d * (n1 - n2) + 3.0 * d * (n1 * m22 - n2 * m21),
        m41
        + m42
        + cross * d * d * (n1 * n1 - n1 * n2 + n2 * n2)
        + 6.0 * d * d * (n1 * n1 * m22 + n2 * n2 * m21)
        + 4.0 * d * (n1 * m32 - n2 * m31),
    )


@inlined
def _merge_comoments(one: Any, other: Any) -> Any:
    n1, x1, y1, xx1, yy1, c1 = one
    n2, x2, y2, xx2, yy2, c2 = other
    if n1 == 0:
        return other
    if n2 == 0:
        return one
    n, dx, dy = n1 + n2, x2 - x1, y2 - y1
    weight = n1 * n2 / n
    return (
        n,
        x1 + dx / n * n2,
        y1 + dy / n * n2,
        xx1 + xx2 + dx * dx * weight,
        yy1 + yy2 + dy * dy * weight,
        c1 + c2 + dx * dy * weight,
    )


@inlined
def _moments_at(table: Any, row: Any) -> Any:
    return table[0, row], table[1, row], table[2, row], table[3, row], table[4, row]


@inlined
def _comoments_at(table: Any, row: Any) -> Any:
    return table[0, row], table[1, row], table[2, row], table[3, row], table[4, row], table[5, row]


@inlined
def _put(table: Any, row: Any, values: Any) -> None:
    for line in range(len(values)):
        table[line, row] = values[line]


@kernel(COLUMNS, INTEGERS, INTEGERS)
def _slide_moments(table: Any, begins: Any, ends: Any) -> Any:
    merged, until_mark = np.empty((MOMENTS, begins.size)), np.empty(table.shape)
    nothing = (0.0, 0.0, 0.0, 0.0, 0.0)
    mark, seen, since = 0, 0, nothing
    for k in range(begins.size):
        begin, end = begins[k], ends[k]
        if begin >= mark:
            until = nothing
            for row in range(end - 1, begin - 1, -1):
                until = _merge_moments(_moments_at(table, row), until)
                _put(until_mark, row, until)
            mark, seen, since = end, end, nothing
            _put(merged, k, until)
        else:
            while seen < end:
                since = _merge_moments(since, _moments_at(table, seen))
                seen += 1
            _put(merged, k, _merge_moments(_moments_at(until_mark, begin), since))
    return merged


@kernel(COLUMNS, INTEGERS, INTEGERS)
def _slide_comoments(table: Any, begins: Any, ends: Any) -> Any:
    merged, until_mark = np.empty((COMOMENTS, begins.size)), np.empty(table.shape)
    nothing = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    mark, seen, since = 0, 0, nothing
    for k in range(begins.size):
        begin, end = begins[k], ends[k]
        if begin >= mark:
            until = nothing
            for row in range(end - 1, begin - 1, -1):
                until = _merge_comoments(_comoments_at(table, row), until)
                _put(until_mark, row, until)
            mark, seen, since = end, end, nothing
            _put(merged, k, until)
        else:
            while seen < end:
                since = _merge_comoments(since, _comoments_at(table, seen))
                seen += 1
            _put(merged, k, _merge_comoments(_comoments_at(until_mark, begin), since))
    return merged
