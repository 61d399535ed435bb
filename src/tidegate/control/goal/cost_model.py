"""What an operator's time is made of: fixed + per row + per comparison + per output + per byte, learnt
online.

Least squares over all batches so far, where a batch counts `forgetting` times as much with every batch that
follows it, so that a machine that becomes slower is noticed. Costs are never negative. Steady input cannot
tell the five apart; what the data leave open stays near the last answer, and where there is none, near
"comparisons cost everything", the assumption of the selective join paper (section 4.1); near "rows cost
everything" where an operator compares nothing. Of a batch that nobody explains, most is fixed cost: there
(`to_fixed`) that gives way first, and work is at first thought to cost what rows usually do.

How strongly an answer is held grows with the noise: where batches that do the same take now one second and
now two, a batch with a few more rows that took longer says nothing about what rows cost.

One batch that is off by far more than others were is an outlier (a pause, a neighbour) and counts as if it
were off by little. The second in a row, to the same side, is a change: it counts in full, and what was before
it counts little. Both are ours. What something costs is remembered while hardly any of it is done: a join
that skips nearly everything would otherwise forget what comparisons cost, and take them for free.

Guarantee: a function of the batches observed, in order; exact (up to the pull of the last answer) as soon as
five batches that differ enough have been seen; `snapshot` → `restore` gives the same answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tidegate.errors import FlowError
from tidegate.least_squares import held_costs
from tidegate.model.json_values import Snapshot

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Fixed, rows, comparisons, outputs, bytes.
_PARTS = 5
#: How strongly costs hold on to their last values, relative to the data, at least; and by what part of that
#: the one does that gives way first: unexplained time is put down to it.
_HOLD, _LEAST, _LEAST_FIXED = 1e-3, 0.1, 0.01
_FIXED, _ROW, _COMPARISON = 0, 1, 2
#: Costs are thought to change by this part of a batch's time from one batch to the next: the noise that a
#: batch has on top is no change.
_CHANGE = 0.1
#: What is called much of a part becomes less by this factor with every batch.
_LESS = 0.98
#: A batch is off when it errs by so many times what is usual, once so many have told what that is.
_OFF, _USUAL_AFTER = 4.0, 5
#: No error is told from chance below this part of the time.
_CHANCE = 0.02
#: Of what nobody measures, a row is first thought to cost so much, and all of them at most this part.
_ROW_SECONDS, _OF_WORK = 2e-5, 0.5
#: Noise of what nobody measures, before it is known.
_NOISE_FIRST = 0.15
#: Weight of the last error in what is usual, and what is left of all that was before a change.
_NEWS, _LEFT_AFTER_CHANGE = 0.2, 0.3


@dataclass(frozen=True)
class Effort:
    """What an operator does in a batch."""

    rows: float = 0.0
    #: Pairs that a join looks at; rows that a match tries.
    comparisons: float = 0.0
    outputs: float = 0.0
    bytes: float = 0.0

    @property
    def parts(self) -> NDArray[np.float64]:
        return np.array([self.rows, self.comparisons, self.outputs, self.bytes])

    @classmethod
    def total(cls, efforts: Iterable[Effort]) -> Effort:
        return cls(*np.sum([np.zeros(_PARTS - 1), *(effort.parts for effort in efforts)], axis=0).tolist())


@dataclass(frozen=True)
class CostSettings:
    """Less forgetting averages more noise away, more follows a changing machine faster."""

    forgetting: float = 0.85
    #: Put down what nothing explains to the fixed cost, not to the work that is done.
    to_fixed: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.forgetting <= 1:
            raise FlowError(
                "A batch must keep some of its weight, and cannot gain any",
                got=f"forgetting {self.forgetting}",
                do="Give a number above 0, at most 1",
            )


class CostModel:
    """Seconds from what is done."""

    def __init__(self, settings: CostSettings | None = None) -> None:
        self.settings = settings or CostSettings()
        #: Seconds: fixed, per row, per comparison, per output, per byte.
        self.costs: NDArray[np.float64] = np.zeros(_PARTS)
        self._products = np.zeros((_PARTS, _PARTS))
        self._times = np.zeros(_PARTS)
        #: The largest size of each part of late.
        self._much = np.zeros(_PARTS)
        #: Batches so far, what they usually err by, and to which side the last one was off.
        self._seen, self._usual, self._off = 0, 0.0, 0
        #: What a batch usually takes.
        self._time = 0.0

    @property
    def fixed(self) -> float:
        return float(self.costs[0])

    @property
    def seen(self) -> int:
        """Batches that it was taught by."""
        return self._seen

    @property
    def rates(self) -> NDArray[np.float64]:
        """Seconds per row, comparison, output and byte."""
        return self.costs[1:]

    def observe(self, effort: Effort, seconds: float) -> None:
        """Learn from one batch."""
        made = np.append(1.0, effort.parts)
        if self.settings.to_fixed and not self._seen:
            self._guess(effort, seconds)
        weight, kept = self._judge(seconds, float(self.costs @ made))
        self._products = kept * self._products + weight * np.outer(made, made)
        self._times = kept * self._times + weight * made * seconds
        self._fit()

    def _guess(self, effort: Effort, seconds: float) -> None:
        """Before anything can be told apart: work costs what rows usually do, at most half of all."""
        part = _COMPARISON if effort.comparisons else _ROW
        count = max(effort.comparisons or effort.rows, 1.0)
        of_work = min(_ROW_SECONDS * count, _OF_WORK * seconds)
        self.costs[_FIXED], self.costs[part] = seconds - of_work, of_work / count

    def _judge(self, seconds: float, expected: float) -> tuple[float, float]:
        """The weight of a batch, and what is left of those before it."""
        error = seconds - expected
        side = 1 if error > 0 else -1
        bound = _OFF * max(self._usual, _CHANCE * expected)
        known, off = self._seen >= _USUAL_AFTER, abs(error) > bound
        changed = known and off and side == self._off
        outlier = known and off and not changed
        if self._seen:
            # What is off says nothing about what is usual.
            self._usual += _NEWS * (min(abs(error), bound if known and off else abs(error)) - self._usual)
        self._seen += 1
        self._time += (seconds - self._time) * max(_NEWS, 1 / self._seen)
        self._off = side if outlier else 0
        if changed:
            return 1.0, _LEFT_AFTER_CHANGE
        return (bound / abs(error) if outlier else 1.0), self.settings.forgetting

    def _fit(self) -> None:
        """Least squares, held near the last answer."""
        # In units of what each part contributed while there was much of it, so that seconds per row and per
        # batch can be weighed alike, and a part of which next to nothing is left says nothing about its cost.
        self._much = np.maximum(_LESS * self._much, np.sqrt(np.diag(self._products)))
        used = self._much > 0
        unit = np.where(used, self._much, 1.0)
        hold = np.full(_PARTS, max(_HOLD, self._noise() ** 2 * (1 - self.settings.forgetting) / _CHANGE**2))
        if self.settings.to_fixed:
            hold[_FIXED] *= _LEAST_FIXED
        else:
            hold[_COMPARISON if used[_COMPARISON] else _ROW] *= _LEAST
        self.costs = held_costs(self._products, self._times, unit, used, hold, self.costs)

    def _noise(self) -> float:
        """What batches are usually off by, as a part of their time."""
        if self._seen < _USUAL_AFTER:
            return _NOISE_FIRST if self.settings.to_fixed else 0.0
        return self._usual / max(self._time, 1e-9)

    def snapshot(self) -> Snapshot:
        return {
            "costs": self.costs.tolist(),
            "products": self._products.tolist(),
            "times": self._times.tolist(),
            "much": self._much.tolist(),
            "errors": [self._seen, self._usual, self._off, self._time],
        }

    @classmethod
    def restore(cls, raw: Mapping[str, Any], settings: CostSettings | None = None) -> CostModel:
        restored = cls(settings)
        restored.costs = np.array(raw["costs"], np.float64)
        restored._products = np.array(raw["products"], np.float64)
        restored._times = np.array(raw["times"], np.float64)
        restored._much = np.array(raw["much"], np.float64)
        restored._seen, restored._usual, restored._off, restored._time = raw["errors"]
        return restored
