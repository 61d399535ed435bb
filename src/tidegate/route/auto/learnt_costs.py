"""Prices learnt from the measured seconds of instances: never negative, robust, forgetting.

Each instance of each batch is one equation: seconds = prices · counts (`work_costs.py`). Least squares over
all of them, where a batch counts `FORGETTING` times as much with every batch that follows it.

- Times scatter by a part of themselves, a heavy instance's by many seconds. So an equation is weighed by the
  seconds it is about (`_doubt`): the one overloaded instance of a batch says no more than any other, or the
  luck of its one measurement, just when a hot key appears, would set all prices.
- A busy machine slows whole batches. Only ratios of prices decide anything, so earlier batches are taken as
  if measured at the pace of the last one.
- A measurement more than `CLIP` times off what the others of its batch let expect counts as `CLIP` times off:
  one pause of a machine teaches little.
- What the data leave open (rows stored and rows probing are the same rows, until a key is split) stays near
  the counted prices, scaled to seconds and with the fixed price that fits best beside them; the noisier the
  measurements, the more so.

Guarantee: a function of the loads so far, kept as plain JSON. Prices are >= 0 and not all zero. Without
measurements they are the counted ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tidegate.least_squares import held_costs
from tidegate.route.auto.work_costs import COUNTED, FIXED

if TYPE_CHECKING:
    from numpy.typing import NDArray

FORGETTING = 0.9
CLIP = 2.0
#: How strongly prices hold on to the counted ones: at least so much, and otherwise as much as the part of the
#: seconds' variance that prices leave unexplained.
_HOLD_LEAST = 1e-4
#: Less than a nanosecond was not measured.
_LEAST_SECONDS = 1e-9


def learn(
    memory: Mapping[str, Any], counts: NDArray[np.float64], seconds: NDArray[np.float64]
) -> dict[str, Any]:
    """What is remembered after one more batch: sums of products, and the prices that follow."""
    # Instances without any work tell nothing about prices.
    if seconds.size == 0 or not seconds.mean() > _LEAST_SECONDS or not (COUNTED @ counts).any():
        return dict(memory)
    foreseen = prices_in(memory) @ counts
    sums = np.array(memory.get("sums", np.zeros((6, 6))), np.float64)
    # How many times as long as foreseen the whole batch took; only single instances are outliers.
    pace = float(np.median(seconds / np.maximum(foreseen, _LEAST_SECONDS)))
    # Prices may foresee nothing at all of work that did not occur before; then nobody is an outlier.
    known = "prices" in memory and foreseen.mean() > _LEAST_SECONDS
    if known and np.median(seconds) > _LEAST_SECONDS:
        seconds = np.clip(seconds, pace * foreseen / CLIP, pace * foreseen * CLIP)
        # The counts of earlier batches, per second at this pace.
        sums[:5] /= pace
        sums[:, :5] /= pace
    # Six rows: the counts and the seconds.
    made = np.vstack([counts, seconds]) / _doubt(foreseen, seconds)
    sums = FORGETTING * sums + made @ made.T / seconds.size
    return {"sums": sums.tolist(), "prices": _fit(sums).tolist()}


def prices_in(memory: Mapping[str, Any]) -> NDArray[np.float64]:
    """The prices that a memory holds; the counted ones where nothing was measured."""
    return np.array(memory.get("prices", COUNTED), np.float64)


def _doubt(foreseen: NDArray[np.float64], seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """By how many seconds each measurement may be off, up to a common factor.

    In proportion to what was foreseen of it; halfway to the mean, because that was a guess.
    """
    share = foreseen / max(float(foreseen.mean()), _LEAST_SECONDS)
    return np.asarray(seconds.mean() * (1 + share) / 2)


def _fit(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    products, times, squares = sums[:5, :5], sums[:5, 5], sums[5, 5]
    prices = _held(products, times, _HOLD_LEAST)
    unexplained = float(squares - 2 * prices @ times + prices @ products @ prices) / squares
    return _held(products, times, max(_HOLD_LEAST, unexplained))


def _held(products: NDArray[np.float64], times: NDArray[np.float64], hold: float) -> NDArray[np.float64]:
    """Least squares held near the counted prices."""
    near = _scaled(products, times, hold)
    occurs = np.diag(products) > 0
    # In units of what each part contributed, so that seconds per row and per batch can be weighed alike.
    unit = np.sqrt(np.where(occurs, np.diag(products), 1.0))
    prices = held_costs(products, times, unit, occurs, np.full(5, hold), near)
    # What never occurs in this join keeps its counted price.
    return np.where(occurs, prices, near)


def _scaled(products: NDArray[np.float64], times: NDArray[np.float64], hold: float) -> NDArray[np.float64]:
    """The counted prices in seconds, and a fixed price beside them: two unknowns, which one batch can tell.

    Nothing is fixed where work is so even that the two cannot be told apart, or where data contradict.
    """
    basis = np.stack([np.eye(5)[FIXED], COUNTED])
    matrix, wanted = basis @ products @ basis.T, basis @ times
    matrix[0, 0] *= 1 + hold
    fixed, scale = np.linalg.solve(matrix, wanted)
    if fixed < 0 or scale <= 0:
        fixed, scale = 0.0, wanted[1] / matrix[1, 1]
    return np.asarray((fixed, scale) @ basis)
