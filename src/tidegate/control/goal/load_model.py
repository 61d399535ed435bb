"""Load model: predicted time of a batch from what each operator does, learnt online.

    batch = shown · Σ operators ( rows · row + comparisons · comparison + outputs · output + … ) + rest
    rest  = fixed + rows · row

Ours: the papers consider one operator. Tasks of joins report their processor time, for rows (which are stored
whatever is skipped) and for pairs separately, because a fit cannot separate them soon enough: with four times
the rows both grow in the same batch. What no task reports is the rest: Spark, disk, slow sinks, and the work
of operators that do not report. Each has its own `cost_model.py`. So a slow phase of the machine is not
mistaken for expensive comparisons.

Reported seconds need not make a batch longer: work may go on beside a slow sink. Two batches in a row with
about as many rows, of which one reports fewer seconds, tell how much shorter that makes it (`Shortening`).
Where shedding does not shorten batches, it saves nothing any more, and is taken back.

Guarantee: the time of a batch is linear in effort, so the saving of a shed option is known without trying it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from sys import float_info
from typing import TYPE_CHECKING

import numpy as np

from tidegate.control.goal.control_tuning import TUNING, ControlTuning
from tidegate.control.goal.cost_model import PARTS, CostModel, Effort

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Pseudo-operator for reading rows and bringing them to operators.
SOURCES = "(sources)"
#: Least seconds of a row and of a candidate pair, far below any real cost: where work is too short to be told
#: from noise, shedding more of it still counts as faster.
_LEAST_RATES = np.array([float_info.epsilon] * 2 + [0.0] * 2)


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


@dataclass
class Shortening:
    """By how many seconds a batch is shorter for each second less that tasks report: 1 unless measured.

    From differences of batches that follow each other, because these do not depend on slower changes of the
    machine. They fade, so that shedding is tried again after a while.
    """

    #: Of the last batch: rows, seconds, seconds that tasks reported, and the work of which none did.
    rows: float = 0.0
    seconds: float = 0.0
    reported: float = 0.0
    others: Effort = field(default_factory=Effort)
    #: Weighted sums of squared differences of reported seconds, and of these times those of seconds.
    squares: float = 0.0
    products: float = 0.0
    part: float = 1.0

    def observe(
        self,
        rows: float,
        seconds: float,
        reported: float,
        others: Effort,
        rest: CostModel,
        tuning: ControlTuning,
    ) -> None:
        """After a batch; `rest`: the model of the time that no task reports."""
        less, shorter = self.reported - reported, self.seconds - seconds
        past = 1 - 1 / tuning.margin.memory
        self.squares, self.products = past * self.squares, past * self.products
        little, other = tuning.level.measurable, rest.seconds(self.others) - rest.seconds(others)
        if abs(rows - self.rows) <= little * rows and abs(less) > max(little * reported, 2 * abs(other)):
            shorter -= other
            # A pause says nothing, and no pair counts for more than twice the expected.
            if abs(shorter - less) <= 2 * abs(less) + tuning.load.clip * rest.error:
                shorter = less + max(-2 * abs(less), min(2 * abs(less), shorter - less))
                self.squares += less**2
                self.products += less * shorter
        doubt = 2 * rest.error**2 + float_info.min
        self.part = min(1.0, max(0.0, (self.products + doubt) / (self.squares + doubt)))
        self.rows, self.seconds, self.reported, self.others = rows, seconds, reported, others


@dataclass
class LoadModel:
    """Seconds of a batch from what its operators do; its fields are all that it remembers."""

    #: By operator that reports its time: what pairs cost, and what rows cost.
    probing: dict[str, CostModel] = field(default_factory=dict)
    keeping: dict[str, CostModel] = field(default_factory=dict)
    rest: CostModel = field(default_factory=CostModel)
    shortening: Shortening = field(default_factory=Shortening)
    #: All operators report their time: the rest is learnt from the rows of sources.
    measured: bool = False

    @property
    def is_blank(self) -> bool:
        """No batch with rows has been observed: predictions mean nothing."""
        return not self.probing and not self.rest.has_rows

    @property
    def fixed(self) -> float:
        """Seconds of a batch in which no operator does anything."""
        measured = (*self.probing.values(), *self.keeping.values())
        return self.rest.fixed + self.shortening.part * sum(model.fixed for model in measured)

    def rates(self, operator: str) -> NDArray[np.float64]:
        """Seconds per row, comparison, output and byte of an operator."""
        of_rest = np.append(self.rest.rates[:-1], 0.0)
        if operator == SOURCES:
            return of_rest if self.measured else np.zeros(PARTS)
        if operator not in self.probing:
            known = np.zeros(PARTS) if self.measured else of_rest
        else:
            known = self.probing[operator].rates
            known = known + self.keeping[operator].rates if operator in self.keeping else known
            known = self.shortening.part * known
        rates: NDArray[np.float64] = np.maximum(known, _LEAST_RATES)
        return rates

    def observe(
        self,
        efforts: Mapping[str, Effort],
        busy_seconds: float,
        seconds: Mapping[str, Took],
        tuning: ControlTuning = TUNING,
        first_work: float | None = None,
    ) -> None:
        """Learn from one batch: efforts, total seconds, and the seconds of operators that report them.

        `first_work`: the part of the first times that is attributed to work; None: as tuned.
        """
        known = {name: one for name, one in seconds.items() if name in efforts}
        # The times of operators that run in parallel add up to more than the wall time.
        together = sum(one.seconds for one in known.values())
        scale = min(1.0, busy_seconds / max(together, float_info.epsilon))
        of_work = 1.0 if first_work is None else first_work
        for name, one in known.items():
            probing = self.probing.setdefault(name, CostModel())
            probing.observe(efforts[name], scale * one.probing, tuning.load, of_work)
            if one.keeping:
                keeping = self.keeping.setdefault(name, CostModel())
                keeping.observe(Effort(efforts[name].rows), scale * one.keeping, tuning.load, of_work)
        others = [one for name, one in efforts.items() if name != SOURCES and name not in self.probing]
        if (not others) != self.measured and self.rest.has_rows:
            # Costs per row of a source are none per row of an operator.
            self.rest = CostModel()
        self.measured = not others
        work = Effort.total(others) if others else efforts.get(SOURCES, Effort())
        of_work = tuning.load.first_work if first_work is None else first_work
        reported = scale * together
        if self.rest.is_blank:
            self.rest.guess(work, busy_seconds - reported, tuning.load, of_work)
        rows = efforts.get(SOURCES, Effort.total(efforts.values())).rows
        self.shortening.observe(rows, busy_seconds, reported, work, self.rest, tuning)
        self._observe_rest(replace(work, bytes=reported), busy_seconds, tuning)

    def observe_empty(self, busy_seconds: float, tuning: ControlTuning = TUNING) -> None:
        """Learn from a batch without rows: it is all fixed cost."""
        if self.rest.is_blank:
            self.rest.guess(Effort(), busy_seconds, tuning.load, first_work=0.0)
        self._observe_rest(Effort(), busy_seconds, tuning)

    def _observe_rest(self, work: Effort, busy_seconds: float, tuning: ControlTuning) -> None:
        self.rest.observe(work, busy_seconds, tuning.load, last=self.shortening.part)


def wall_seconds(instances: Sequence[float], parallelism: int) -> float:
    """Time of an operator: that of its slowest instance, or of all of them on this many cores."""
    return max(max(instances, default=0.0), sum(instances) / parallelism)


def uneven_seconds(instances: Sequence[float], parallelism: int) -> float:
    """Seconds that an operator would save if its instances were equally loaded."""
    return wall_seconds(instances, parallelism) - sum(instances) / max(1, min(parallelism, len(instances)))


@dataclass
class SafetyMargin:
    """The part of the time budget kept free, learnt from the errors of predictions.

    A fixed margin wastes time on a quiet machine and is too small on a busy one. The error of a prediction
    covers all there is: costs, rows, other load. The margin is an upper quantile: the mean
    error and as many standard deviations as one batch in ninety exceeds. Batches that were shorter than
    predicted need no margin, so the deviation is that above the mean. Errors are clipped, so a single bad
    batch changes little.
    """

    #: Errors as parts of the budget: their number, mean, and variance above the mean.

    seen: int = 0
    mean: float = 0.0
    variance: float = 0.0

    def part(self, tuning: ControlTuning = TUNING) -> float:
        """The safety margin as a part of the time budget."""
        margin = tuning.margin
        if not self.seen:
            return margin.first
        high = self.mean + margin.deviations * max(self._deviation, tuning.load.noise_least)
        return min(max(0.0, high / (1 + max(0.0, high))), margin.most)

    @property
    def _deviation(self) -> float:
        return math.sqrt(self.variance)

    def observe(
        self, predicted: float, took: float, batch_seconds: float, tuning: ControlTuning = TUNING
    ) -> None:
        """Record an error relative to the budget: a short batch may err by much of itself and little of the
        budget.
        """
        margin = tuning.margin
        if not self.seen:
            assumed = margin.first / (1 - margin.first) / margin.deviations
            self.variance = assumed**2
        self.seen += 1
        bound = tuning.load.clip * max(self._deviation, tuning.load.noise_least)
        off = (took - predicted) / max(predicted, batch_seconds / 2) - self.mean
        off = max(-bound, min(bound, off))
        memory = min(margin.memory, 2 + self.seen)
        self.mean += off / memory
        # Errors above the mean are half of all, so they count twice.
        self.variance += ((2 * off**2 if off > 0 else 0.0) - self.variance) / memory
