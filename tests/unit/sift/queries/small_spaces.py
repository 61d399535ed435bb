"""A few rows in a small domain, for tests of partitioners."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tidegate.sift.partition.partitioners import partitioner
from tidegate.sift.queries.axes import Axis, places
from tidegate.sift.queries.boxes import Boxes
from tidegate.sift.regions import Domain, Regions

NUMBER, INTEGER, CATEGORY = Axis("x"), Axis("i", "integer"), Axis("c", "category", ("a", "b"))


def boxes(axes: tuple[Axis, ...], low: Sequence[Sequence[float]], high: Sequence[Sequence[float]]) -> Boxes:
    """A query for each pair of corners."""
    lower, upper = (np.array(bound, np.float64).reshape(-1, len(axes)) for bound in (low, high))
    return Boxes(axes, places(lower), places(upper), np.arange(len(lower), dtype=np.int32), len(lower))


def cut(
    name: str,
    sample: Sequence[Sequence[float]],
    regions: int,
    *,
    axes: tuple[Axis, ...] = (NUMBER, NUMBER),
    high: tuple[float, ...] = (1.0, 1.0),
    hits: Sequence[int] | None = None,
) -> Regions:
    """What the partitioner of this name makes of a domain from 0 on; without queries."""
    rows = np.array(sample, np.float64).reshape(-1, len(axes))
    counts = np.array(hits if hits is not None else [0] * len(rows), np.int64)
    domain = Domain(np.zeros(len(axes)), np.array(high))
    return partitioner(name)(domain, rows, counts, boxes(axes, [], []), regions)
