"""A set of queries, as sifters and the query index take it: boxes, weights and alphas.

Paper: sifters, section II. Weights sum up to one (II-B); `alphas` are the slopes of quality over
completeness (II-C).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from tidegate.api.range_queries import RangeQuery
from tidegate.errors import FlowError
from tidegate.sift.queries.boxes import Boxes
from tidegate.sift.queries.query_boxes import boxes_of


@dataclass(frozen=True, eq=False)
class QuerySet:
    """Query i is called `names[i]` and owns the boxes whose owner is i; `weights` sum up to one."""

    boxes: Boxes
    names: tuple[str, ...]
    weights: NDArray[np.float64]
    alphas: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def fingerprint(self) -> str:
        """A short hash that identifies these queries."""
        digest = blake2b(digest_size=16)
        for axis in self.boxes.axes:
            digest.update(repr(axis).encode())
        for array in (self.boxes.low, self.boxes.high, self.boxes.owner, self.weights, self.alphas):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    @classmethod
    def of(cls, queries: Sequence[RangeQuery], schema: Mapping[str, str]) -> QuerySet:
        """Queries in SQL, over a stream whose columns have these kinds; see `boxes_of`."""
        boxes = boxes_of(queries, schema)
        weights = np.array([query.weight for query in queries], np.float64)
        alphas = np.array([query.loss_sensitivity for query in queries], np.float64)
        return cls(boxes, tuple(query.name for query in queries), normalised(weights), alphas)


def normalised(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights that sum up to one, in the same ratios."""
    if not (np.isfinite(weights) & (weights > 0)).all():
        raise FlowError(
            "The weight of a query must be a finite number above 0",
            code="QUERY_WEIGHT_RANGE",
            got=weights.min(),
            do="Give for example weight=2.0: this query counts twice as much as one of weight 1",
        )
    scaled = weights / weights.max()  # so that the sum is finite for any weights
    return np.asarray(scaled / scaled.sum())
