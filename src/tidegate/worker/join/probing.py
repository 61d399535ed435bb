"""New rows that look for partners, with all that the plan says about them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tidegate.join.selective.reach import Groups, NewRows
from tidegate.worker.runtime.runs import NewRun


@dataclass(frozen=True)
class Probing:
    """New rows that look for partners, and which partitions they belong to."""

    run: NewRun
    rows: NewRows
    #: The same rows as if nothing were left out.
    unhindered: NewRows
    owned: NDArray[np.int64]
    bounds: NDArray[np.int64]
    #: How long a basic window of the other side is, where somebody counts by these.
    slot_us: int = 0
    #: Per row its group, where some rows are a sample of all; groups of the others mean nothing.
    groups: NDArray[np.int64] | None = None

    @cached_property
    def by_slot(self) -> Groups:
        """All rows as if nothing were left out, by basic window."""
        return Groups.of(self.unhindered, self.slot_us)

    @property
    def forgets(self) -> bool:
        """Is less in reach of the rows than there would be had nothing been given up?"""
        return self.rows.low is not self.unhindered.low
