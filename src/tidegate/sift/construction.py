"""Construction of a sifter: partition the space, consolidate the queries, configure the thresholds.

Paper: sifters, section IV-A.1. Partitioning is a heuristic (`partitioners.py`); thresholds are optimal for
the regions that it gives. The result is a function of a sample: rows, and the number of queries that each
satisfies.

Where we differ: sample rows locate those of a query, not volumes alone (`consolidation.py`), and
frequencies are corrected for sampling error (`shrinkage.py`). With `paper=True` neither is done. What
passes of fresh data still differs from z by sampling error, about half a percent of all rows for 1000
sample rows. Once sources have counted their rows by region, `reconfigure` removes that error.

Rows with a null or NaN get regions of their own (`partition/null_patterns.py`), with thresholds like any
other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import FlowError
from tidegate.sift.construct.configuration import configure
from tidegate.sift.construct.consolidation import Consolidated, consolidate
from tidegate.sift.construct.shrinkage import shrunk
from tidegate.sift.partition.null_patterns import null_patterns, with_null_patterns
from tidegate.sift.partition.partitioners import Partitioner
from tidegate.sift.placing import frequencies
from tidegate.sift.queries.boxes import Boxes
from tidegate.sift.regions import Domain, Regions


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows before any filter, as coordinates (rows, axes), and the number of queries that each satisfies."""

    rows: NDArray[np.float64]
    hits: NDArray[np.int64]

    def __post_init__(self) -> None:
        if self.rows.ndim != 2 or len(self.rows) != len(self.hits) or not len(self.hits):
            raise FlowError(
                "A sample needs rows, and one hit count for each row",
                code="INTERNAL_ARRAYS_INCONSISTENT",
                got=f"rows of shape {self.rows.shape} and {len(self.hits)} hit counts",
            )


@dataclass(frozen=True, eq=False)
class Constructed:
    """A sifter's regions and thresholds, and the input of the thresholds."""

    regions: Regions
    thresholds: NDArray[np.float64]
    #: The share of rows in each region.
    frequencies: NDArray[np.float64]
    consolidated: Consolidated

    @property
    def overall_qos(self) -> float:
        """V* as predicted by equation 9."""
        return self.consolidated.overall_qos(self.thresholds)


class Asked(NamedTuple):
    """What queries ask for, and how much each of them counts."""

    boxes: Boxes
    weights: NDArray[np.float64]
    alphas: NDArray[np.float64]


def construct(
    partition: Partitioner,
    domain: Domain,
    sample: Sample,
    asked: Asked,
    *,
    regions: int = 16,
    z: float = 0.5,
    fairness: float = 0.5,
    paper: bool = False,
) -> Constructed:
    """A sifter of at most this many regions with the admit ratio z."""
    patterns = null_patterns(sample.rows, regions // 2)
    parts = partition(domain, sample.rows, sample.hits, asked.boxes, regions - len(patterns))
    parts = with_null_patterns(parts, patterns)
    shares = frequencies(parts, sample.rows)
    if paper:
        seen = consolidate(parts, shares, *asked)
    else:
        seen = consolidate(parts, shares, *asked, sample.rows)
        shares = shrunk(shares, seen.region_qos, len(sample.rows), fitted=parts.fitted)
    return _configured(parts, shares, seen, z, fairness)


def reconfigure(
    regions: Regions,
    counts: NDArray[np.int64],
    boxes: Boxes,
    weights: NDArray[np.float64],
    alphas: NDArray[np.float64],
    *,
    z: float,
    fairness: float = 0.5,
    sample: NDArray[np.float64] | None = None,
) -> Constructed:
    """New thresholds for existing regions; `counts` are the rows in each region."""
    if len(counts) != regions.count or (counts < 0).any() or not counts.sum() > 0:
        raise FlowError(
            "The row counts of a source do not fit the regions of the sifter",
            code="INTERNAL_ARRAYS_INCONSISTENT",
            got=f"{counts.tolist()} for {regions.count} regions",
        )
    shares = counts / counts.sum()
    seen = consolidate(regions, shares, boxes, weights, alphas, sample)
    return _configured(regions, shares, seen, z, fairness)


def _configured(
    regions: Regions, shares: NDArray[np.float64], seen: Consolidated, z: float, fairness: float
) -> Constructed:
    thresholds = configure(seen.region_qos, shares, seen.nonempty, z, fairness)
    return Constructed(regions, thresholds, shares, seen)
