"""The `selective` policy: cells of both windows by learnt value, with cheap, permanent exploration.

Beyond the selective join paper (selective processing). Three differences to `adaptive.py`:

1. Cells of both windows compete with each other (`join/selective/cells.py`), not one window first.
2. Every comparison counts as evidence, not only the sample: cells in use are measured at no extra cost. Only
   the others need exploration, and counts fade (`memory`) instead of being discarded.
3. Exploration is part of the budget. All rows are compared with a fraction f of the windows, and a share s of
   them also with a small part d of everything else: f + s · d · (1 − f) = r. The join costs what r says.

    normal       ●━━━━━━━━━━━●━━━━━━●          cells in use find what was predicted: explore a little
    moved                    ✗                 they find clearly less or more: old counts lose their weight,
    searching                 ▲▲▲▲▲●━━━        and much of the next period's budget is for exploration

Guarantees. Cost: r, exploration included. Without any correlation all cells are worth the same, and the
output is that of random drop at equal cost, up to noise. A correlation that moves is found again: once the
cells in use miss their prediction, cells are chosen by new observations alone. Before that, exploration sees
a single cell that becomes productive, and it is used from the next period. A function of the telemetry so
far; `snapshot` → `restore` gives the same answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tidegate.control.actuators.paper_rate import RateRule
from tidegate.control.actuators.policy import Decision, ProbeOrder, Shape, Telemetry
from tidegate.errors import FlowError
from tidegate.join.selective.cells import choose_cells
from tidegate.model.json_values import Snapshot

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: A move is detected when the cells in use are off by more than chance explains (in standard deviations) …
_DEVIATIONS = 6.0
#: … and by more than this share: fading follows a slow drift.
_OFF_BY = 0.3
#: The same for one cell, with less evidence: exploring rows are few, and their matches are clustered.
_CELL_DEVIATIONS, _CELL_OFF_BY = 6.0, 0.5
#: Weight of old counts after a move: enough to break ties, too little to outweigh one period.
_LEFT_AFTER_MOVE = 0.01


@dataclass(frozen=True)
class SelectiveSettings:
    """More exploration follows a moving correlation better and costs output while it is stable."""

    #: Share of the comparisons for exploration, normally and in the period after a move.
    exploring: float = 0.03
    searching: float = 0.3
    #: Part of every cell that an exploring row probes: many rows that probe little learn more than few that
    #: probe everything, because the matches of one row are clustered.
    depth: float = 0.1
    #: The same where rows choose by content and exploration only serves estimates: an exploring row finds
    #: less than others, so few explore, and each probes more.
    content_depth: float = 0.3
    #: Weight that counts keep from period to period.
    memory: float = 0.85

    def __post_init__(self) -> None:
        deep = 0 < min(self.depth, self.content_depth) and max(self.depth, self.content_depth) <= 1
        if not (0 < self.exploring <= self.searching < 1 and 0 <= self.memory < 1 and deep):
            raise FlowError(
                "A setting of selective processing is out of range",
                code="SHED_SETTING_INVALID",
                got=self,
                do="Give 0 < exploring <= searching < 1, depths above 0 and at most 1, and 0 <= memory < 1",
            )


@dataclass(frozen=True)
class ContentDecision:
    """The part of all work that rows choose by content; the share of exploring rows, and their depth."""

    fraction: float
    full_share: float
    full_depth: float


class _Evidence:
    """Faded counts of one window."""

    def __init__(self, ages: int) -> None:
        self.matches: NDArray[np.float64] = np.zeros(ages)
        self.comparisons: NDArray[np.float64] = np.zeros(ages)

    def values(self) -> NDArray[np.float64]:
        """Matches per comparison; unknown cells get the average."""
        total = self.comparisons.sum()
        average = self.matches.sum() / total if total else 0.0
        values = np.full(self.matches.size, average)
        seen = self.comparisons > 0
        values[seen] = self.matches[seen] / self.comparisons[seen]
        return values

    def add(self, memory: float, matches: NDArray[Any], comparisons: NDArray[Any]) -> None:
        """Add a period; cells that found something else than predicted lose their old counts."""
        promised = self.values() * comparisons
        kept = np.where(_is_off(matches, promised, _CELL_DEVIATIONS, _CELL_OFF_BY), _LEFT_AFTER_MOVE, memory)
        self.matches = kept * self.matches + matches
        self.comparisons = kept * self.comparisons + comparisons


def _is_off(
    found: NDArray[Any], promised: NDArray[np.float64], deviations: float, share: float
) -> NDArray[np.bool_]:
    """Off by more than chance explains, and by enough to react."""
    off = np.abs(found - promised)
    return np.asarray((off > deviations * np.sqrt(np.maximum(promised, 1.0))) & (off > share * promised))


class SelectivePolicy:
    """Cells by value per comparison."""

    def __init__(self, windows: Shape, rate: RateRule, settings: SelectiveSettings | None = None) -> None:
        self.windows: Shape = windows
        self.rate: RateRule = rate
        self.settings: SelectiveSettings = settings or SelectiveSettings()
        #: What each cell costs.
        self.work = windows.work
        self._evidence = [_Evidence(ages) for ages in windows.ages]
        #: True until one period has been observed, and again after a move.
        self._searching = True

    @property
    def decision(self) -> Decision:
        share, fraction = self._budget()
        left, right = (evidence.values() for evidence in self._evidence)
        first, second = choose_cells((left, right), self.work, fraction)
        return Decision(
            (ProbeOrder(*first), ProbeOrder(*second)), full_share=share, full_depth=self.settings.depth
        )

    @property
    def by_content(self) -> ContentDecision:
        """The same budget where rows choose by content what they probe (`join/selective/content_choice.py`).

        That choice needs no learning, so there is no search phase. (1 − s) · f + s · depth = r.
        """
        rate, depth = self.rate.fraction, self.settings.content_depth
        share = min(0.5, self.settings.exploring * rate / depth)
        return ContentDecision(min(1.0, (rate - share * depth) / (1 - share)), share, depth)

    def adapt(self, telemetry: Telemetry) -> Decision:
        self.rate.adapt(telemetry.load)
        self.work = telemetry.work or self.work
        moved = not self._searching and self._moved(telemetry)
        kept = _LEFT_AFTER_MOVE if moved else self.settings.memory
        for evidence, full, chosen in zip(self._evidence, telemetry.full, telemetry.chosen, strict=True):
            evidence.add(kept, full.matches + chosen.matches, full.comparisons + chosen.comparisons)
        self._searching = moved
        return self.decision

    def _budget(self) -> tuple[float, float]:
        """Share of rows that explore, and the fraction of the windows that all rows are compared with."""
        fraction = self.rate.fraction
        exploring = self.settings.searching if self._searching else self.settings.exploring
        if fraction >= 1:
            return 0.0, 1.0
        # f + s · depth · (1 − f) = r; the second term, the cost of exploration, is exploring · r.
        chosen = fraction * (1 - exploring)
        share = exploring * fraction / (self.settings.depth * (1 - chosen))
        if share > 1:
            # r is so high that exploration cannot use its whole share; the rest goes to normal probes.
            return 1.0, (fraction - self.settings.depth) / (1 - self.settings.depth)
        return share, chosen

    def _moved(self, telemetry: Telemetry) -> bool:
        """Whether the cells in use missed their prediction."""
        found = np.sum([chosen.matches.sum() for chosen in telemetry.chosen])
        promised = np.sum(
            [e.values() @ c.comparisons for e, c in zip(self._evidence, telemetry.chosen, strict=True)]
        )
        return bool(_is_off(found, promised, _DEVIATIONS, _OFF_BY))

    def snapshot(self) -> Snapshot:
        return {
            "rate": self.rate.snapshot(),
            "searching": self._searching,
            "work": [work.tolist() for work in self.work],
            "evidence": [
                {"matches": e.matches.tolist(), "comparisons": e.comparisons.tolist()} for e in self._evidence
            ],
        }

    @classmethod
    def restore(
        cls,
        raw: Mapping[str, Any],
        windows: Shape,
        rate: RateRule,
        settings: SelectiveSettings | None = None,
    ) -> SelectivePolicy:
        """The caller restores `rate`, whose class depends on the rule."""
        restored = cls(windows, rate, settings)
        restored._searching = raw["searching"]
        left, right = (np.array(work, np.float64) for work in raw["work"])
        restored.work = left, right
        for evidence, counts in zip(restored._evidence, raw["evidence"], strict=True):
            evidence.matches = np.array(counts["matches"], np.float64)
            evidence.comparisons = np.array(counts["comparisons"], np.float64)
        return restored
