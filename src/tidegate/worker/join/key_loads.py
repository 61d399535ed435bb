"""Reports the keys that cause most of an instance's work, and the keys that have a place of their own.

A sketch of constant size (`route/frequent_keys.py`) finds them. It misses no key with at least SHARE of the
instance's rows and comparisons and may include a few lighter ones. At most KEYS_MAX keys are reported, so a
report stays small. The work of these keys is then counted exactly: rows are sorted by code, so a key is a
range of rows and counting needs no hashing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tidegate.model.reports import KeyLoad
from tidegate.model.times import LEFT, RIGHT
from tidegate.route.frequent_keys import FrequentKeys
from tidegate.route.targets import STORE
from tidegate.worker.join.work import JoinWork
from tidegate.worker.runtime.runs import NewRun, StoredRun

#: Smallest share of an instance's work (rows and comparisons together) at which a key is reported.
SHARE = 2e-3
KEYS_MAX = 256
#: The error of the sketch is less than half of SHARE.
_LG_SIZE = 12


def key_loads(
    work: JoinWork, instance: int, stored: Sequence[StoredRun], new: Sequence[NewRun]
) -> tuple[KeyLoad, ...]:
    """The heavy keys by code; none unless the work order asks for them."""
    if not work.watch_keys:
        return ()
    rows, pairs = sum(len(run.codes) for run in new), sum(int(run.pairs.sum()) for run in new)
    heavy = _heaviest([run for run in new if not run.keyless], rows + pairs)
    codes = np.union1d(heavy, _placed(work, instance))
    if not len(codes):
        return ()
    arrived, compared = np.zeros((2, len(codes)), np.int64), np.zeros(len(codes), np.int64)
    for run in new:
        if run.keyless:
            continue
        first, behind = _ranges(run.codes, codes)
        if run.role & STORE:
            arrived[run.side] += behind - first
        running = np.concatenate([[0], np.cumsum(run.pairs)])
        compared += running[behind] - running[first]
    return _loads(codes, arrived, compared, stored)


def combined(
    work: JoinWork, instance: int, portions: Sequence[Sequence[KeyLoad]], stored: Sequence[StoredRun]
) -> tuple[KeyLoad, ...]:
    """The loads of the portions of a task as one, with the rows that were stored before.

    A key that is heavy in all is heavy in at least one portion. What it did in portions where it was not is
    left out: less than SHARE of each.
    """
    codes = np.unique(np.array([one.code for some in portions for one in some], np.uint64))
    if not len(codes):
        return ()
    arrived, compared = np.zeros((2, len(codes)), np.int64), np.zeros(len(codes), np.int64)
    for some in portions:
        at = np.searchsorted(codes, np.array([one.code for one in some], np.uint64))
        for i, one in zip(at, some, strict=True):
            arrived[:, i] += one.arrived
            compared[i] += one.comparisons
    chosen = np.isin(codes, _placed(work, instance))
    chosen[np.argsort(-(arrived.sum(axis=0) + compared), kind="stable")[:KEYS_MAX]] = True
    return _loads(codes[chosen], arrived[:, chosen], compared[chosen], stored)


def _loads(
    codes: NDArray[np.uint64],
    arrived: NDArray[np.int64],
    compared: NDArray[np.int64],
    stored: Sequence[StoredRun],
) -> tuple[KeyLoad, ...]:
    held = arrived.copy()
    for old in stored:
        for start, stop in () if old.keyless else old.own:
            first, behind = _ranges(old.codes[start:stop], codes)
            held[old.side] += behind - first
    return tuple(
        KeyLoad(
            int(code),
            (int(held[LEFT, i]), int(held[RIGHT, i])),
            (int(arrived[LEFT, i]), int(arrived[RIGHT, i])),
            int(compared[i]),
        )
        for i, code in enumerate(codes)
    )


def _heaviest(runs: Sequence[NewRun], work: int) -> NDArray[np.uint64]:
    """Codes of the keys that may have SHARE of these rows and pairs, the heaviest first."""
    keys = FrequentKeys(_LG_SIZE)
    for run in runs:
        starts = np.flatnonzero(np.diff(run.codes, prepend=~run.codes[:1]))
        rows = np.diff(starts, append=len(run.codes))
        keys.add(run.codes[starts], rows + np.add.reduceat(run.pairs, starts))
    return keys.heaviest(SHARE * work, KEYS_MAX)[0]


def _placed(work: JoinWork, instance: int) -> NDArray[np.uint64]:
    """Keys with a place of their own on this instance."""
    codes = [
        code
        for placement in {id(one): one for one in work.state.routing.sides}.values()
        for code, place in placement.keys.items()
        if instance in placement.on(place)
    ]
    return np.array(sorted(set(codes)), np.uint64)


def _ranges(
    codes: NDArray[np.uint64], wanted: NDArray[np.uint64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return np.searchsorted(codes, wanted), np.searchsorted(codes, wanted, side="right")
