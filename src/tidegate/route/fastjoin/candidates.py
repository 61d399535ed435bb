"""What moving a key from the heaviest instance to the lightest is worth.

Paper: FastJoin, section III-C, equations 6 to 8. Moving key k from instance i to j lessens the difference of
their loads by its benefit

    F_k = (|R_i| + |R_j|) · φ_k + (φ_i + φ_j) · |R_k|          (8; both sides of the join added up)

and benefits add up exactly: the products of what moves enter L_i and L_j alike and cancel. (Equation 6 is
printed with two wrong signs: the receiver gains |R_k|·φ_j + |R_j|·φ_k. With them right, (8) follows.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tidegate.route.fastjoin.imbalance import InstanceWork
from tidegate.route.load import Work

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
