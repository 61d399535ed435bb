"""Hysteresis: shedding deepens at once and eases by trial; each trial that fails makes the next one rarer.

Spare time earns credit, by its square: a tenth of the target in two batches as much as a twentieth in eight.
With enough of it, levels ease. Easing that has to be reversed soon doubles the credit that the next one
needs; a quiet time resets it.

Ours. So a burst that is over ends shedding within two batches, and the noise of steady input almost never.
The same rule decides when to take another mix of levels, by the squared gain of results instead.

Guarantee: on steady input, whatever the noise, easing becomes ever rarer, down to a bound.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.control.goal.control_tuning import TUNING, EaseTuning


@dataclass
class Hysteresis:
    """Credit for easing and for another mix; its fields are all that it remembers."""

    spare: float = 0.0
    better: float = 0.0
    #: The credit needed, in units of the first; batches since it last changed.
    needed: float = 1.0
    quiet: int = 0
    #: Batches since levels eased; None: they never did, or that was reversed.
    since: int | None = None

    def deepened(self, tuning: EaseTuning = TUNING.ease) -> None:
        """Record that levels had to go deeper."""
        if self.since is not None and self.since < tuning.quiet:
            self.needed, self.quiet = min(tuning.quiet, 2 * self.needed), 0
        self.spare, self.since = 0.0, None

    def eases(self, used: float, tuning: EaseTuning = TUNING.ease) -> bool:
        """Whether to ease, given the part of the target that a batch at these levels uses."""
        self.quiet += 1
        self.since = None if self.since is None else self.since + 1
        if self.quiet > 2 * tuning.quiet:
            self.needed = 1.0
        left, enough = 1 - used, tuning.credit * self.needed
        # One batch says too little, however much it spares.
        self.spare = max(0.0, self.spare + min(left * abs(left), enough / 2))
        if self.spare < enough:
            return False
        self.spare, self.since = 0.0, 0
        return True

    def remixes(self, gain: float, tuning: EaseTuning = TUNING.ease) -> bool:
        """Whether to take another mix of levels, given the part of the results that it would gain."""
        self.better = self.better + gain**2 if gain > 0 else 0.0
        if self.better < tuning.credit * self.needed:
            return False
        self.better = 0.0
        return True
