"""Models the matches per comparison when a fraction r of the windows is processed, the best parts first.

A policy that takes the most productive parts first finds more per comparison the smaller r is. So matches,
which cost time too, grow more slowly than r:

    matches per comparison at r  =  last measured · (r / r then) ^ (bend − 1)

The bend is learnt when r changes: 1 if all parts are equally productive, below 1 otherwise.

Guarantee: a function of the observations in order; `snapshot` → `restore` gives the same answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import log
from typing import Any

#: Weight of the last batch in what is found, and in the bend.
_NEWS = 0.5
#: Smaller changes of r tell more of chance than of the bend.
_CHANGE_LEAST = 0.05
#: Matches that grow with less than this power of r, or more, are put down to chance.
_BENDS = 0.2, 1.5


class YieldCurve:
    """Matches per comparison as a function of r."""

    def __init__(self) -> None:
        self._found: float | None = None
        self._fraction = 1.0
        self.bend = 1.0

    def observe(self, fraction: float, comparisons: float, outputs: float) -> None:
        """What a batch with this r found."""
        if not comparisons or not outputs:
            return
        found = outputs / comparisons
        if self._found is not None and abs(log(fraction / self._fraction)) > _CHANGE_LEAST:
            seen = 1 + log(found / self._found) / log(fraction / self._fraction)
            self.bend += _NEWS * (min(max(seen, _BENDS[0]), _BENDS[1]) - self.bend)
            self._found = found
        self._found = found if self._found is None else self._found + _NEWS * (found - self._found)
        self._fraction = fraction

    def at(self, fraction: float) -> float:
        """What is to be expected with this r."""
        if self._found is None:
            return 0.0
        return self._found * float((fraction / self._fraction) ** (self.bend - 1))

    def snapshot(self) -> dict[str, Any]:
        return {"found": self._found, "fraction": self._fraction, "bend": self.bend}

    @classmethod
    def restore(cls, raw: Mapping[str, Any]) -> YieldCurve:
        restored = cls()
        restored._found, restored._fraction, restored.bend = raw["found"], raw["fraction"], raw["bend"]
        return restored
