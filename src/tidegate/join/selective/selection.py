"""Selective processing: which part of the opposite window a probing row is compared with.

Paper: selective join, tuple processing with time correlation adaptation, algorithm 3.

A row has a budget of r · |W| stored rows. It takes basic windows in order of priority, each whole as long as
the budget lasts, and of the last one the newest part:

    priority      2nd       4th       1st       3rd
    age            3         2         1         0
                [█████████|         |█████████|     ███]     r · |W| rows in all; the 3rd in part, by time

A few rows are chosen to be processed fully, so that the usefulness of every basic window can be measured.
They are chosen by a seeded hash of their identity and not by a random number: a replayed batch chooses the
same ones.

Guarantee: never a stored row outside the ranges given, never more than the rounded budget, none twice.
Where the paper is open: it says "an appropriate fraction" of the last basic window; ours is its newest
part, one contiguous range, which a time-sorted list gives without a search through the rest. Without
priorities (newest first) this is the paper's partial processing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


#: What a lot is drawn for: a row that explores is no more likely to be dropped than any other.
KEEP, OVERFLOW, EXPLORE, PLACE, GROUP, PAY = 1, 2, 3, 4, 5, 6
#: Groups of a sample, each as good as the whole but smaller: how they differ says how sure an estimate is.
GROUPS = 16


def purpose(seed: int, use: int) -> int:
    """A seed for one use: the same row draws independent lots for different uses."""
    return 8 * seed + use


def row_identity(codes: NDArray[np.uint64], times: NDArray[np.int64], batch: int) -> NDArray[np.uint64]:
    """What a row is known by: its key, its time and the batch it came in."""
    return mixed(codes ^ mixed(times.view(np.uint64), batch), batch)


def lots(identity: NDArray[np.uint64], seed: int) -> NDArray[np.float64]:
    """A number in [0, 1) for each row, the same every time."""
    return np.asarray(
        (mixed(identity, seed) >> np.uint64(11)) / 2.0**53
    )  # 53 bits: what a float holds exactly


def sample_groups(lot: NDArray[np.float64]) -> NDArray[np.int64]:
    """Rows by lot in groups of about one size, whatever the lots were drawn for: replicates of a sample."""
    return np.asarray(lots(lot.view(np.uint64), GROUP) * GROUPS).astype(np.int64)


def within_share(identity: NDArray[np.uint64], share: float, seed: int) -> NDArray[np.bool_]:
    """Which rows belong to a sample of this share; the same row, seed and share always answer the same.

    A larger share contains every row of a smaller one.
    """
    return np.asarray(lots(identity, seed) < share)


def mixed(identity: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """Well-mixed bits of identity and seed (the finaliser of SplitMix64)."""
    bits = identity + np.uint64((seed * 0x9E3779B97F4A7C15 + 0x9E3779B97F4A7C15) % 2**64)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(bits ^ (bits >> np.uint64(31)))
