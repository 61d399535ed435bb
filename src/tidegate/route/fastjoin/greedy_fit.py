"""GreedyFit: which keys go from the heaviest instance to the lightest.

Paper: FastJoin, section III-C, equations 6 to 9 and algorithm 1. Moving key k from instance i to j reduces
the difference of their loads by its benefit

    F_k = (|R_i| + |R_j|) · φ_k + (φ_i + φ_j) · |R_k|          (8; both sides of the join added up)

and benefits add up exactly: the products of the moved keys enter L_i and L_j alike and cancel. (Equation 6 is
printed with two wrong signs: the receiver gains |R_k|·φ_j + |R_j|·φ_k. With correct signs, (8) follows.)

Keys are taken by benefit per row that must move, best first, as long as they fit into the gap L_i − L_j.
Ties go by the order of the keys, so that the choice is deterministic. Keys without any benefit stay.

What the paper leaves open: keys with no stored row, for which F / |R| is a division by zero. They come
last, the largest benefit first, and fill the rest of the gap. A key without a stored row in the window is a
rare one, whose probes do not come again: put first (a limit of F / |R|), such keys would fill the gap on
paper only.

Guarantee: ΣF < L_i − L_j, so the receiver never ends up heavier than the giver. Time: one sort and one pass.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.kernels import compiled
from tidegate.route.fastjoin.imbalance import InstanceWork
from tidegate.route.load import LoadWork


@dataclass(frozen=True)
class Candidates:
    """Keys of the giving instance: the benefit and the cost of moving each, and the gap to fill."""

    #: F_k of each key, and the rows that move with it.
    benefits: NDArray[np.float64]
    rows: NDArray[np.float64]
    #: L_i − L_j.
    gap: float


def candidates(work: InstanceWork, giver: int, taker: int, keys: LoadWork) -> Candidates:
    """The benefit of moving each of the giver's keys to the taker (equation 8)."""
    rows = work.stored[:, giver] + work.stored[:, taker]
    probes = work.probes[:, giver] + work.probes[:, taker]
    loads = work.loads
    return Candidates(
        benefits=np.asarray(rows @ keys.probes + probes @ keys.stored, np.float64),
        rows=keys.stored.sum(axis=0).astype(np.float64),
        gap=float(loads[giver] - loads[taker]),
    )


def greedy_fit(keys: Candidates, least_benefit: float = 0.0) -> NDArray[np.int64]:
    """Positions of the keys to move, ascending; `least_benefit` is the paper's θ_gap."""
    rowless = keys.rows == 0
    factors = keys.benefits / np.where(rowless, 1.0, keys.rows)
    order = np.lexsort((-factors, rowless))
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
