"""Debts: pairs that a join skipped, by batch and cell, and what a later batch repairs of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from tidegate.model.skip_plan import Skipping


class DebtCell(NamedTuple):
    """Pairs of one batch's rows with one basic window, by age, that were left out. A tuple: they are many."""

    #: Side of the stored rows, and age of their basic window seen from the rows of the batch.
    window: int
    age: int
    #: An estimate where rows are found by key; with it, what the pairs are expected to give.
    comparisons: int
    matches: float
    #: Rows of the batch whose lot lies below this have been made up for.
    repaired: float = 0.0


@dataclass(frozen=True)
class Debt:
    """Work that a join left out in one batch: rows of the batch × what was stored by then;
    join/selective/skipped_ranges.py.
    """

    operator: str
    batch: int
    #: What the plan of that batch said, and the seed that it drew lots with.
    skipping: Skipping
    seed: int
    #: Per side: first and last time of the stored rows that are needed to pay it.
    spans: tuple[tuple[int, int], tuple[int, int]]
    #: What is still owed.
    cells: tuple[DebtCell, ...]

    @property
    def comparisons(self) -> float:
        return sum((1 - cell.repaired) * cell.comparisons for cell in self.cells)

    @property
    def matches(self) -> float:
        return sum((1 - cell.repaired) * cell.matches for cell in self.cells)


class RepairCell(NamedTuple):
    """A cell of a debt, for the rows of its batch whose lots lie in [since, until)."""

    window: int
    age: int
    since: float
    until: float


@dataclass(frozen=True)
class DebtRepair:
    """What one batch makes up for of the debt of an earlier one."""

    batch: int
    cells: tuple[RepairCell, ...]
