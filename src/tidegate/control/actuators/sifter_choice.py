"""Decides whether the sifter must be replaced, and builds the next one.

Paper: sifters, section II-E: when the throttler drifts beyond a threshold, a new filter is constructed.
Reasons for a new one:

    z has drifted         by more than `drift` from the sifter's own: new regions and thresholds
    data have moved       new samples lie in other regions than those the sifter was built from, by more than
                          chance explains: new ones, from the new samples alone
    it misses its volume  what passed differs from z by more than `missed` of all rows: new thresholds, from
                          the rows counted in each region (beyond the paper, which uses the sample's
                          frequencies, with their sampling error)
    other samples         far more or fewer rows are expected: another share of samples, and new thresholds

Guarantee: a pure function. Samples pass every sifter, and thresholds compensate for them: the volume that
passes, samples included, is z. Without enough samples all rows are dropped with equal probability.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tidegate.api.goal import Shed
from tidegate.errors import FlowError
from tidegate.model.json_values import Snapshot
from tidegate.model.samples import Sampled
from tidegate.sift.construction import Asked, Constructed, Sample, construct, reconfigure
from tidegate.sift.domain import domain_of
from tidegate.sift.filter.sifter import Sifter
from tidegate.sift.partition.partitioners import partitioner_for
from tidegate.sift.placing import frequencies as frequencies_of
from tidegate.sift.queries.query_set import QuerySet

if TYPE_CHECKING:
    from numpy.typing import NDArray


#: Another share of samples is worth another sifter if it differs by more than this factor.
RESAMPLED = 2.0


@dataclass(frozen=True)
class ChoiceSettings:
    """Thresholds for replacing a sifter."""

    #: |U|: samples that a sifter is built from; each batch renews a quarter of them.
    samples: int = 1000
    #: Fewest samples to build a sifter from.
    samples_least: int = 50
    #: A change of z, as a part of it.
    drift: float = 0.03
    #: Rows in other regions than before, as a part of all.
    moved: float = 0.15
    #: Deviation of the rows passed from z, as a part of all rows.
    missed: float = 0.005


@dataclass(frozen=True, eq=False)
class Seen:
    """What the last batch showed of the rows in front of a sifter."""

    #: Samples that were known before, and those of the batch.
    old: Sampled
    new: Sampled
    #: Rows that the kept and sampled ones were taken from; 0 if unknown.
    offered: int
    sampled: int
    #: Rows by region that the sifter let through, not counting samples.
    kept: NDArray[np.int64]
    #: Rows offered in each region, where sources drop and count them, since the sifter was published.
    counts: NDArray[np.int64] | None = None

    @property
    def passed(self) -> float:
        """The share of the offered rows that passed."""
        return float(self.kept.sum() + self.sampled) / max(1, self.offered)

    @property
    def chance(self) -> float:
        """The deviation of that share which later rows may take back: sources count from few rows on."""
        return 0.0 if self.counts is None else float(1 / np.sqrt(max(1, self.offered)))


@dataclass(frozen=True, eq=False)
class ChosenSifter:
    """The sifter of the next batch, and what it was made from."""

    sifter: Sifter
    sample: Sampled
    #: The share of rows in each region as the sifter assumes it; None if it has no regions.
    frequencies: list[float] | None
    #: The overall QoS that it predicts; None if the sifter did not change.
    quality: float | None = None
    #: Why it was replaced; empty if it was not.
    why: str = ""
    #: What its regions are worth to the queries, and which of them any asks for; as JSON.
    regions: Snapshot | None = None


def choose(
    settings: ChoiceSettings,
    shed: Shed,
    queries: QuerySet,
    sifter: Sifter,
    frequencies: list[float] | None,
    seen: Seen,
    z: float,
    share: float,
) -> ChosenSifter:
    """The sifter for the next batch: z of the offered rows pass, samples included.

    `share`: the share of samples that another sifter would get.
    """
    both = Sampled.joined([seen.old, seen.new]).last(settings.samples)
    # Samples always pass, so the other rows are dropped at a slightly higher rate.
    drop = min(1.0, (1 - z) / (1 - share))
    asked = _Wanted(sifter, shed, z, share, drop)
    if abs(z - sifter.z) > settings.drift * sifter.z or (z == 1) != (sifter.z == 1):
        why = f"z went from {sifter.z:.3f} to {z:.3f}"
        return _next(asked, both, _built(settings, shed, queries, both, drop), why)
    if not share / RESAMPLED <= sifter.sample_share <= share * RESAMPLED:
        shares = None if frequencies is None else np.rint(1e9 * np.array(frequencies)).astype(np.int64)
        why = f"the share of samples went from {sifter.sample_share:.3f} to {share:.3f}"
        return _next(asked, both, _reset(asked, queries, shares, both), why)
    if frequencies is None or z == 1:
        return ChosenSifter(sifter, both, frequencies)
    moved = _moved(settings, sifter, frequencies, seen.new)
    if moved:
        why = f"{moved:.0%} of the rows lie elsewhere"
        return _next(asked, seen.new, _built(settings, shed, queries, seen.new, drop), why)
    if seen.offered and abs(seen.passed - sifter.z) > max(settings.missed, seen.chance):
        counts = _counted(sifter, seen, np.array(frequencies)) if seen.counts is None else seen.counts
        built = _reset(asked, queries, counts, both)
        why = f"{seen.passed:.3f} of the rows passed instead of {sifter.z:.3f}"
        return _next(asked, both, built, why)
    return ChosenSifter(sifter, both, frequencies)


class _Wanted(NamedTuple):
    """The sifter that stood, and what the next one must do."""

    last: Sifter
    shed: Shed
    z: float
    share: float
    #: The share of rows to drop of those that are no samples.
    drop: float


def _reset(
    asked: _Wanted, queries: QuerySet, counts: NDArray[np.int64] | None, sample: Sampled
) -> Constructed | None:
    """New thresholds for the same regions, by the rows in each; None if there are no regions."""
    if counts is None:
        return None
    return reconfigure(
        asked.last.regions,
        counts,
        queries.boxes,
        queries.weights,
        queries.alphas,
        z=1 - asked.drop,
        fairness=asked.shed.fairness,
        sample=sample.coordinates,
    )


def _next(asked: _Wanted, sample: Sampled, built: Constructed | None, why: str) -> ChosenSifter:
    last, shed, z, share, drop = asked
    if built is None:
        even = Sifter.passing_everything(last.axes, last.regions.domain, name=last.name)
        sifter = replace(even, thresholds=np.array([drop]))
    else:
        sifter = replace(last, regions=built.regions, thresholds=built.thresholds)
    sifter = replace(sifter, version=last.version + 1, z=z, fairness=shed.fairness, sample_share=share)
    if built is None:
        return ChosenSifter(sifter, sample, None, None, why)
    worth = built.consolidated
    regions = {"qos": worth.region_qos.tolist(), "nonempty": worth.nonempty.tolist()}
    return ChosenSifter(sifter, sample, built.frequencies.tolist(), built.overall_qos, why, regions)


def _built(
    settings: ChoiceSettings, shed: Shed, queries: QuerySet, sample: Sampled, drop: float
) -> Constructed | None:
    """Regions and thresholds that drop this share of the rows; None if rows cannot be told apart."""
    if drop == 0 or shed.sift == "random" or len(sample) < settings.samples_least:
        return None
    try:
        domain = domain_of(queries.boxes, sample.coordinates)
    except FlowError:
        return None  # All of them lie in one point.
    return construct(
        partitioner_for(shed.sift, queries.weights, queries.alphas, z=1 - drop, fairness=shed.fairness),
        domain,
        Sample(sample.coordinates, sample.hits.astype(np.int64)),
        Asked(queries.boxes, queries.weights, queries.alphas),
        regions=shed.regions,
        z=1 - drop,
        fairness=shed.fairness,
    )


def _moved(settings: ChoiceSettings, sifter: Sifter, frequencies: list[float], new: Sampled) -> float:
    """The part of the rows that lie in other regions than before; 0 where that may be chance."""
    if len(new) < settings.samples_least:
        return 0.0
    now = frequencies_of(sifter.regions, new.coordinates)
    moved = 0.5 * float(np.abs(now - np.array(frequencies)).sum())
    # Two samples of the same rows differ by about this much, and by more the more regions there are.
    chance = 0.5 * float(np.sqrt(len(now) / len(new)))
    return moved if moved > settings.moved + chance else 0.0


def _counted(sifter: Sifter, seen: Seen, frequencies: NDArray[np.float64]) -> NDArray[np.int64]:
    """Rows offered in each region, samples excluded: from those that passed, if any do."""
    passing = 1 - sifter.thresholds
    open_ = passing > 0
    counts = np.where(open_, seen.kept / np.where(open_, passing, 1.0), 0.0)
    # Nothing passes from closed regions: the rows not accounted for are spread over them as in the sample.
    closed = ~open_
    missing = max(0.0, seen.offered - seen.sampled - float(counts.sum()))
    if closed.any() and frequencies[closed].sum() > 0:
        counts[closed] = missing * frequencies[closed] / frequencies[closed].sum()
    return np.maximum(np.rint(counts), 0).astype(np.int64)
