"""Load model: predicted time of a batch from overhead and the effort of each operator, learnt online.

    batch = overhead + Σ ( fixed + row · rows + comparison · comparisons + output · outputs + byte · bytes )

Ours: the papers consider one operator. An operator whose tasks report processor time has its own model
(`cost_model.py`). Time that no operator explains (Spark, disk, slow sinks, other load on the machine) is
overhead (`overhead.py`), part of it per input row (the effort of SOURCES). So a cold start or a slow phase is
not mistaken for expensive comparisons. Operators without reported time share one model of the rest of the
batch, rows included; then the only overhead is its fixed cost.

A join has two models: rows, which are stored whatever is skipped, and pairs. Tasks time both separately,
because a fit cannot separate them soon enough: with four times the rows both grow in the same batch. A join
that attributed everything to pairs would skip nearly all of them, and with so few pairs never learn better.

Guarantee: the time of a batch is linear in effort, so the saving of a shed option is known without trying it;
one batch that takes three times as long changes neither overhead nor costs by much; a function of the batches
observed, `snapshot` → `restore` gives the same answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tidegate.control.goal.cost_model import CostModel, CostSettings, Effort
from tidegate.control.goal.overhead import Overhead
from tidegate.model.json_values import Snapshot

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Took:
    """Seconds of a measured operator: for pairs (or all its work), and for rows if reported separately."""

    probing: float
    keeping: float = 0.0

    @classmethod
    def of(cls, seconds: float, probing_part: float) -> Took:
        return cls(probing_part * seconds, (1 - probing_part) * seconds)

    @property
    def seconds(self) -> float:
        return self.probing + self.keeping


class _Measured:
    """Cost model of one operator that reports its time."""

    def __init__(self, settings: CostSettings) -> None:
        self.probing, self.keeping = CostModel(settings), CostModel(settings)

    @property
    def fixed(self) -> float:
        return self.probing.fixed + self.keeping.fixed

    @property
    def rates(self) -> NDArray[np.float64]:
        rates: NDArray[np.float64] = self.probing.rates + self.keeping.rates
        return rates

    def observe(self, effort: Effort, took: Took, scale: float) -> None:
        self.probing.observe(effort, scale * took.probing)
        if took.keeping:
            self.keeping.observe(Effort(effort.rows), scale * took.keeping)

    def snapshot(self) -> Snapshot:
        return {"looking": self.probing.snapshot(), "keeping": self.keeping.snapshot()}

    @classmethod
    def restore(cls, raw: Mapping[str, Any], settings: CostSettings) -> _Measured:
        restored = cls(settings)
        restored.probing = CostModel.restore(raw["looking"], settings)
        restored.keeping = CostModel.restore(raw["keeping"], settings)
        return restored


#: Pseudo-operator for reading rows and bringing them to operators.
SOURCES = "(sources)"
#: Least seconds per row and per candidate pair, far below any real cost: where work is too short to be told
#: from noise, shedding more of it still counts as faster.
_LEAST_RATES = np.array([1e-12, 1e-14, 0.0, 0.0])


class LoadModel:
    """Seconds of a batch from what its operators do."""

    def __init__(self, settings: CostSettings | None = None) -> None:
        self.settings: CostSettings = settings or CostSettings()
        self._models: dict[str, _Measured] = {}
        #: All operators without reported time. Most of the rest of a batch is Spark's own work.
        self._others = CostModel(replace(self.settings, to_fixed=True))
        #: Time that no operator explains; unused if some operators are not measured.
        self._overhead = Overhead()

    @property
    def is_blank(self) -> bool:
        """No batch has been observed: predictions mean nothing."""
        return not self._models and not self._others.seen

    @property
    def overhead(self) -> float:
        """Seconds of a batch that belong to no operator and do not depend on rows."""
        return self._overhead.fixed

    @property
    def most_rows(self) -> float:
        """Rows of the largest batches from which overhead is known."""
        return self._overhead.most_rows

    @property
    def fixed(self) -> float:
        """Seconds of a batch in which no operator does anything."""
        return self.overhead + self._others.fixed + sum(model.fixed for model in self._models.values())

    def rates(self, operator: str) -> NDArray[np.float64]:
        """Seconds per row, comparison, output and byte of an operator."""
        if operator == SOURCES:
            return np.array([self._overhead.per_row, 0.0, 0.0, 0.0])
        known = self._models[operator].rates if operator in self._models else self._others.rates
        rates: NDArray[np.float64] = np.maximum(known, _LEAST_RATES)
        return rates

    def observe(
        self, efforts: Mapping[str, Effort], busy_seconds: float, seconds: Mapping[str, Took]
    ) -> None:
        """Learn from one batch: efforts, total seconds, and the seconds of operators that report them."""
        said = {name: one for name, one in seconds.items() if name in efforts}
        # The times of operators that run in parallel add up to more than the wall time.
        together = sum(one.seconds for one in said.values())
        scale = min(1.0, busy_seconds / max(together, 1e-9))
        for name, one in said.items():
            self._models.setdefault(name, _Measured(self.settings)).observe(efforts[name], one, scale)
        left = max(0.0, busy_seconds - scale * together)
        operators = [name for name in efforts if name != SOURCES]
        others = [efforts[name] for name in operators if name not in self._models]
        if others:
            self._others.observe(Effort.total(others), left)
            self._overhead = Overhead()
        elif len(said) == len(operators):
            self._overhead.observe(efforts.get(SOURCES, Effort()).rows, left)

    def observe_empty(self, busy_seconds: float) -> None:
        """Learn from a batch without rows: it is all overhead."""
        self._overhead.observe_empty(busy_seconds)

    def snapshot(self) -> Snapshot:
        return {
            "models": {name: model.snapshot() for name, model in self._models.items()},
            "others": self._others.snapshot(),
            "overhead": self._overhead.snapshot(),
        }

    @classmethod
    def restore(cls, raw: Mapping[str, Any], settings: CostSettings | None = None) -> LoadModel:
        restored = cls(settings)
        restored._models = {
            name: _Measured.restore(one, restored.settings) for name, one in raw["models"].items()
        }
        restored._others = CostModel.restore(raw["others"], restored._others.settings)
        if "overhead" in raw:
            restored._overhead = Overhead.restore(raw["overhead"])
        return restored


def wall_seconds(instances: Sequence[float], parallelism: int) -> float:
    """Time of an operator: that of its slowest instance, or of all of them on this many cores."""
    return max(max(instances, default=0.0), sum(instances) / parallelism)


def uneven_seconds(instances: Sequence[float], parallelism: int) -> float:
    """Seconds that an operator would save if its instances were equally loaded."""
    return wall_seconds(instances, parallelism) - sum(instances) / max(1, min(parallelism, len(instances)))
