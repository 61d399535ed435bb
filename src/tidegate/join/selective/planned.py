"""Applies the plan of a batch to its new rows: the stored rows they ignore, and which rows explore.

Guarantee: a function of the rows' identities and the plan alone. The rows that were probed can therefore be
determined again when the batch is replayed, and long afterwards for repair.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tidegate.join.selective.reach import Exploring, NewRows
from tidegate.join.selective.selection import EXPLORE, purpose, unit_hashes
from tidegate.model.skip_plan import Skipping
from tidegate.model.times import BEGINNING_US


def skips_nothing(skipping: Skipping) -> bool:
    """True if all rows probe all their candidate pairs."""
    whole = min(map(min, skipping.shares)) >= 1 and not skipping.explore_share
    return whole and skipping.content is None and max(skipping.forget_us) == BEGINNING_US


def planned(
    rows: NewRows, identity: Callable[[], NDArray[np.uint64]], window: int, skipping: Skipping, seed: int
) -> NewRows:
    """Rows of one batch that probe one window; the identical object where the plan skips nothing.

    `identity`: computes the identities of the rows.
    """
    if skipping.forget_us[window] > rows.extent[0]:
        rows = replace(rows, low=np.maximum(rows.low, skipping.forget_us[window]))
    if not skipping.explore_share and min(skipping.shares[window]) >= 1:
        return rows
    hashes = unit_hashes(identity(), purpose(seed, EXPLORE))
    return replace(
        rows, unit_hashes=hashes, exploring=Exploring(skipping.explore_share, skipping.explore_depth)
    )
