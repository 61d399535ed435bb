"""Rows that passed a sifter as samples, as coordinates with the regions they fell into."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Sampled:
    """Rows that passed a sifter as samples: coordinates (rows, axes), and how many queries each hits.

    A null coordinate is NaN here.
    """

    coordinates: NDArray[np.float64]
    hits: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.hits)

    @classmethod
    def empty(cls, axes: int) -> Sampled:
        return cls(np.zeros((0, axes)), np.zeros(0, np.int32))

    @classmethod
    def joined(cls, samples: Sequence[Sampled]) -> Sampled:
        return cls(
            np.concatenate([s.coordinates for s in samples]), np.concatenate([s.hits for s in samples])
        )

    def last(self, rows: int) -> Sampled:
        """The newest of them."""
        first = max(0, len(self) - rows)
        return Sampled(self.coordinates[first:], self.hits[first:])
