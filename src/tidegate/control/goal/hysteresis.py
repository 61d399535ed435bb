"""Hysteresis: when levels ease, and when another mix of levels is taken.

Ours. Shedding deepens at once. Easing is a trial: each time it is soon reversed, the wait before the next one
doubles; the backoff is reset after 60 batches without a reversal. With much spare time the burst is over, and
a few batches are enough. The decision uses a slow mean of the time used, because the use of a single batch
varies with its rows and must not restart the wait. The burst is also over when everything would fit without
shedding. This is tested batch by batch, because a mean still contains the burst.

Guarantee: on steady input, whatever the noise, easing becomes as rare as once in `most` batches.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

from tidegate.errors import REPORT_BUG, FlowError
from tidegate.model.json_values import Snapshot

#: Easing reversed within `_TOO_EARLY` batches was premature; `_RESET` batches without one reset the backoff.
_TOO_EARLY, _RESET = 25, 60
#: A little spare time must last `_LITTLE` times as long; using less than `_MUCH` leaves much spare time.
_LITTLE, _MUCH = 3, 0.75
#: Weight of the last batch in the mean use.
_NEWS = 0.3


@dataclass(frozen=True)
class HysteresisSettings:
    """Longer waits: fewer changes, and more time unused."""

    #: Consecutive batches with spare time before easing: at first, and after many reversals.
    first: int = 2
    most: int = 32
    #: Parts of the target: using less than the first leaves spare time, less than the second a little.
    keep_above: float = 0.9
    rest_above: float = 0.98

    def __post_init__(self) -> None:
        if not (1 <= self.first <= self.most and 0 < self.keep_above <= self.rest_above <= 1):
            raise FlowError(
                "A setting of the hysteresis is out of range",
                code="INTERNAL_TUNING_INVALID",
                got=self,
                do=REPORT_BUG,
            )


class Hysteresis:
    """Counts batches with spare time, and decides when to ease."""

    def __init__(self, settings: HysteresisSettings | None = None) -> None:
        self.settings: HysteresisSettings = settings or HysteresisSettings()
        self._needed = self.settings.first
        #: Consecutive batches with spare time, with a little of it, and with a better mix available.
        self._spare, self._little, self._regretted = 0, 0, 0
        #: Consecutive batches that would have fitted without shedding.
        self._fitted = 0
        #: Batches since levels were eased.
        self._since = _RESET
        #: Mean use since levels last changed; None: not known yet.
        self._used: float | None = None

    def deepened(self) -> None:
        """Record that levels had to go deeper."""
        if self._since < _TOO_EARLY:
            self._needed = min(self.settings.most, 2 * self._needed)
        self._since = max(self._since, _TOO_EARLY)
        self._spare, self._little, self._fitted, self._used = 0, 0, 0, None

    def eases(self, used: float, whole: float = inf) -> bool:
        """Whether to ease, given the parts of the target used at these levels and without shedding."""
        self._since += 1
        self._fitted = self._fitted + 1 if whole < self.settings.rest_above else 0
        used = used if self._used is None else self._used + _NEWS * (used - self._used)
        self._used = used
        if self._since > _RESET:
            self._needed = self.settings.first
        self._spare = self._spare + 1 if used < self.settings.keep_above else 0
        self._little = self._little + 1 if used < self.settings.rest_above else 0
        needed = self.settings.first if used < _MUCH else self._needed
        waits = self._spare < needed and self._little < _LITTLE * self._needed
        if waits and self._fitted < self._needed:
            return False
        self._spare, self._little, self._fitted, self._since, self._used = 0, 0, 0, 0, None
        return True

    def remixes(self, better: bool) -> bool:
        """Whether to take another mix, given whether it is better for this batch."""
        self._regretted = self._regretted + 1 if better else 0
        if self._regretted <= self._needed:
            return False
        self._regretted = 0
        return True

    def snapshot(self) -> Snapshot:
        counts = [self._needed, self._spare, self._little, self._regretted, self._since]
        return {"counts": counts, "fitted": self._fitted, "used": self._used}

    @classmethod
    def restore(cls, raw: Any, settings: HysteresisSettings | None = None) -> Hysteresis:
        restored = cls(settings)
        restored._needed, restored._spare, restored._little, restored._regretted, restored._since = raw[
            "counts"
        ]
        restored._fitted, restored._used = raw.get("fitted", 0), raw["used"]
        return restored
