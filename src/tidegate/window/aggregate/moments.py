"""Merges moments of panes into those of windows: variance, skewness, kurtosis, covariance, correlation.

Paper: Chan, Golub and LeVeque, "Updating Formulae and a Pairwise Algorithm for Computing Sample Variances"
(1979); Pébay, "Formulas for Robust, One-Pass Parallel Computation of Covariances and Arbitrary-Order
Statistical Moments" (2008). The same formulas as Spark's own.

A partial is the number of values, their mean, and sums of powers of the distances from that mean:

    n,  mean,  m2 = Σ (x − mean)²,  m3 = Σ (x − mean)³,  m4 = Σ (x − mean)⁴
    n,  mean of x and of y,  m2 of x and of y,  c = Σ (x − mean x)(y − mean y)

Plain sums of squares would be wrong: for values around 10⁹ that differ by one, all digits cancel.

Stretches slide as in `sliding.py`, with the whole partial in place of one number.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tidegate.window.aggregate.closing import Stretches
from tidegate.window.kernel_types import COLUMNS, INTEGERS, inlined, kernel

Reals: TypeAlias = NDArray[np.float64]
#: The lines of a table of moments: n, mean, m2, m3, m4.
MOMENTS = 5
#: n, mean of x, mean of y, m2 of x, m2 of y, c.
COMOMENTS = 6


def moments(table: Reals, stretches: Stretches) -> Reals:
    """Lines n, mean, m2, and optionally m3 and m4; a column per row, all zero where nothing was counted.

    The result has the same lines, and a column per stretch.
    """
    lines = table.shape[0]
    full = np.zeros((MOMENTS, table.shape[1]))
    full[:lines] = table
    merged: Reals = _slide_moments(full, stretches.begin, stretches.end)
    return np.ascontiguousarray(merged[:, :lines].T)


def comoments(table: Reals, stretches: Stretches) -> Reals:
    """Lines n, mean x, mean y, m2 x, m2 y, c; the result has the same lines per stretch."""
    merged: Reals = _slide_comoments(np.ascontiguousarray(table), stretches.begin, stretches.end)
    return np.ascontiguousarray(merged.T)


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


@kernel(COLUMNS, INTEGERS, INTEGERS)
def _slide_moments(table: Any, begins: Any, ends: Any) -> Any:
    merged, until_mark = np.empty((begins.size, MOMENTS)), np.empty((table.shape[1], MOMENTS))
    n, mean, m2, m3, m4 = table[0], table[1], table[2], table[3], table[4]
    nothing = (0.0, 0.0, 0.0, 0.0, 0.0)
    mark, seen, since = 0, 0, nothing
    for k in range(begins.size):
        begin, end = begins[k], ends[k]
        if begin >= mark:
            until = nothing
            for row in range(end - 1, begin - 1, -1):
                until = _merge_moments((n[row], mean[row], m2[row], m3[row], m4[row]), until)
                for line in range(MOMENTS):
                    until_mark[row, line] = until[line]
            mark, seen, since = end, end, nothing
            whole = until
        else:
            while seen < end:
                since = _merge_moments(since, (n[seen], mean[seen], m2[seen], m3[seen], m4[seen]))
                seen += 1
            left = until_mark[begin]
            whole = _merge_moments((left[0], left[1], left[2], left[3], left[4]), since)
        for line in range(MOMENTS):
            merged[k, line] = whole[line]
    return merged


@kernel(COLUMNS, INTEGERS, INTEGERS)
def _slide_comoments(table: Any, begins: Any, ends: Any) -> Any:
    merged, until_mark = np.empty((begins.size, COMOMENTS)), np.empty((table.shape[1], COMOMENTS))
    n, x, y, xx, yy, c = table[0], table[1], table[2], table[3], table[4], table[5]
    nothing = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    mark, seen, since = 0, 0, nothing
    for k in range(begins.size):
        begin, end = begins[k], ends[k]
        if begin >= mark:
            until = nothing
            for row in range(end - 1, begin - 1, -1):
                until = _merge_comoments((n[row], x[row], y[row], xx[row], yy[row], c[row]), until)
                for line in range(COMOMENTS):
                    until_mark[row, line] = until[line]
            mark, seen, since = end, end, nothing
            whole = until
        else:
            while seen < end:
                since = _merge_comoments(since, (n[seen], x[seen], y[seen], xx[seen], yy[seen], c[seen]))
                seen += 1
            left = until_mark[begin]
            whole = _merge_comoments((left[0], left[1], left[2], left[3], left[4], left[5]), since)
        for line in range(COMOMENTS):
            merged[k, line] = whole[line]
    return merged
