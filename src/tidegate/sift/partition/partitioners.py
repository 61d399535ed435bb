"""The partitioners by name: how the data space becomes the regions of a sifter.

Paper: sifters, section V; the first four names are those of its figures. `auto` is ours and performs best
(`auto/partition.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import FlowError
from tidegate.sift.partition.approximate_equi_depth import approximate_equi_depth
from tidegate.sift.partition.approximate_grid import approximate_grid
from tidegate.sift.partition.auto.partition import auto_partition
from tidegate.sift.partition.equi_depth import data_equi_depth, query_equi_depth
from tidegate.sift.partition.qd_part import qd_part
from tidegate.sift.partition.uniform_grid import uniform_grid
from tidegate.sift.queries.boxes import Boxes
from tidegate.sift.regions import Domain, Regions


class Partitioner(Protocol):
    """Sample (rows, axes), number of queries that each row satisfies, all queries → at most l regions."""

    def __call__(
        self,
        domain: Domain,
        sample: NDArray[np.float64],
        hits: NDArray[np.int64],
        boxes: Boxes,
        regions: int,
    ) -> Regions: ...


PARTITIONERS: Mapping[str, Partitioner] = MappingProxyType(
    {
        "ugrid": uniform_grid,
        "dedp": data_equi_depth,
        "qedp": query_equi_depth,
        "flexp": qd_part,
        "volume": approximate_grid,
        "count": approximate_equi_depth,
        "auto": auto_partition,
    }
)


def partitioner(name: str) -> Partitioner:
    """The partitioner of this name."""
    try:
        return PARTITIONERS[name]
    except KeyError:
        raise FlowError(
            "Unknown partitioner",
            code="SIFTER_PARTITIONER_UNKNOWN",
            got=repr(name),
            do="Use one of " + ", ".join(PARTITIONERS),
        ) from None


def partitioner_for(
    name: str,
    weights: NDArray[np.float64],
    alphas: NDArray[np.float64],
    *,
    z: float,
    fairness: float,
) -> Partitioner:
    """The partitioner of this name; `auto` is bound to the weights, alphas, z and fairness."""
    if name != "auto":
        return partitioner(name)
    return partial(auto_partition, gain=weights.astype(np.float64) * alphas, z=z, fairness=fairness)
