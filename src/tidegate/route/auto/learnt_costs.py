"""Prices learnt from the measured seconds of instances: never negative, robust, forgetting.

Each instance of each batch is one equation: seconds = prices · counts (`work_costs.py`). Least squares over
all of them, where a batch counts `FORGETTING` times as much with every batch that follows it. What the data
leave open (rows stored and rows probing are the same rows, until a key is split) stays near the counted
prices, scaled to seconds; the noisier the measurements, the more so. A measurement more than `CLIP` times
off what the others of its batch let expect counts as `CLIP` times off, so that one pause of a machine teaches
little.

Guarantee: a function of the loads so far, kept as plain JSON. Prices are >= 0 and not all zero. Without
measurements they are the counted ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tidegate.route.auto.work_costs import COUNTED

if TYPE_CHECKING:
    from numpy.typing import NDArray

FORGETTING = 0.9
CLIP = 2.0
#: How strongly prices hold on to the counted ones: at least so much, and so much per unexplained variance.
_HOLD, _HOLD_BY_NOISE = 1e-4, 0.2
#: Less than a nanosecond was not measured.
_LEAST_SECONDS = 1e-9


def learn(
    memory: Mapping[str, Any], counts: NDArray[np.float64], seconds: NDArray[np.float64]
) -> dict[str, Any]:
    """What is remembered after one more batch: sums of products, and the prices that follow."""
    if seconds.size == 0 or not seconds.mean() > _LEAST_SECONDS:
        return dict(memory)
    if "prices" in memory:
        foreseen = prices_in(memory) @ counts
        # The whole batch may be slower (a busy machine); only single instances are outliers.
        slower = float(np.median(seconds / np.maximum(foreseen, _LEAST_SECONDS)))
        if slower > 0:
            seconds = np.clip(seconds, slower * foreseen / CLIP, slower * foreseen * CLIP)
    # Six rows: the counts and the seconds. In units of the batch's size, so that small batches teach as well.
    made = np.vstack([counts, seconds]) / max(float((COUNTED @ counts).mean()), 1.0)
    old = np.array(memory.get("sums", np.zeros((6, 6))), np.float64)
    sums = FORGETTING * old + made @ made.T / seconds.size
    return {"sums": sums.tolist(), "prices": _fit(sums).tolist()}


def prices_in(memory: Mapping[str, Any]) -> NDArray[np.float64]:
    """The prices that a memory holds; the counted ones where nothing was measured."""
    return np.array(memory.get("prices", COUNTED), np.float64)


def _fit(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    products, times, squares = sums[:5, :5], sums[:5, 5], sums[5, 5]
    prices = _held(products, times, _HOLD)
    unexplained = max(float(squares - 2 * prices @ times + prices @ products @ prices), 0.0) / squares
    return _held(products, times, max(_HOLD, _HOLD_BY_NOISE * unexplained))


def _held(products: NDArray[np.float64], times: NDArray[np.float64], hold: float) -> NDArray[np.float64]:
    """Least squares held near the counted prices; a negative price becomes zero and we solve again."""
    scale = (COUNTED @ times) / (COUNTED @ products @ COUNTED)
    occurs = np.diag(products) > 0
    # In units of what each part contributed, so that seconds per row and per batch can be weighed alike.
    unit = np.sqrt(np.where(occurs, np.diag(products), 1.0))
    matrix = products / np.outer(unit, unit) + hold * np.eye(5)
    wanted = times / unit + hold * scale * COUNTED * unit
    used = occurs
    while True:
        parts = np.zeros(5)
        parts[used] = np.linalg.solve(matrix[np.ix_(used, used)], wanted[used])
        if (parts >= 0).all():
            break
        used = used & (parts > 0)
    # What never occurs in this join keeps its counted price.
    return np.where(occurs, parts / unit, scale * COUNTED)
