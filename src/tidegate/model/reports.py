"""What passes between a match, its sifter and the controller: small values, plain JSON.

A match tries rows against queries (`worker/match/task.py`); its sifter stands in front of it and drops rows
when there is no time for all (`sift/`, `driver/frames/sifter_frames.py`); `control/actuators/sifting.py` decides how many.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
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


@dataclass(frozen=True)
class MatchReport:
    """The one telemetry row of a task of a match."""

    operator: str
    #: Rows that reached the task: on time, late, and too far ahead.
    received: int
    late: int
    rejected: int
    #: Newest usable event time among them.
    seen_us: int | None
    #: Rows that satisfy a query, and (row, query) pairs.
    matched: int
    emitted: int
    cpu_seconds: float
    #: Rows by region that the sifter let through, rows of no region last; empty without a sifter.
    kept: tuple[int, ...] = ()
    #: Rows that passed as samples; not among `kept`.
    sampled: int = 0
    #: Rows that were tried against the queries.
    tried: int = 0
    sample: Mapping[str, Any] = field(default_factory=dict)
    #: File of results that wait for the sinks, relative to the state; None where Spark itself has them.
    staged: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {"match": True, **asdict(self)}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> MatchReport:
        fields = {name: value for name, value in raw.items() if name != "match"}
        return cls(**{**fields, "kept": tuple(raw["kept"])})


def is_match_report(raw: Mapping[str, Any]) -> bool:
    """Reports of joins and of matches come back in one column."""
    return "match" in raw
