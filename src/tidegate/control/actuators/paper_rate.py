"""Rate adaptation: the probe ratio r, the part of the windows that can be processed, from the rows offered
and fetched.

Paper: selective join, section 4.1, algorithm 1.

Every period: β = rows fetched / rows offered, of both streams together. If fewer are fetched than offered, r
← β · r, because comparing is assumed to be the dominating cost. Otherwise r ← min(1, boost · r), as a trial;
if that is too much, the next period reverses it.

Guarantee: 0 < r <= 1; r is a function of r before and of the last load; `snapshot` → `restore` gives the same
answers. On steady overload r oscillates around what fits, as the paper's rule does; the level controller
(`control/goal/level_controller.py`) comes to rest.

Where we differ: the paper's r can reach 0 when nothing was fetched, and no boost leads back from there. Ours
stops at `fraction_min`. With batches, `batch_load` defines "offered" and "fetched".
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


class RateRule(Protocol):
    """Decides r, the part of the windows to process."""

    @property
    def fraction(self) -> float: ...

    def adapt(self, load: RateLoad) -> float: ...

    def snapshot(self) -> Snapshot: ...


@dataclass(frozen=True)
class RateSettings:
    """A larger boost recovers faster after a burst and overshoots more."""

    boost: float = 1.2
    fraction_min: float = FRACTION_MIN

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

    @property
    def fraction(self) -> float:
        return self._fraction

    def adapt(self, load: RateLoad) -> float:
        share = load.fetched / load.offered if load.offered else 1.0
        raised = self._fraction * (share if share < 1 else self.settings.boost)
        self._fraction = min(1.0, max(self.settings.fraction_min, raised))
        return self._fraction

    def snapshot(self) -> Snapshot:
        return {"fraction": self._fraction}

    @classmethod
    def restore(cls, raw: Mapping[str, Any], settings: RateSettings | None = None) -> RateAdaptation:
        return cls(settings, raw["fraction"])


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

    def snapshot(self) -> Snapshot:
        """Empty: whoever gives r keeps it."""
        return {}


def batch_load(rows: int, busy_seconds: float, trigger_seconds: float) -> RateLoad:
    """A batch as a period: it is offered its rows, and fetches those that fit between two triggers.

        trigger   |─────────────|─────────────|
        batch     ├── rows · trigger / busy ──┼── too late ──┤      β = trigger / busy

    A backlog makes the batch larger, hence longer, hence counts as offered.
    """
    fits = min(1.0, trigger_seconds / busy_seconds) if busy_seconds > 0 else 1.0
    return RateLoad(rows, rows * fits)


def expected_rows(rows: int, began_us: int | None, now_us: int, interval_seconds: float) -> float:
    """Rows of the next batch if the arrival rate stays the same.

    `began_us`: when the batch before this one was planned, None for the first; `now_us`: when this one was;
    `interval_seconds`: how long after this one the next begins.
    """
    since = (now_us - began_us) / 1e6 if began_us is not None else interval_seconds
    return rows * interval_seconds / max(since, 1e-3)
