"""Selective processing: the part of the opposite window that a probing row is compared with.

Paper: selective join, tuple processing with time correlation adaptation, algorithm 3.

A row has a budget of r · |W| stored rows. It takes basic windows in order of priority, each whole as long as
the budget lasts, and the newest part of the last one:

    priority      2nd       4th       1st       3rd
    age            3         2         1         0
                [█████████|         |█████████|     ███]     r · |W| rows in all; the 3rd in part, by time

A few rows are processed fully, so that the productivity of every basic window can be measured. They are
drawn by hash sampling: a seeded hash of their identity instead of a random number, so that a replayed batch
draws the same rows.

Guarantee: never a stored row outside the given ranges, never more than the rounded budget, no row twice.
Where the paper is open: it says "an appropriate fraction" of the last basic window. Ours is its newest
part, one contiguous range, which a time-sorted list gives without searching the rest. Without priorities
(newest first) this is the paper's partial processing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: Uses of hash sampling, each with its own seed: an exploring row is no more likely to be dropped.
KEEP, OVERFLOW, EXPLORE, PLACE, GROUP, REPAIR = 1, 2, 3, 4, 5, 6
#: Replicate groups of a sample: the spread between them gives the confidence of an estimate.
GROUPS = 16


def purpose(seed: int, use: int) -> int:
    """A seed for one use: a row's unit hashes for different uses are independent."""
    return 8 * seed + use


def row_identity(
    codes: NDArray[np.uint64],
    times: NDArray[np.int64],
    batch: int,
    contents: NDArray[np.uint64] | None = None,
) -> NDArray[np.uint64]:
    """The identity of rows sorted by key and time: key, time, the batch they arrived in, and their contents.

    Rows with equal contents are numbered. Which of them gets which number may differ between attempts, but
    nothing distinguishes them, so results are the same. Without contents, rows of one key and time share
    one identity.
    """
    identity = mixed(codes ^ mixed(times.view(np.uint64), batch), batch)
    if contents is None:
        return identity
    identity = mixed(identity ^ contents, batch)
    return np.asarray(identity + _number_among_equals(identity, codes, times))


def _number_among_equals(
    identity: NDArray[np.uint64], codes: NDArray[np.uint64], times: NDArray[np.int64]
) -> NDArray[np.uint64]:
    """The number of each row among the rows of its identity, from 0."""
    numbers = np.zeros(identity.size, np.uint64)
    same = (codes[1:] == codes[:-1]) & (times[1:] == times[:-1])
    rows = np.flatnonzero(np.append(same, False) | np.append(False, same))
    if rows.size:
        rows = rows[np.argsort(identity[rows], kind="stable")]
        first = np.append(True, identity[rows[1:]] != identity[rows[:-1]])
        places = np.arange(rows.size)
        numbers[rows] = places - np.maximum.accumulate(np.where(first, places, 0))
    return numbers


def unit_hashes(identity: NDArray[np.uint64], seed: int) -> NDArray[np.float64]:
    """A number in [0, 1) for each row, the same on every replay."""
    return np.asarray((mixed(identity, seed) >> np.uint64(11)) / 2.0**53)  # 53 bits: exact in a float


def sample_groups(hashes: NDArray[np.float64]) -> NDArray[np.int64]:
    """The replicate group of each row; groups are of about equal size, whatever the hashes are used for."""
    return np.asarray(unit_hashes(hashes.view(np.uint64), GROUP) * GROUPS).astype(np.int64)


def within_share(identity: NDArray[np.uint64], share: float, seed: int) -> NDArray[np.bool_]:
    """The rows in a sample of this share; the same row, seed and share always give the same answer.

    A larger share contains every row of a smaller one.
    """
    return np.asarray(unit_hashes(identity, seed) < share)


def mixed(identity: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """Well-mixed bits of identity and seed (the finaliser of SplitMix64)."""
    bits = identity + np.uint64((seed * 0x9E3779B97F4A7C15 + 0x9E3779B97F4A7C15) % 2**64)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(bits ^ (bits >> np.uint64(31)))
