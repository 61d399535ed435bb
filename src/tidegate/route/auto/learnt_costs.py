"""Learns prices from the measured seconds of instances: non-negative, robust, with exponential forgetting.

Each instance of each batch gives one equation: seconds = prices · counts (`work_costs.py`). The prices are
the least squares solution over all of them, where the weight of a batch is multiplied by `FORGETTING` with
every batch that follows.

- Measurement errors are proportional to the measured time, so an equation is weighted by its seconds
  (`_doubt`): the one overloaded instance of a batch counts no more than any other.
- A busy machine slows whole batches. Only ratios of prices matter, so earlier batches are rescaled to the
  pace of the last one.
- A measurement more than `CLIP` times off its prediction, relative to the others of its batch, counts as
  `CLIP` times off: one pause of a machine changes little.
- Prices that the data leave undetermined (rows stored and rows probing are the same rows until a key is
  split) stay near the counted prices, scaled to seconds and with the fixed price that fits best beside
  them. The noisier the measurements, the stronger this regularisation.

Guarantee: a function of the loads so far, kept as plain JSON. Prices are >= 0 and not all zero. Without
measurements they are the counted prices.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.least_squares import held_costs
from tidegate.model.json_values import Snapshot
from tidegate.route.auto.work_costs import COUNTED, FIXED

FORGETTING = 0.9
CLIP = 2.0
#: Strength of the regularisation towards the counted prices: at least this, and otherwise the part of the
#: seconds' variance that the prices leave unexplained.
_HOLD_LEAST = 1e-4
#: Times below a nanosecond count as not measured.
_LEAST_SECONDS = 1e-9


def learn(memory: Mapping[str, Any], counts: NDArray[np.float64], seconds: NDArray[np.float64]) -> Snapshot:
    """The memory after one more batch: sums of products, and the prices that follow."""
    # Instances without work carry no information about prices.
    if seconds.size == 0 or not seconds.mean() > _LEAST_SECONDS or not (COUNTED @ counts).any():
        return dict(memory)
    foreseen = prices_in(memory) @ counts
    sums = np.array(memory.get("sums", np.zeros((6, 6))), np.float64)
    # Ratio of measured to predicted time of the whole batch; only single instances can be outliers.
    pace = float(np.median(seconds / np.maximum(foreseen, _LEAST_SECONDS)))
    # Prices may predict zero for work that did not occur before; then there are no outliers.
    known = "prices" in memory and foreseen.mean() > _LEAST_SECONDS
    if known and np.median(seconds) > _LEAST_SECONDS:
        seconds = np.clip(seconds, pace * foreseen / CLIP, pace * foreseen * CLIP)
        # Rescale the counts of earlier batches to this pace.
        sums[:5] /= pace
        sums[:, :5] /= pace
    # Six rows: five counts and the seconds.
    made = np.vstack([counts, seconds]) / _doubt(foreseen, seconds)
    sums = FORGETTING * sums + made @ made.T / seconds.size
    return {"sums": sums.tolist(), "prices": _fit(sums).tolist()}


def prices_in(memory: Mapping[str, Any]) -> NDArray[np.float64]:
    """The prices in a memory; the counted prices where nothing was measured."""
    return np.array(memory.get("prices", COUNTED), np.float64)


def _doubt(foreseen: NDArray[np.float64], seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """The expected error of each measurement in seconds, up to a common factor.

    Proportional to the prediction, pulled halfway to the mean because the prediction is a guess.
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
    # In units of each part's contribution, so that seconds per row and per batch are comparable.
    unit = np.sqrt(np.where(occurs, np.diag(products), 1.0))
    prices = held_costs(products, times, unit, occurs, np.full(5, hold), near)
    # What never occurs in this join keeps its counted price.
    return np.where(occurs, prices, near)


def _scaled(products: NDArray[np.float64], times: NDArray[np.float64], hold: float) -> NDArray[np.float64]:
    """The counted prices in seconds, and a fixed price beside them: two unknowns, which one batch determines.

    The fixed price is zero where work is too even to separate the two, or where the data contradict it.
    """
    basis = np.stack([np.eye(5)[FIXED], COUNTED])
    matrix, wanted = basis @ products @ basis.T, basis @ times
    matrix[0, 0] *= 1 + hold
    fixed, scale = np.linalg.solve(matrix, wanted)
    if fixed < 0 or scale <= 0:
        fixed, scale = 0.0, wanted[1] / matrix[1, 1]
    return np.asarray((fixed, scale) @ basis)
