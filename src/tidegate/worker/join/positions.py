"""Positions of pairs in two runs, and the rows of a run by time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Positions: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Places:
    """The rows of a run that belong to this instance, sorted by time: place → row."""

    rows: Positions
    times: NDArray[np.int64]

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes + self.times.nbytes
