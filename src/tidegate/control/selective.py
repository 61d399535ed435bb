"""The `selective` policy: cells of both windows by learnt value, with cheap and never-ending exploration.

Beyond the selective join paper (section 4). Three differences to `adaptive.py`:

1. Cells of both windows compete with each other (`join/cells.py`), not one window first.
2. Every comparison teaches, not only the sample: cells that are in use are known exactly and for free. Only
   the others need rows that are processed fully, and counts fade (`memory`) instead of being thrown away.
3. Exploring is part of the budget: with s of the rows processed fully and a fraction f of the windows for all
   others, (1 − s) · f + s = r. The join costs what r says.

        normal       ●━━━━━━━━━━━●━━━━━━●             the cells in use find what they promised: explore a little
        moved                    ✗                    they find clearly less or more: what was learnt is worth
        searching                 ▲▲▲▲▲●━━━           little, much of the next period's budget is for exploring

Guarantees. Cost: r, the sample included. Without any correlation all cells are worth the same and the choice
does not matter: the output is that of random drop at equal cost, up to noise. A correlation that moves is
found again: at the latest in the second period after the move cells are chosen by new observations alone.
A function of the telemetry so far; `snapshot` → `restore` gives the same answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tidegate.control.rate import RateRule
from tidegate.control.shedding import Decision, Probing, Telemetry, Windows
from tidegate.errors import FlowError, explain
from tidegate.join.cells import cell_lengths, choose_cells

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: A move is believed when the cells in use are off by more than chance explains (in standard deviations) …
_DEVIATIONS = 5.0
#: … and by more than this share: a slow drift is what fading is for.
_OFF_BY = 0.2
#: What is left of old counts after a move: enough to break ties, too little to outvote one period.
_LEFT_AFTER_MOVE = 0.01


@dataclass(frozen=True)
class SelectiveSettings:
    """More exploring follows a moving correlation better and costs output while it rests."""

    #: Share of the comparisons that goes into exploring, normally and in the period after a move.
    exploring: float = 0.04
    searching: float = 0.3
    #: Weight that counts keep from period to period.
    memory: float = 0.8

    def __post_init__(self) -> None:
        if not (0 < self.exploring <= self.searching < 1 and 0 <= self.memory < 1):
            raise FlowError(
                explain(
                    "Exploring takes some of the budget, searching at least as much, and memory fades",
                    got=f"exploring {self.exploring}, searching {self.searching}, memory {self.memory}",
                    do="Give 0 < exploring <= searching < 1 and 0 <= memory < 1",
                )
            )


class _Evidence:
    """Faded counts of one window."""

    def __init__(self, ages: int) -> None:
        self.matches: NDArray[np.float64] = np.zeros(ages)
        self.comparisons: NDArray[np.float64] = np.zeros(ages)

    def values(self) -> NDArray[np.float64]:
        """Matches per comparison; unknown cells count as average ones."""
        total = self.comparisons.sum()
        average = self.matches.sum() / total if total else 0.0
        values = np.full(self.matches.size, average)
        seen = self.comparisons > 0
        values[seen] = self.matches[seen] / self.comparisons[seen]
        return values

    def add(self, kept: float, matches: NDArray[np.int64], comparisons: NDArray[np.int64]) -> None:
        self.matches = kept * self.matches + matches
        self.comparisons = kept * self.comparisons + comparisons


class SelectivePolicy:
    """Cells by value per comparison."""

    def __init__(self, windows: Windows, rate: RateRule, settings: SelectiveSettings | None = None) -> None:
        self.windows, self.rate = windows, rate
        self.settings = settings or SelectiveSettings()
        self._lengths = tuple(cell_lengths(length, windows.slot_us) for length in windows.lengths_us)
        self._evidence = [_Evidence(ages) for ages in windows.ages]
        #: True until one period has been observed, and again after a move.
        self._searching = True

    @property
    def decision(self) -> Decision:
        share, fraction = self._budget()
        left, right = (evidence.values() for evidence in self._evidence)
        first, second = choose_cells((left, right), (self._lengths[0], self._lengths[1]), fraction)
        return Decision((Probing(*first), Probing(*second)), full_share=share)

    def adapt(self, telemetry: Telemetry) -> Decision:
        self.rate.adapt(telemetry.load)
        moved = not self._searching and self._moved(telemetry)
        kept = _LEFT_AFTER_MOVE if moved else self.settings.memory
        for evidence, full, chosen in zip(self._evidence, telemetry.full, telemetry.chosen, strict=True):
            evidence.add(kept, full.matches + chosen.matches, full.comparisons + chosen.comparisons)
        self._searching = moved
        return self.decision

    def _budget(self) -> tuple[float, float]:
        """Share of rows processed fully, and the fraction of the windows for all others."""
        fraction = self.rate.fraction
        exploring = self.settings.searching if self._searching else self.settings.exploring
        if fraction >= 1:
            return 0.0, 1.0
        # s · (1 − f) = exploring · r, what full rows cost beyond the others, and (1 − s) · f + s = r.
        others = fraction * (1 - exploring)
        share = exploring * fraction / (1 - others)
        return share, others

    def _moved(self, telemetry: Telemetry) -> bool:
        """Did the cells in use find what they promised?"""
        found = promised = 0.0
        for evidence, chosen in zip(self._evidence, telemetry.chosen, strict=True):
            found += float(chosen.matches.sum())
            promised += float(evidence.values() @ chosen.comparisons)
        off = abs(found - promised)
        return off > _DEVIATIONS * np.sqrt(max(promised, 1.0)) and off > _OFF_BY * promised

    def snapshot(self) -> dict[str, Any]:
        return {
            "rate": self.rate.snapshot(),
            "searching": self._searching,
            "evidence": [
                {"matches": e.matches.tolist(), "comparisons": e.comparisons.tolist()} for e in self._evidence
            ],
        }

    @classmethod
    def restore(
        cls,
        raw: Mapping[str, Any],
        windows: Windows,
        rate: RateRule,
        settings: SelectiveSettings | None = None,
    ) -> SelectivePolicy:
        """`rate` is restored by the caller, who knows which rule it is."""
        restored = cls(windows, rate, settings)
        restored._searching = raw["searching"]
        for evidence, counts in zip(restored._evidence, raw["evidence"], strict=True):
            evidence.matches = np.array(counts["matches"], np.float64)
            evidence.comparisons = np.array(counts["comparisons"], np.float64)
        return restored
