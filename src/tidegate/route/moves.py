"""Turns an assignment into a placement: which partitions change their owner, and which rows are cut out.

    placement + assignment ──▶ placement', cuts

Most moves only change a table: base partitions, keys that have a place already, keys that return to their
partition, shares that are given up. A cut is needed only where a key gets a place of its own, or more
shares than it had. A partition that a place no longer stores to drains with the window, and its number is
then reused. Until then it lies on an instance that the place still stores to, so no row has to probe more
instances.

Guarantee: every stored row stays in exactly one partition, every partition with rows has an owner, and an
instance that holds rows of a place also takes new rows of it.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from tidegate.model.routing import NOBODY, Cut, Place, Placement
from tidegate.route.assignment import Assignment
from tidegate.route.hash_routing import partition_of


def first_placement(wanted: Assignment, shift: int = 0) -> Placement:
    """The placement at the start of a query; `shift` is the number of the first instance."""
    return rearranged(Placement(tuple(wanted.table)), wanted, (), shift=shift)[0]


def rearranged(
    current: Placement, wanted: Assignment, owned: Container[int], side: int = 0, shift: int = 0
) -> tuple[Placement, tuple[Cut, ...]]:
    """The placement that carries out the assignment, and the cuts; `owned`: partitions that have rows."""
    table = [*_shifted(wanted.table, shift), *current.table[len(wanted.table) :]]
    step = _Step(table, len(wanted.table), owned, side)
    for known in current.places:
        step.use(known.holds)
    shared = step.share_all(current, wanted, shift)
    keys = {}
    for code in sorted({*current.keys, *wanted.keys}):
        home = _home(code, len(wanted.table))
        goal = _shifted(wanted.keys.get(code, ()), shift)
        base = shared.get(home) or Place((home,), (home,))
        own = _own(current, code, home)
        place = step.key(code, base, own, goal)
        if place is not None:
            keys[code] = replace(place, columns=wanted.columns.get(code, 1)) if goal else place
    return Placement(step.done(), shared, keys), tuple(step.cuts)


@dataclass
class _Step:
    """The table under construction, and the partition numbers in use."""

    table: list[int]
    base: int
    owned: Container[int]
    side: int
    used: set[int] = field(default_factory=set)
    #: No number below this is free; numbers that become free meanwhile are found by the next step.
    searched: int = 0
    cuts: list[Cut] = field(default_factory=list)

    def use(self, partitions: Iterable[int]) -> None:
        self.used.update(p for p in partitions if p >= self.base)

    def new(self, instance: int) -> int:
        """A partition number that is not in use and that no stored row has."""
        for number in range(max(self.base, self.searched), len(self.table)):
            if number not in self.used and number not in self.owned:
                break
        else:
            number = len(self.table)
            self.table.append(NOBODY)
        self.searched = number + 1
        self.used.add(number)
        self.table[number] = instance
        return number

    def drained(self, partitions: Iterable[int]) -> tuple[int, ...]:
        """The partitions that still have rows; the numbers of the others are free."""
        partitions = tuple(partitions)
        self.used.difference_update(p for p in partitions if p not in self.owned)
        return tuple(p for p in partitions if p in self.owned)

    def share_all(self, current: Placement, wanted: Assignment, shift: int) -> dict[int, Place]:
        if wanted.spread == 1 and not current.shared:
            return {}
        shared = {}
        for partition in range(self.base):
            before = current.shared.get(partition)
            others = _shifted(wanted.instances_of(partition)[1:], shift)
            place = self._share(partition, before, others)
            if place.holds != (partition,):
                shared[partition] = place
        return shared

    def _share(self, partition: int, before: Place | None, others: tuple[int, ...]) -> Place:
        """A base partition and further ones that take its new rows; stored rows stay where they are."""
        shares = list(before.stores[1:]) if before else []
        leaving = [p for p in (before.holds if before else ()) if p not in (partition, *shares)]
        while len(shares) > len(others):
            leaving.append(shares.pop())
        for share, instance in zip(shares, others, strict=False):
            self.table[share] = instance
        shares += [self.new(instance) for instance in others[len(shares) :]]
        leaving = list(self.drained(leaving))
        for share in leaving:
            self.table[share] = self.table[partition]
        return Place((partition, *shares), (partition, *shares, *leaving))

    def key(self, code: int, base: Place, before: Place | None, goal: tuple[int, ...]) -> Place | None:
        """The place of a key that should lie on the instances of `goal`; empty: with its partition."""
        if before is None:
            return self._cut_out(code, base, goal)
        if not goal:
            return self._home(base, before.holds)
        if not before.stores:
            # The key was returning to its partition: what has not drained moves with it, without a cut.
            return self._called_back(code, base, before.holds, goal)
        leaving = [p for p in before.holds if p not in before.stores]
        return self._moved(code, list(before.stores), leaving, goal)

    def _cut_out(self, code: int, base: Place, goal: tuple[int, ...]) -> Place:
        stores = tuple(self.new(instance) for instance in goal)
        self.cuts.append(Cut(self.side, code, base.holds, stores))
        return Place(stores, stores)

    def _called_back(self, code: int, base: Place, own: tuple[int, ...], goal: tuple[int, ...]) -> Place:
        place = self._cut_out(code, base, goal)
        leaving = self.drained(own)
        for partition in leaving:
            self.table[partition] = goal[0]
        return Place(place.stores, (*place.holds, *leaving))

    def _home(self, base: Place, own: tuple[int, ...]) -> Place | None:
        leaving = self.drained(own)
        for partition in leaving:
            self.table[partition] = self.table[base.stores[0]]
        return Place(base.stores, (*base.holds, *leaving)) if leaving else None

    def _moved(self, code: int, stores: list[int], leaving: list[int], goal: tuple[int, ...]) -> Place:
        """Shares stay on their instances where possible, move to others, and are cut into more."""
        free = [instance for instance in goal if instance not in {self.table[p] for p in stores}]
        kept: list[int] = []
        for partition in stores:
            if self.table[partition] not in goal or self.table[partition] in {self.table[p] for p in kept}:
                if not free:
                    leaving.append(partition)
                    continue
                self.table[partition] = free.pop(0)
            kept.append(partition)
        added = tuple(self.new(instance) for instance in free)
        if added:
            self.cuts.append(Cut(self.side, code, tuple(kept), added, len(kept), len(kept) + len(added)))
        drained = self.drained(leaving)
        for partition in drained:
            if self.table[partition] not in goal:
                self.table[partition] = self.table[kept[0]]
        return Place((*kept, *added), (*kept, *added, *drained))

    def done(self) -> tuple[int, ...]:
        """The table without unused numbers at its end."""
        for number in range(self.base, len(self.table)):
            if number not in self.used:
                self.table[number] = NOBODY
        while len(self.table) > self.base and self.table[-1] == NOBODY:
            self.table.pop()
        return tuple(self.table)


def _own(current: Placement, code: int, home: int) -> Place | None:
    """A key's own partitions, without those of its base partition; None: it has no place."""
    place, base = current.keys.get(code), current.base(home)
    if place is None:
        return None
    stores, holds = (
        tuple(p for p in partitions if p not in base.holds) for partitions in (place.stores, place.holds)
    )
    return Place(stores, holds)


def _shifted(instances: Iterable[int], shift: int) -> tuple[int, ...]:
    return tuple(instance + shift for instance in instances)


def _home(code: int, partitions: int) -> int:
    return int(partition_of(np.array([code], np.uint64), partitions)[0])
