"""New rows that probe, with what the plan says about them.

The new rows of one side are combined into one run, so that each stored run is probed once, whatever slots
the new rows lie in: every probe has a fixed cost, however few rows take part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tidegate.join.selective.reach import NewRowGroups, NewRows
from tidegate.model.times import LEFT, RIGHT
from tidegate.worker.runtime.runs import NewRun


class Together:
    """Combines the runs of one batch into one per side; the same runs are combined only once."""

    def __init__(self) -> None:
        self._joined: list[_Joined] = []

    def of_sides(self, runs: Sequence[NewRun]) -> list[NewRun]:
        """At most one run per side, made of these."""
        whole: list[NewRun] = []
        for side in (LEFT, RIGHT):
            members = [run for run in runs if run.side == side]
            whole += members if len(members) < 2 else [self._one(members)]
        return whole

    def _one(self, members: list[NewRun]) -> NewRun:
        for known in self._joined:
            if list(map(id, known.members)) == list(map(id, members)):
                return known.run
        self._joined.append(_Joined(members))
        return self._joined[-1].run

    def tell_pairs(self) -> None:
        """Copy the comparison counts of combined runs back to the runs they are made of."""
        for joined in self._joined:
            joined.tell_pairs()


class _Joined:
    """Runs of one side combined into one."""

    def __init__(self, members: list[NewRun]) -> None:
        self.members = members
        self.run, self._order = members[0].joined(members[1:])

    def tell_pairs(self) -> None:
        pairs = np.empty_like(self.run.pairs)
        pairs[self._order] = self.run.pairs
        ends = np.cumsum([len(member.codes) for member in self.members])
        for member, some in zip(self.members, np.split(pairs, ends[:-1]), strict=True):
            member.pairs += some


@dataclass(frozen=True)
class ProbingRows:
    """New rows that probe, and the partitions they belong to."""

    run: NewRun
    rows: NewRows
    #: The same rows as if nothing were skipped.
    unhindered: NewRows
    owned: NDArray[np.int64]
    bounds: NDArray[np.int64]
    #: Length of a basic window of the other side, if counts are kept by basic window.
    slot_us: int = 0
    #: Group per row, if some rows are a sample; the groups of other rows have no meaning.
    groups: NDArray[np.int64] | None = None

    @cached_property
    def by_slot(self) -> NewRowGroups:
        """All rows by basic window, as if nothing were skipped."""
        return NewRowGroups.of(self.unhindered, self.slot_us)

    @property
    def forgets(self) -> bool:
        """Whether the rows have fewer candidates because part of the state was given up."""
        return self.rows.low is not self.unhindered.low
