"""Rows with what the plan of their batch says about them: what they forget, and who explores.

Guarantee: a function of the rows' identities and the plan alone, so that what a row looked at can be said
again when its batch is replayed, and long afterwards.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tidegate.join.selective.reach import Exploring, NewRows
from tidegate.join.selective.selection import EXPLORE, lots, purpose, row_identity
from tidegate.model.skip_plan import Skipping
from tidegate.model.times import BEGINNING_US

if TYPE_CHECKING:
    from numpy.typing import NDArray


def skips_nothing(skipping: Skipping) -> bool:
    """Do all rows look at all that they have in reach?"""
    whole = min(map(min, skipping.shares)) >= 1 and not skipping.explore_share
    return whole and skipping.content is None and max(skipping.forget_us) == BEGINNING_US


def planned(
    rows: NewRows, codes: NDArray[np.uint64], window: int, skipping: Skipping, seed: int, batch: int
) -> NewRows:
    """Rows of one batch that look at one window; the very same object where the plan leaves out nothing."""
    if skipping.forget_us[window] > rows.extent[0]:
        rows = replace(rows, low=np.maximum(rows.low, skipping.forget_us[window]))
    if not skipping.explore_share and min(skipping.shares[window]) >= 1:
        return rows
    lot = lots(row_identity(codes, rows.times, batch), purpose(seed, EXPLORE))
    return replace(rows, lots=lot, exploring=Exploring(skipping.explore_share, skipping.explore_depth))
