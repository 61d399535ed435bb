"""When levels are eased, and when another mix is taken: not at the first batch that has time to spare.

Ours. Going deeper is urgent and never waits. Going back is a trial, and each that had to be taken back soon
makes the next one wait twice as long; after a good while without, all is forgiven. Much time to spare is no
trial: the rush is over, and then a few batches are enough. What a batch will use swings with its rows, so a
mean is judged that follows slowly: one that used a little more must not begin the wait anew.

Where there would be time for everything, the rush is over as well, however little is left out for how little
time. That is judged by each batch as it comes, because a mean remembers the rush.

Guarantee: on steady input, whatever the noise, easing becomes as rare as once in `most` batches.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

from tidegate.errors import FlowError
from tidegate.model.json_values import Snapshot

#: Easing that is taken back within so many batches was too early; without that for so many, all is forgiven.
_TOO_EARLY, _RESET = 25, 60
#: A little time to spare must last so many times as long as more of it; below this part used, it is much.
_LITTLE, _MUCH = 3, 0.75
#: Weight of the last batch in the mean that is judged.
_NEWS = 0.3


@dataclass(frozen=True)
class HysteresisSettings:
    """More patience: fewer changes, and more time that is not used."""

    #: Batches in a row that must have had time to spare: at first, and after easing was often taken back.
    first: int = 2
    most: int = 32
    #: Parts of the target: using less than the first is time to spare, less than the second a little of it.
    keep_above: float = 0.9
    rest_above: float = 0.98

    def __post_init__(self) -> None:
        if not (1 <= self.first <= self.most and 0 < self.keep_above <= self.rest_above <= 1):
            raise FlowError(
                "Patience is a batch or more, and time is spared below some part of the target",
                got=self,
                do="Give 1 <= first <= most and 0 < keep_above <= rest_above <= 1",
            )


class Hysteresis:
    """Counts batches."""

    def __init__(self, settings: HysteresisSettings | None = None) -> None:
        self.settings = settings or HysteresisSettings()
        self._needed = self.settings.first
        #: Batches in a row with time to spare, with a little of it, and with a better mix at hand.
        self._spare, self._little, self._regretted = 0, 0, 0
        #: Batches in a row that would have had time for everything.
        self._fitted = 0
        #: Batches since levels were eased.
        self._since = _RESET
        #: What batches use, since levels last changed; None: nothing is known yet.
        self._used: float | None = None

    def deepened(self) -> None:
        """Levels had to go deeper."""
        if self._since < _TOO_EARLY:
            self._needed = min(self.settings.most, 2 * self._needed)
        self._since = max(self._since, _TOO_EARLY)
        self._spare, self._little, self._fitted, self._used = 0, 0, 0, None

    def eases(self, used: float, whole: float = inf) -> bool:
        """Whether to ease: a batch will use this part of the target, and with nothing left out that one."""
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
        """Whether to take another mix, which is better for this batch or not."""
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
