"""Cost of an operator: fixed + per row + per comparison + per output + per byte, learnt online.

Recursive least squares with exponential forgetting; costs are never negative. Steady input does not determine
all five costs; each is pulled towards its last value, the more the noisier batches are (as in a Kalman
filter), and the main cost least, so it absorbs what the others do not explain. The main cost is the one that
the first batch is attributed to: comparisons, else rows; for time that no task reports the fixed cost.

One guard against outliers: an error far above the usual one is clipped. If the next batch errs to the same
side, costs have changed: it counts in full, and earlier batches little. The scale of every part is remembered
while hardly any of that work is done; otherwise a join that skips nearly all pairs would come to treat
comparisons as free.

Guarantee: a function of the batches observed, in order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from sys import float_info
from typing import TYPE_CHECKING

import numpy as np

from tidegate.control.goal.control_tuning import TUNING, LoadTuning
from tidegate.least_squares import held_costs

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Parts of the effort: rows, comparisons, outputs, bytes. With the fixed cost, one more.
PARTS = len(("rows", "comparisons", "outputs", "bytes"))
_FIXED, _ROW, _COMPARISON = range(PARTS - 1)


@dataclass(frozen=True)
class Effort:
    """What an operator does in a batch."""

    rows: float = 0.0
    #: Pairs that a join probes; rows that a match tries.
    comparisons: float = 0.0
    outputs: float = 0.0
    bytes: float = 0.0

    @property
    def parts(self) -> NDArray[np.float64]:
        return np.array([self.rows, self.comparisons, self.outputs, self.bytes])

    @classmethod
    def total(cls, efforts: Iterable[Effort]) -> Effort:
        return cls(*np.sum([np.zeros(PARTS), *(effort.parts for effort in efforts)], axis=0).tolist())


def _nothing() -> list[float]:
    return [0.0] * (PARTS + 1)


@dataclass
class CostModel:
    """Seconds as a function of effort; its fields are all that it remembers."""

    #: Seconds: fixed, per row, per comparison, per output, per byte.
    costs: list[float] = field(default_factory=_nothing)
    #: Weighted sums over batches of effort · effortᵀ and effort · seconds.
    products: list[list[float]] = field(default_factory=lambda: [_nothing() for _ in _nothing()])
    times: list[float] = field(default_factory=_nothing)
    #: The largest recent size of each part, in the units of `products`.
    scale: list[float] = field(default_factory=_nothing)
    #: The part that absorbs errors; -1 before the first batch.
    main: int = -1
    #: The usual error and the usual time, in seconds, and the sign of the last error if it was clipped.
    error: float = 0.0
    time: float = 0.0
    clipped: int = 0

    @property
    def is_blank(self) -> bool:
        return self.main < 0

    @property
    def fixed(self) -> float:
        return self.costs[_FIXED]

    @property
    def rates(self) -> NDArray[np.float64]:
        """Seconds per row, comparison, output and byte."""
        return np.array(self.costs[1:])

    @property
    def has_rows(self) -> bool:
        """Whether a batch with rows was observed."""
        return self.scale[_ROW] > 0

    def seconds(self, effort: Effort) -> float:
        """What this effort is expected to take."""
        return float(np.dot(self.costs, np.append(1.0, effort.parts)))

    def observe(
        self,
        effort: Effort,
        seconds: float,
        tuning: LoadTuning = TUNING.load,
        first_work: float = 1.0,
        last: float | None = None,
    ) -> None:
        """Learn from one batch.

        `first_work`: the part of the first time attributed to work; `last`: the last cost, if it is known.
        """
        made = np.append(1.0, effort.parts)
        if self.is_blank:
            self.guess(effort, seconds, tuning, first_work)
        if last is not None:
            self.costs[-1] = last
        expected = self.seconds(effort)
        before = np.array(self.scale)
        known = bool((made <= 2 * before).all())
        seconds, past = self._believed(seconds, expected, known, tuning)
        products = past * np.array(self.products) + np.outer(made, made)
        times = past * np.array(self.times) + made * seconds
        self.scale = np.maximum((1 - 1 / tuning.scale_memory) * before, made).tolist()
        self.products, self.times = products.tolist(), times.tolist()
        # A cost is known as well as its part was large before: more work than ever says more about it.
        unit = np.where(before > 0, before, np.where(made > 0, made, 1.0))
        noise = max(tuning.noise_least, self.error / max(self.time, float_info.epsilon))
        hold = np.full(PARTS + 1, (noise / tuning.drift) ** 2)
        hold[(before == 0) | (np.arange(PARTS + 1) == self.main)] *= tuning.absorbs
        used = np.array(self.scale) > 0
        near = np.array(self.costs)
        if last is not None:
            used[-1], times = False, times - last * products[-1]
        costs = held_costs(products, times, unit, used, hold, near)
        if not costs[self.main]:
            # What the main cost cannot absorb, because it would be negative, others do.
            costs = held_costs(products, times, unit, used, tuning.absorbs * hold, near)
        self.costs = costs.tolist()
        self.costs[-1] = self.costs[-1] if last is None else last

    def guess(
        self, effort: Effort, seconds: float, tuning: LoadTuning = TUNING.load, first_work: float = 1.0
    ) -> None:
        """Attribute the first time to the main cost, without learning from it yet."""
        work = _COMPARISON if effort.comparisons else _ROW
        count = max(effort.comparisons or effort.rows, 1.0)
        self.costs[_FIXED], self.costs[work] = (1 - first_work) * seconds, first_work * seconds / count
        self.main = work if first_work == 1 else _FIXED
        self.error, self.time = tuning.noise_first * seconds, seconds

    def _believed(
        self, seconds: float, expected: float, known: bool, tuning: LoadTuning
    ) -> tuple[float, float]:
        """The seconds to learn from, and the factor on the weight of earlier batches.

        `known`: there was about as much work before, so a large error is not that of an extrapolation.
        """
        off = seconds - expected
        bound = tuning.clip * max(self.error, tuning.noise_least * expected)
        side = 0 if abs(off) <= bound else 1 if off > 0 else -1
        changed, self.clipped = side and side == self.clipped, side
        self.error += (min(abs(off), bound) - self.error) / tuning.memory
        self.time += (seconds - self.time) / tuning.memory
        if not known:
            return seconds, 1.0
        if changed:
            return seconds, tuning.change
        return expected + max(-bound, min(bound, off)), 1 - 1 / tuning.memory
