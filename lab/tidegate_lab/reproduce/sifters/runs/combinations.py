"""All partitioners side by side on one scene: built from a sample, measured on fresh data.

Paper: sifters, section VI-B. Every contender gets the same sample and queries, and is judged by rows that it
has never seen, out of the same hot spots. A query without data is complete, as in the paper.

What a sifter lets pass beyond the share z is more than the server can take, and the server drops as much at
random, as the paper says it does: `qos` has that taken off. Without it a partitioner would win by promising
too much: sifters made as the paper makes them (`shrink=False`) let one or two percent too many rows pass, and
where data and queries go together that is most of what they seem to gain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from tidegate.sift.construct.configuration import configure
from tidegate.sift.construct.consolidation import consolidate
from tidegate.sift.construction import Asked, Constructed, construct
from tidegate.sift.partition.auto.partition import auto_partition
from tidegate.sift.partition.partitioners import Partitioner, partitioner
from tidegate.sift.placing import region_of
from tidegate.sift.queries.query_set import QuerySet
from tidegate_lab.reproduce.sifters.runs.scene import Scene, Source, scene

#: The partitioners of the paper's figures, by its names.
PAPER = ("ugrid", "dedp", "qedp", "flexp")
RANDOM = "random"
AUTO = "auto"
SIFTERS = (*PAPER, AUTO)
CONTENDERS = (RANDOM, *SIFTERS)
#: Data and queries, in the order of figure 4.
COMBINATIONS = (("unif", "skew"), ("skew", "unif"), ("skew", "skew"), ("unif", "unif"))
COLOURS = {RANDOM: 7, "ugrid": 5, "dedp": 2, "qedp": 3, "flexp": 0, AUTO: 1}


@dataclass(frozen=True)
class Setting:
    """How sifters are built and judged; the defaults are those of the paper's Table I."""

    regions: int = 16
    z: float = 0.5
    fairness: float = 0.5
    sample_rows: int = 1000
    fresh_rows: int = 100_000
    #: False: frequencies as the sample has them, as in the paper.
    shrink: bool = True
    #: Thresholds by the fresh rows themselves, which nobody has: the most that regions can give.
    known: bool = False


@dataclass(frozen=True)
class Measured:
    """What one contender did on fresh data."""

    #: Overall QoS, after the server has dropped what it cannot take.
    qos: float
    #: The share of fresh rows that passed.
    passed: float
    #: Overall QoS, were the server to take all that passes.
    qos_unbounded: float
    #: The same of queries that have data: what equation 9 speaks of.
    qos_with_data: float
    #: And as equation 9 foresaw it.
    foreseen: float


@cache
def measured(source: Source, setting: Setting, name: str) -> Measured:
    """One contender on one scene."""
    there = scene(source, setting.sample_rows, setting.fresh_rows)
    if name == RANDOM:
        return _judge(there, setting.z, np.full(len(there.fresh), setting.z), None)
    sifter = build(there, setting, name)
    if setting.known:
        sifter = _with_foresight(there, setting, sifter)
    return _judge(there, setting.z, keep(sifter, there.fresh), sifter)


def compare(
    source: Source, setting: Setting | None = None, names: Sequence[str] = SIFTERS
) -> dict[str, Measured]:
    """Every contender of these names, and random dropping, on one scene."""
    return {name: measured(source, setting or Setting(), name) for name in (RANDOM, *names)}


def best_of_paper(found: Mapping[str, float]) -> float:
    """The highest figure among the paper's partitioners."""
    return max(found[name] for name in PAPER if name in found)


def build(there: Scene, setting: Setting, name: str) -> Constructed:
    """The sifter that this partitioner gives."""
    queries = there.queries
    return construct(
        partitioner_of(name, queries, setting),
        there.domain,
        there.sample,
        Asked(queries.boxes, queries.weights, queries.alphas),
        regions=setting.regions,
        z=setting.z,
        fairness=setting.fairness,
        paper=not setting.shrink,
    )


def partitioner_of(name: str, queries: QuerySet, setting: Setting) -> Partitioner:
    """By name; ours is also told weights, alphas and the load."""
    if name != AUTO:
        return partitioner(name)
    return partial(
        auto_partition,
        gain=queries.weights * queries.alphas,
        z=setting.z,
        fairness=setting.fairness,
    )


def keep(sifter: Constructed, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """How likely each row passes."""
    return np.asarray((1 - sifter.thresholds)[region_of(sifter.regions, rows)])


def _with_foresight(there: Scene, setting: Setting, sifter: Constructed) -> Constructed:
    """The same regions with the best thresholds there are for the rows that will judge them."""
    queries, answers, count = there.queries, there.answers, sifter.regions.count
    region = region_of(sifter.regions, there.fresh)
    shares = np.bincount(region, minlength=count) / len(region)
    # What each row is worth to each query that asks for it: all rows of a query the same.
    worth = np.repeat(queries.weights * queries.alphas / np.maximum(1, answers.rows), answers.rows)
    region_qos = np.bincount(region[answers.row], weights=worth, minlength=count).astype(float)
    nonempty = sifter.consolidated.nonempty
    thresholds = configure(region_qos, shares, nonempty, setting.z, setting.fairness)
    return replace(sifter, thresholds=thresholds, frequencies=shares)


def _judge(there: Scene, z: float, kept: NDArray[np.float64], sifter: Constructed | None) -> Measured:
    """The quality that queries get where fresh rows are kept with these probabilities."""
    queries, passed = there.queries, float(kept.mean())
    found = there.answers.quality(kept)
    taken = found.scaled(min(1.0, z / passed) if passed > 0 else 1.0)
    qos, unbounded = (one.overall_qos(queries.weights, queries.alphas) for one in (taken, found))
    with_data = queries.weights * there.has_data
    with_data /= with_data.sum()
    qos_with_data = foreseen = found.overall_qos(with_data, queries.alphas)
    if sifter is not None:
        seen = consolidate(sifter.regions, sifter.frequencies, queries.boxes, with_data, queries.alphas)
        foreseen = seen.overall_qos(sifter.thresholds)
    return Measured(qos, passed, unbounded, qos_with_data, foreseen)
