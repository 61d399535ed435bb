"""Cost of an operator: fixed + per row + per comparison + per output + per byte, learnt online.

Least squares over all batches so far, with exponential forgetting, so that a machine that becomes slower is
noticed. Costs are never negative. Steady input does not determine all five costs; the undetermined ones stay
near the last answer. Before there is one, comparisons are assumed to cost everything (selective join paper,
section 4.1), or rows where an operator compares nothing. For time that no operator reports, most is assumed
to be fixed (`to_fixed`), and rows to cost a usual value. The pull towards the last answer grows with the
noise: if equal batches take one or two seconds, a slightly larger and slower batch says nothing about the row
cost.

Ours: a batch with a far larger error than usual is an outlier (a pause, other load on the machine) and gets
little weight. A second one in a row with the same sign is a change: it gets full weight, and earlier batches
little. The cost of a part is remembered while hardly any of that work is done; otherwise a join that skips
nearly all pairs would come to treat comparisons as free.

Guarantee: a function of the batches observed, in order; exact (up to the pull towards the last answer) after
five batches that differ enough; `snapshot` → `restore` gives the same answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tidegate.errors import REPORT_BUG, FlowError
from tidegate.least_squares import held_costs
from tidegate.model.json_values import Snapshot

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Fixed, rows, comparisons, outputs, bytes.
_PARTS = 5
#: Least pull of costs towards their last values, relative to the data; and the smaller part of it for the
#: cost that absorbs unexplained time.
_HOLD, _LEAST, _LEAST_FIXED = 1e-3, 0.1, 0.01
_FIXED, _ROW, _COMPARISON = 0, 1, 2
#: Costs are assumed to change by this part of a batch's time per batch; the rest of an error is noise.
_CHANGE = 0.1
#: Decay per batch of the largest recent size of each part.
_LESS = 0.98
#: A batch is an outlier if its error is this many times the usual one, which is known after so many batches.
_OFF, _USUAL_AFTER = 4.0, 5
#: Smaller errors, as a part of the time, count as chance.
_CHANCE = 0.02
#: First guess for unmeasured operators: seconds per row, and the largest part of the time that rows explain.
_ROW_SECONDS, _OF_WORK = 2e-5, 0.5
#: Noise of unmeasured operators before it is known.
_NOISE_FIRST = 0.15
#: Weight of the last error in the usual error, and of all earlier batches after a change.
_NEWS, _LEFT_AFTER_CHANGE = 0.2, 0.3


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
        return cls(*np.sum([np.zeros(_PARTS - 1), *(effort.parts for effort in efforts)], axis=0).tolist())


@dataclass(frozen=True)
class CostSettings:
    """Less forgetting averages more noise away, more follows a changing machine faster."""

    forgetting: float = 0.85
    #: Attribute unexplained time to the fixed cost, not to work.
    to_fixed: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.forgetting <= 1:
            raise FlowError(
                "The weight that a batch keeps must be above 0 and at most 1",
                code="INTERNAL_TUNING_INVALID",
                got=f"forgetting {self.forgetting}",
                do=REPORT_BUG,
            )


class CostModel:
    """Seconds as a function of effort."""

    def __init__(self, settings: CostSettings | None = None) -> None:
        self.settings: CostSettings = settings or CostSettings()
        #: Seconds: fixed, per row, per comparison, per output, per byte.
        self.costs: NDArray[np.float64] = np.zeros(_PARTS)
        self._products = np.zeros((_PARTS, _PARTS))
        self._times = np.zeros(_PARTS)
        #: The largest recent size of each part.
        self._much = np.zeros(_PARTS)
        #: Batches so far, their usual error, and the sign of the last batch if it was an outlier.
        self._seen, self._usual, self._off = 0, 0.0, 0
        #: What a batch usually takes.
        self._time = 0.0

    @property
    def fixed(self) -> float:
        return float(self.costs[0])

    @property
    def seen(self) -> int:
        """Number of batches observed."""
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
        """Before costs can be separated: rows cost a usual value, at most half of the time."""
        part = _COMPARISON if effort.comparisons else _ROW
        count = max(effort.comparisons or effort.rows, 1.0)
        of_work = min(_ROW_SECONDS * count, _OF_WORK * seconds)
        self.costs[_FIXED], self.costs[part] = seconds - of_work, of_work / count

    def _judge(self, seconds: float, expected: float) -> tuple[float, float]:
        """The weight of a batch, and the factor on the weight of those before it."""
        error = seconds - expected
        side = 1 if error > 0 else -1
        bound = _OFF * max(self._usual, _CHANCE * expected)
        known, off = self._seen >= _USUAL_AFTER, abs(error) > bound
        changed = known and off and side == self._off
        outlier = known and off and not changed
        if self._seen:
            # Outliers do not change the usual error.
            self._usual += _NEWS * (min(abs(error), bound if known and off else abs(error)) - self._usual)
        self._seen += 1
        self._time += (seconds - self._time) * max(_NEWS, 1 / self._seen)
        self._off = side if outlier else 0
        if changed:
            return 1.0, _LEFT_AFTER_CHANGE
        return (bound / abs(error) if outlier else 1.0), self.settings.forgetting

    def _fit(self) -> None:
        """Least squares, pulled towards the last answer."""
        # In units of the largest recent contribution of each part, so that seconds per row and per
        # batch have comparable weight, and a part that is hardly present does not change its cost.
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
        """The usual error of batches, as a part of their time."""
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
