"""Rate adaptation: the probe ratio r, the part of the windows that can be processed, from the rows offered
and fetched.

Paper: selective join, section 4.1, algorithm 1.

Every period: β = rows fetched / rows offered, of both streams together. If fewer are fetched than offered, r
← β · r, because comparing is assumed to be the dominating cost. Otherwise r ← min(1, boost · r), as a trial;
if that is too much, the next period reverses it.

With batches, rows are offered that a batch took and that still wait at the sources; fetched are those that
fit into the time of the batch. Counts add up over a period, however many batches it has:

    taken      ▓▓▓▓▓▓ ▓▓▓▓▓▓ ▓▓▓▓▓▓                     β = Σ fitted / (Σ taken + waiting at the end)
    waiting           ░      ░░     ░░░     the end of the period

Backpressure keeps batches short, so under overload their time alone would give β = 1 while the backlog grows.

Guarantee: 0 < r <= 1; r is a function of r before and of the loads since; `snapshot` → `restore` gives the
same answers. On steady overload r oscillates around what fits, as the paper's rule does; the level controller
(`control/goal/level_controller.py`) comes to rest. A backlog is overload, whatever its cause: r falls until
it is gone.

Where we differ: the paper's r can reach 0 when nothing was fetched, and no boost leads back from there. Ours
stops at `fraction_min`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from tidegate.errors import FlowError
from tidegate.model.json_values import Snapshot

#: Below a thousandth of the windows a join finds next to nothing, and from 0 r could never rise again.
FRACTION_MIN = 0.001


@dataclass(frozen=True)
class RateLoad:
    """Rows offered to and fetched by one period (or batch), both streams together."""

    offered: float
    fetched: float


@dataclass(frozen=True)
class BatchLoad:
    """Rows of one batch, of all streams together."""

    taken: float
    #: Of these: those that fit into the time of a batch.
    fitted: float
    #: Rows that limits of ours keep waiting at the sources after it.
    waiting: float = 0.0
    #: From the beginning of this batch to that of the next.
    seconds: float = 0.0

    @classmethod
    def of(
        cls,
        rows: float,
        busy_seconds: float,
        budget_seconds: float,
        waiting: float = 0.0,
        seconds: float = 0.0,
    ) -> BatchLoad:
        """A batch that exceeds its budget fits that part of its rows that the budget has time for."""
        fits = min(1.0, budget_seconds / busy_seconds) if busy_seconds > 0 else 1.0
        return cls(rows, rows * fits, waiting, seconds)

    @property
    def load(self) -> RateLoad:
        """The same as a period of its own."""
        return RateLoad(self.taken + self.waiting, self.fitted)


class Period:
    """Ends adaptation periods, with batches of any length.

    A period ends with the batch whose end is nearest to it. A period of 0 seconds ends with every batch.
    """

    def __init__(self, seconds: float, passed: float = 0.0) -> None:
        self.seconds, self.passed = seconds, passed

    def ends(self, batch_seconds: float) -> bool:
        """Whether the period ends with this batch; then the next one begins."""
        self.passed += batch_seconds
        if self.passed + batch_seconds / 2 < self.seconds:
            return False
        self.passed = 0.0
        return True


class RateRule(Protocol):
    """Decides r, the part of the windows to process."""

    @property
    def fraction(self) -> float: ...

    def adapt(self, load: RateLoad) -> float: ...

    def snapshot(self) -> Snapshot: ...


@dataclass(frozen=True)
class RateSettings:
    """A larger boost recovers faster after a burst and overshoots more.

    A shorter period reacts faster, and to chance.
    """

    boost: float = 1.2
    fraction_min: float = FRACTION_MIN
    #: The paper's T_r, for `add`; 0: every batch is a period.
    period_seconds: float = 0.0

    def __post_init__(self) -> None:
        if not (self.boost > 1 and 0 < self.fraction_min <= 1):
            raise FlowError(
                "Rate adaptation needs a boost above 1 and a smallest fraction above 0 and at most 1",
                code="SHED_SETTING_INVALID",
                got=f"boost {self.boost}, fraction_min {self.fraction_min}",
                why="With a boost of 1 or less the join would never recover from a burst",
                do="Give for example boost=1.2, the paper's value",
            )


class RateAdaptation:
    """Algorithm 1."""

    def __init__(self, settings: RateSettings | None = None, fraction: float = 1.0) -> None:
        self.settings: RateSettings = settings or RateSettings()
        self._fraction = fraction
        self._period = Period(self.settings.period_seconds)
        #: Of the period so far.
        self._taken, self._fitted = 0.0, 0.0

    @property
    def fraction(self) -> float:
        return self._fraction

    def adapt(self, load: RateLoad) -> float:
        """End a period with this load."""
        share = load.fetched / load.offered if load.offered else 1.0
        raised = self._fraction * (share if share < 1 else self.settings.boost)
        self._fraction = min(1.0, max(self.settings.fraction_min, raised))
        return self._fraction

    def add(self, batch: BatchLoad) -> float:
        """Add a batch to the period, and adapt if it ends with this one."""
        self._taken, self._fitted = self._taken + batch.taken, self._fitted + batch.fitted
        if self._period.ends(batch.seconds):
            self.adapt(RateLoad(self._taken + batch.waiting, self._fitted))
            self._taken, self._fitted = 0.0, 0.0
        return self._fraction

    def snapshot(self) -> Snapshot:
        return {
            "fraction": self._fraction,
            "period": [self._period.passed, self._taken, self._fitted],
        }

    @classmethod
    def restore(cls, raw: Mapping[str, Any], settings: RateSettings | None = None) -> RateAdaptation:
        restored = cls(settings, raw["fraction"])
        restored._period.passed, restored._taken, restored._fitted = raw["period"]
        return restored


class FixedRate:
    """No rate adaptation: r is given."""

    def __init__(self, fraction: float) -> None:
        if not 0 <= fraction <= 1:
            raise FlowError(
                "The probe ratio must be between 0 and 1",
                code="SHED_SETTING_INVALID",
                got=fraction,
                do="Give a number from 0 (probe nothing) to 1 (probe everything)",
            )
        self._fraction = fraction

    @property
    def fraction(self) -> float:
        return self._fraction

    def adapt(self, load: RateLoad) -> float:
        return self._fraction

    def add(self, batch: BatchLoad) -> float:
        return self._fraction

    def snapshot(self) -> Snapshot:
        """Empty: whoever gives r keeps it."""
        return {}


def expected_rows(rows: int, began_us: int | None, now_us: int, interval_seconds: float) -> float:
    """Rows of the next batch if the arrival rate stays the same.

    `began_us`: when the batch before this one was planned, None for the first; `now_us`: when this one was;
    `interval_seconds`: how long after this one the next begins.
    """
    since = (now_us - began_us) / 1e6 if began_us is not None else interval_seconds
    return rows * interval_seconds / max(since, 1e-3)
