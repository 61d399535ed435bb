"""All partitioners side by side on one workload: built from a sample, measured on fresh data.

Paper: sifters, section VI-B, figure 4. Every contender gets the same sample and queries, and is judged by
rows that it has never seen, out of the same hot spots. What a sifter lets pass beyond the share z is more
than the server can take, and the server drops as much at random, as the paper says it does: `qos` has that
taken off. Without it a partitioner would win by promising too much.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from tidegate.papers.sifters import Queries, Workload, draw_queries, draw_rows, hits
from tidegate.sift.auto.partition import auto_partition
from tidegate.sift.construction import Constructed, Sample, construct
from tidegate.sift.partitioners import PARTITIONERS, Partitioner
from tidegate.sift.placing import region_of
from tidegate.sift.quality import measure

#: The partitioners of the paper's figures, by its names.
PAPER = ("ugrid", "dedp", "qedp", "flexp")
RANDOM = "random"
AUTO = "auto"
#: Data and queries, in the order of figure 4.
COMBINATIONS = (("unif", "skew"), ("skew", "unif"), ("skew", "skew"), ("unif", "unif"))
#: The skews along the axis of figure 4.
SKEWS = (1.0, 2.0, 4.0, 6.0, 8.0, 10.0)


@dataclass(frozen=True)
class Setting:
    """How sifters are built and judged; the defaults are those of the paper's Table I."""

    regions: int = 16
    z: float = 0.5
    fairness: float = 0.5
    sample_rows: int = 1000
    fresh_rows: int = 20_000


@dataclass(frozen=True)
class Measured:
    """What one contender did on fresh data."""

    #: Overall QoS, after the server has dropped what it cannot take.
    qos: float
    #: Overall QoS, were the server to take all that passes.
    qos_unbounded: float
    #: The share of fresh rows that passed.
    passed: float
    #: Overall QoS as equation 9 foresaw it.
    foreseen: float


def contenders(queries: Queries, setting: Setting) -> Mapping[str, Partitioner]:
    """The paper's four and ours, which is told weights, alphas and the load."""
    ours = partial(
        auto_partition,
        weights=queries.weights,
        alphas=queries.alphas,
        z=setting.z,
        fairness=setting.fairness,
    )
    return MappingProxyType({name: PARTITIONERS[name] for name in PAPER} | {AUTO: ours})


def compare(
    workload: Workload, setting: Setting | None = None, names: Sequence[str] = (*PAPER, AUTO)
) -> dict[str, Measured]:
    """Every contender of these names, and random dropping, on one workload."""
    setting = setting or Setting()
    queries = draw_queries(workload)
    rows = draw_rows(workload, setting.sample_rows)
    sample = Sample(rows, hits(rows, queries.boxes))
    fresh = draw_rows(workload, setting.fresh_rows, part=1)
    found = {RANDOM: judge(fresh, np.full(len(fresh), setting.z), queries, setting.z, foreseen=np.nan)}
    partitioners = contenders(queries, setting)
    for name in names:
        sifter = construct(
            partitioners[name],
            workload.domain,
            sample,
            queries.boxes,
            queries.weights,
            queries.alphas,
            regions=setting.regions,
            z=setting.z,
            fairness=setting.fairness,
        )
        found[name] = judge(fresh, keep(sifter, fresh), queries, setting.z, sifter.overall_qos)
    return found


def keep(sifter: Constructed, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """How likely each row passes; what is in no region always does."""
    return np.asarray(np.append(1 - sifter.thresholds, 1.0)[region_of(sifter.regions, rows)])


def judge(
    fresh: NDArray[np.float64], kept: NDArray[np.float64], queries: Queries, z: float, foreseen: float
) -> Measured:
    """The quality that queries get where fresh rows are kept with these probabilities."""
    passed = float(kept.mean())
    taken = kept * min(1.0, z / passed) if passed > 0 else kept
    qos, unbounded = (
        measure(fresh, queries.boxes, share).overall_qos(queries.weights, queries.alphas)
        for share in (taken, kept)
    )
    return Measured(qos, unbounded, passed, foreseen)


def best_of_paper(found: Mapping[str, float]) -> float:
    """The highest figure among the paper's partitioners."""
    return max(found[name] for name in PAPER if name in found)
