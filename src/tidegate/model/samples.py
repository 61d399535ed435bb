"""Rows that passed a sifter as samples, as coordinates with the regions they fell into."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Sampled:
    """Rows that passed whatever the sifter says: coordinates (rows, axes), and how many queries each hits.

    A coordinate that is null is NaN here: such a row lies in no region.
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

    def to_json(self) -> dict[str, Any]:
        # As bytes, because floats as text are three times as long, and a sample goes into every manifest.
        return {
            "axes": self.coordinates.shape[1],
            "coordinates": _text(self.coordinates.astype("<f8")),
            "hits": _text(self.hits.astype("<i4")),
        }

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Sampled:
        coordinates = np.frombuffer(base64.b64decode(raw["coordinates"]), "<f8").reshape(-1, raw["axes"])
        return cls(coordinates, np.frombuffer(base64.b64decode(raw["hits"]), "<i4"))


def _text(array: NDArray[Any]) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
