"""GreedyFit: which keys go from the heaviest instance to the lightest.

Paper: FastJoin, section III-C, equations 7 to 9 and algorithm 1. Moving key k from instance i to j lessens
the difference of their loads by its benefit

    F_k = (|R_i| + |R_j|) · φ_k + (φ_i + φ_j) · |R_k|          (8; both sides of the join added up)

and benefits add up exactly: the products of what moves enter L_i and L_j alike and cancel. (Equation 6 is
printed with two wrong signs: the receiver gains |R_k|·φ_j + |R_j|·φ_k. With them right, (8) follows.)

Keys are taken by benefit per row that must move, best first, as long as they fit into the gap L_i − L_j.
Keys with no stored row cost nothing to move and come first, the largest benefit before the others; among
equals the order of the keys decides, so that the choice depends on nothing else. Keys without any benefit
stay.

Guarantee: ΣF < L_i − L_j, so the receiver never ends up heavier than the giver. Time: one sort and one pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tidegate.route.compiled import compiled
from tidegate.route.imbalance import InstanceWork
from tidegate.route.load import Work

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: What no rows count as, so that they can be divided by: far less than one row.
_NO_ROWS = 1e-12


@dataclass(frozen=True)
class Candidates:
    """Keys of the giving instance: what moving each is worth, what it costs, and the gap to fill."""

    #: F_k of each key, and the rows that move with it.
    benefits: NDArray[np.float64]
    rows: NDArray[np.float64]
    #: L_i − L_j.
    gap: float


def candidates(work: InstanceWork, giver: int, taker: int, keys: Work) -> Candidates:
    """What each of the giver's keys would bring if the taker had it (equation 8)."""
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
