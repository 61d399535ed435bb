"""Debts: pairs that a join skipped, by batch and cell, and their repair in a later batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from tidegate.model.skip_plan import Skipping


class DebtCell(NamedTuple):
    """Skipped pairs of one batch's rows with one basic window, by age. A tuple, because there are many."""

    #: Side of the stored rows, and age of their basic window seen from the rows of the batch.
    window: int
    age: int
    #: An estimate where rows are found by key; and the matches expected among these pairs.
    comparisons: int
    matches: float
    #: Rows of the batch whose hash (in [0, 1)) lies below this have been repaired.
    repaired: float = 0.0


@dataclass(frozen=True)
class Debt:
    """Pairs that a join skipped in one batch: its rows × the rows stored by then; see
    `join/selective/skipped_ranges.py`.
    """

    operator: str
    batch: int
    #: From the plan of that batch, with the seed of its hash sampling.
    skipping: Skipping
    seed: int
    #: Per side: first and last time of the stored rows needed for its repair.
    spans: tuple[tuple[int, int], tuple[int, int]]
    #: Cells that are not fully repaired.
    cells: tuple[DebtCell, ...]

    @property
    def comparisons(self) -> float:
        return sum((1 - cell.repaired) * cell.comparisons for cell in self.cells)

    @property
    def matches(self) -> float:
        return sum((1 - cell.repaired) * cell.matches for cell in self.cells)


class RepairCell(NamedTuple):
    """A cell of a debt, for the rows of its batch whose hash lies in [since, until)."""

    window: int
    age: int
    since: float
    until: float


@dataclass(frozen=True)
class DebtRepair:
    """What one batch repairs of the debt of an earlier one."""

    batch: int
    cells: tuple[RepairCell, ...]
