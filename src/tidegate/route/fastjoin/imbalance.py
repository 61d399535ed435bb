"""The load of each instance and the load imbalance, as FastJoin counts them.

Paper: FastJoin, section III-B, equations 1 to 4. A probe is compared with every stored row of its instance:

    L_i = |R_i| · φ_i        rows stored, times rows that probe them; both sides of the join added up
    LI  = heaviest / lightest

The paper's φ is a queue length; ours is the number of probes of one batch. (Ls-Stream's other LI, equation
13, is in `ls_stream/deviation.py`.)

What the paper leaves open: without any work LI = 1. Where some instances have work and others have none, LI
is infinite and crosses any threshold. Where a partition or key lies on k instances, each stores a k-th of
its rows and receives all its probes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.route.assignment import Assignment
from tidegate.route.load import Load, LoadWork

#: Place of a key that lies on several instances.
SPLIT = -1


@dataclass(frozen=True)
class InstanceWork:
    """Rows stored and probes of each instance, per side: arrays of shape (2, instances)."""

    stored: NDArray[np.float64]
    probes: NDArray[np.float64]

    @property
    def loads(self) -> NDArray[np.float64]:
        """L_i of each instance (equation 1, both sides)."""
        return np.asarray((self.stored * self.probes).sum(axis=0))


def imbalance(loads: NDArray[np.float64]) -> float:
    """LI of equation 2: at least 1; infinite where some instances have work and others have none."""
    heaviest, lightest = float(loads.max()), float(loads.min())
    if heaviest == lightest:
        return 1.0
    return heaviest / lightest if lightest > 0 else float("inf")


def key_places(
    codes: NDArray[np.uint64], homes: NDArray[np.int64], assignment: Assignment
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Instance of each key (or SPLIT), and which keys have a place of their own."""
    places = np.asarray(assignment.table, np.int64)[homes]
    if assignment.spread > 1:
        places[:] = SPLIT
    number = assignment.listed(codes)
    own = number >= 0
    if own.any():
        only = (at[0] if len(at) == 1 else SPLIT for at in assignment.keys.values())
        first = np.fromiter(only, np.int64, len(assignment.keys))
        places[own] = first[number[own]]
    return places, own


def instance_work(load: Load, assignment: Assignment) -> InstanceWork:
    """Stored rows and probes of each instance: its partitions, and the keys placed on it."""
    work = InstanceWork(np.zeros((2, assignment.instances)), np.zeros((2, assignment.instances)))
    table = np.asarray(assignment.table, np.int64)
    for shift in range(assignment.spread):
        _add(work, load.partitions, (table + shift) % assignment.instances, assignment.spread)
    places, own = key_places(load.codes, load.homes, assignment)
    whole = np.flatnonzero(own & (places != SPLIT))
    _add(work, load.keys.at(whole), places[whole], 1)
    for key in np.flatnonzero(own & (places == SPLIT)):
        instances = assignment.keys[int(load.codes[key])]
        for instance in instances:
            _add(work, load.keys.at(np.array([key])), np.array([instance]), len(instances))
    return work


def _add(work: InstanceWork, more: LoadWork, instances: NDArray[np.int64], shared_by: int) -> None:
    for side in (0, 1):
        for sums, counts, parts in (
            (work.stored, more.stored, shared_by),
            (work.probes, more.probes, 1),
        ):
            found = np.bincount(instances, weights=counts[side], minlength=sums.shape[1])
            sums[side] += found / parts
