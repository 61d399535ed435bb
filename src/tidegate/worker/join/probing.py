"""New rows that look for partners, with all that the plan says about them.

New rows of one side made one run, so that they look at each stored run once: whatever slots they lie in,
and whatever else is done with them.

A look has a price, however few rows take part in it: with a key split over eight instances a task made 740 of
them where 140 runs were stored.
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
    """Runs of one batch, made one for each side; the same runs are made one only once."""

    def __init__(self) -> None:
        self._joined: list[_Joined] = []

    def of_sides(self, runs: Sequence[NewRun]) -> list[NewRun]:
        """At most one run for each side, made of these."""
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
        """Let the runs know what their rows were compared with."""
        for joined in self._joined:
            joined.tell_pairs()


class _Joined:
    """Runs of one side made one."""

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
    def by_slot(self) -> NewRowGroups:
        """All rows as if nothing were left out, by basic window."""
        return NewRowGroups.of(self.unhindered, self.slot_us)

    @property
    def forgets(self) -> bool:
        """Is less in reach of the rows than there would be had nothing been given up?"""
        return self.rows.low is not self.unhindered.low
