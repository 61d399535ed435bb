"""What a batch takes: overhead, and what each operator does times what that costs; learnt while running.

    batch = overhead + Σ ( fixed + row · rows + comparison · comparisons + output · outputs + byte · bytes )

Ours: no paper has more than one operator in mind. Where the time of an operator is measured (tasks report
their processor time), it has a model of its own (`cost_model.py`), and all that no operator explains (Spark,
the disk, slow sinks, the neighbours) is overhead (`overhead.py`): some of it for the rows that come in, which
are the effort of SOURCES. A start from cold or a slow stretch is then not mistaken for dear comparisons.
Operators whose time nobody measures share one model of what the others leave of the batch, rows included, and
then there is no overhead but its fixed cost.

A join has two: of rows, which are taken in and stored whatever is skipped, and of pairs. Tasks look at the
clock between them, because no fit can tell them apart in time: when four times the rows come, both have more
to do in the same batch, and a join that took it all for pairs would then skip nearly all of them, and with so
few left never learn better.

Guarantee: the time of a batch is linear in what operators do, so what leaving something out saves is known
without trying; a single batch that takes three times as long changes neither overhead nor costs by much; a
function of the batches observed, `snapshot` → `restore` gives the same answers.
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
    """Seconds of a measured operator: for pairs (or all it does), and for rows where it tells them apart."""

    probing: float
    keeping: float = 0.0

    @classmethod
    def of(cls, seconds: float, probing_part: float) -> Took:
        return cls(probing_part * seconds, (1 - probing_part) * seconds)

    @property
    def seconds(self) -> float:
        return self.probing + self.keeping


class _Measured:
    """What one operator costs, by what it says that it took."""

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


#: Instead of an operator: whatever reads rows and brings them to operators.
SOURCES = "(sources)"
#: Nothing is free: seconds that a row and a pair take at least, whatever noise makes of them. Where work is
#: too short to be told from noise, leaving out more of it is still known to be faster. Far less than anything
#: takes (pairs are those within reach, and most of them are never touched), so that it is no price.
_LEAST_RATES = np.array([1e-12, 1e-14, 0.0, 0.0])


class LoadModel:
    """Seconds of a batch from what its operators do."""

    def __init__(self, settings: CostSettings | None = None) -> None:
        self.settings = settings or CostSettings()
        self._models: dict[str, _Measured] = {}
        #: Of operators that nobody measures, all together. Most of what is left of a batch is Spark's own.
        self._others = CostModel(replace(self.settings, to_fixed=True))
        #: What no operator explains; nothing where some are not measured.
        self._overhead = Overhead()

    @property
    def is_blank(self) -> bool:
        """No batch has taught anything yet: what it predicts means nothing."""
        return not self._models and not self._others.seen

    @property
    def overhead(self) -> float:
        """Seconds of a batch that are no operator's, and do not depend on rows."""
        return self._overhead.fixed

    @property
    def most_rows(self) -> float:
        """Rows of the largest batches that overhead is known of."""
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
        """Learn from one batch: what operators did, how long it took, and how long those that say so did."""
        said = {name: one for name, one in seconds.items() if name in efforts}
        # Operators that run side by side take more time together than passes.
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
    """Time of an operator: as slow as its slowest instance, or as all of them on so many cores."""
    return max(max(instances, default=0.0), sum(instances) / parallelism)


def uneven_seconds(instances: Sequence[float], parallelism: int) -> float:
    """What an operator would be faster by, were its instances equally loaded."""
    return wall_seconds(instances, parallelism) - sum(instances) / max(1, min(parallelism, len(instances)))
