"""GreedyFit: which keys go from the heaviest instance to the lightest.

Paper: FastJoin, section III-C, equation 9 and algorithm 1. Keys are taken by benefit F (`candidates.py`) per
row that must move, best first, as long as they fit into the gap L_i − L_j.
Keys with no stored row cost nothing to move and come first, the largest benefit before the others; among
equals the order of the keys decides, so that the choice depends on nothing else. Keys without any benefit
stay.

Guarantee: ΣF < L_i − L_j, so the receiver never ends up heavier than the giver. Time: one sort and one pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidegate.compiled import compiled
from tidegate.route.fastjoin.candidates import Candidates

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: What no rows count as, so that they can be divided by: far less than one row.
_NO_ROWS = 1e-12


def greedy_fit(keys: Candidates, least_benefit: float = 0.0) -> NDArray[np.int64]:
    """Positions of the keys to move, ascending; `least_benefit` is the paper's θ_gap."""
    factors = keys.benefits / np.maximum(keys.rows, _NO_ROWS)
    order = np.argsort(-factors, kind="stable")
    return np.flatnonzero(_fitting(keys.benefits, order, keys.gap, least_benefit))


@compiled
def _fitting(
    benefits: NDArray[np.float64], order: NDArray[np.int64], gap: float, least: float
) -> NDArray[np.bool_]:
    """Lines 11 to 16 of algorithm 1: each key in turn, if it still fits."""
    chosen = np.zeros(benefits.size, np.bool_)
    for k in order:
        if 0 < benefits[k] < gap and benefits[k] >= least:
            gap -= benefits[k]
            chosen[k] = True
    return chosen
