"""Recall of a join in a batch that skipped work: an estimate and its 95 % interval.

Rows that explore are a random sample of the new rows, and probe every stored row of a basic window with the
same known probability (`join/selective/reach.py`). So the matches they find, scaled up, are an unbiased
estimate:

    basic windows probed whole  what was found there is all there was
    all others                  U = (new rows / rows of the sample) · Σ found by the sample / probability

(the Hájek form of the Horvitz–Thompson estimate: rows are weighted by the number actually drawn). The matches
of one row are clustered, and only the driver sees all instances. Therefore tasks report the matches of 16
random groups of the sample, and the variance of U is that of leaving out one group after the other (the
delete-a-group jackknife). Leaving out part of the rows explains (1 − share of the sample) of it, probing part
of a basic window the rest. U cannot be negative and is skewed where matches are few: the interval is
symmetric on the scale of its logarithm, with Student's quantile.

Where random drop lets only some rows of both sides into the join, both shares are known, by basic window
(`join/selective/kept_rows.py`): a pair is found if both of its rows were kept, and counts for 1 / (share of
the new rows · share of the stored ones). Pairs of one key are lost together, so the variance is that between
partitions of keys; it is an upper bound, because partitions differ for other reasons, too.

Guarantee: recall = found / true, always within [found / (found + pairs never probed), 1]. Intervals cover the
truth in 94 to 96 of 100 runs (`lab/tests/simulate/test_recall.py`). Without a sample there is no estimate.
Estimates of several batches or windows add up (`pooled`): their samples are drawn independently.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

from tidegate.join.selective.reach import chance_seen
from tidegate.model.reports import ProbeCounts
from tidegate.model.skip_plan import Skipping

#: If a sample found nothing, up to this many matches are possible at a probability of 2.5 %.
_UNSEEN_MAX = -log(0.025)
#: Below this chance of being found a pair says nothing about others.
_CHANCE_MIN = 1e-9


@dataclass(frozen=True)
class Estimate:
    """Matches of one or several basic windows: found, and in truth."""

    #: All that were found, and those of basic windows that were probed whole.
    found: float
    certain: float
    #: Matches in the other basic windows, as estimated; with its variance and degrees of freedom.
    others: float = 0.0
    variance: float = 0.0
    freedom: float = 0.0
    #: Pairs that were not probed: an upper bound on the missing matches.
    unseen: float = 0.0

    @property
    def true(self) -> float:
        """Estimated number of matches; never fewer than were found."""
        return max(self.found, self.certain + self.others)

    @property
    def recall(self) -> float | None:
        """The part that was found; None where there was nothing to find."""
        return self.found / self.true if self.true else None

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the recall."""
        _, low, high = found_shares(np.array([astuple(self)]))
        return float(low[0]), float(high[0])


def found_shares(
    estimates: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Recall and the ends of its interval, of many estimates at once: a row has the fields of `Estimate`."""
    found, certain, others, variance, freedom, unseen = estimates.T
    spread = np.sqrt(variance)
    some = others > 0
    deviations = student(np.maximum(1.0, freedom)) * spread / np.where(some, others, 1.0)
    factor = np.exp(np.minimum(50.0, deviations))
    true = np.maximum(found, certain + others)
    least = np.maximum(found, certain + np.where(some, others / factor, 0.0))
    most = certain + np.where(some, others * factor, _UNSEEN_MAX * spread)
    most = np.maximum(true, np.minimum(most, found + unseen))
    recall, high, low = (
        np.where(whole > 0, found / np.where(whole > 0, whole, 1.0), 1.0) for whole in (true, least, most)
    )
    return recall, low, high


def pooled(estimates: Iterable[Estimate]) -> Estimate:
    """The sum of independent estimates; degrees of freedom by Welch and Satterthwaite."""
    found = certain = others = variance = unseen = freedom = 0.0
    for one in estimates:
        found, certain, unseen = found + one.found, certain + one.certain, unseen + one.unseen
        others, variance = others + one.others, variance + one.variance
        freedom += one.variance**2 / one.freedom if one.freedom else 0.0
    return Estimate(found, certain, others, variance, variance**2 / freedom if freedom else 0.0, unseen)


@dataclass(frozen=True)
class Recall:
    """The estimate of a join in a batch: in all, and per window by age."""

    total: Estimate
    #: A row per age with the fields of `Estimate`; all 0 where there are no candidate pairs.
    by_age: tuple[NDArray[np.float64], NDArray[np.float64]]


def recall_of(skipping: Skipping, reported: Sequence[Sequence[ProbeCounts]]) -> Recall | None:
    """The recall of a join; None if it skipped work and no row explored.

    `reported`: the counts of each instance for the left and the right window.
    """
    windows = []
    for window, shares in enumerate(skipping.shares):
        counts = _Counts([probes[window] for probes in reported], len(shares))
        estimated = _estimated(counts, np.array(shares), skipping.explore_depth)
        if estimated is None:
            return None
        windows.append(estimated)
    (left, by_age_left), (right, by_age_right) = windows
    return Recall(pooled((left, right)), (by_age_left, by_age_right))


def recall_of_drop(
    new: tuple[float, float],
    stored: tuple[NDArray[np.float64], NDArray[np.float64]],
    reported: Sequence[Sequence[ProbeCounts]],
    by_partition: Sequence[float],
) -> Estimate | None:
    """The recall of a join whose rows were dropped at random; None if it found nothing.

    `new`: the share of this batch's rows that was kept, by side; `stored`: of the stored rows, by window and
    age; `by_partition`: matches of each partition of keys.
    """
    found = true = candidates = 0.0
    for window, shares in enumerate(stored):
        counts = _Counts([probes[window] for probes in reported], shares.size)
        chances = np.maximum(new[1 - window] * shares, _CHANCE_MIN)
        found += float(counts.found.sum())
        true += float((counts.found / chances).sum())
        candidates += float((counts.candidates / chances).sum())
    if not found:
        return None
    matches = np.array(by_partition, np.float64)
    groups = matches.size
    between = groups * float(matches.var(ddof=1)) if groups > 1 else found**2
    # Of pairs that were all found, none could have been missed.
    variance = (1 - found / true) * max(between, found) * (true / found) ** 2
    return Estimate(found, 0.0, true, variance, max(1.0, groups - 1.0), max(0.0, candidates - found))


class _Counts:
    """The counts of all instances for one window, summed."""

    def __init__(self, probes: Sequence[ProbeCounts], ages: int) -> None:
        def total(name: str) -> NDArray[np.float64]:
            return np.asarray(sum((np.array(getattr(one, name), float) for one in probes), np.zeros(ages)))

        sampling = [one for one in probes if one.rows]
        self.found = total("chosen_matches") + total("explored_matches")
        self.candidates = total("candidates")
        self.unseen = np.maximum(0.0, self.candidates - total("chosen") - total("explored"))
        #: New rows that probed, those of the sample by group, and matches of these by age and group.
        self.rows = sum(one.rows for one in sampling)
        self.sample = np.sum([one.sample for one in sampling], axis=0) if sampling else np.zeros(0)
        self.sampled = np.sum([one.sampled for one in sampling], axis=0) if sampling else np.zeros((ages, 0))


def _estimated(
    counts: _Counts, shares: NDArray[np.float64], depth: float
) -> tuple[Estimate, NDArray[np.float64]] | None:
    """One window: in all, and by age."""
    partly = (shares < 1) & (counts.candidates + counts.found > 0)
    certain = np.where(partly, 0.0, counts.found)
    lines = np.zeros((shares.size + 1, 6))
    lines[:, 0], lines[:, 1] = _with_total(counts.found), _with_total(certain)
    if partly.any():
        if not counts.sample.sum():
            return None
        chances = np.array([chance_seen(share, depth) for share in shares.tolist()])
        lines[:, 2:5] = np.stack(_scaled_up(counts, chances, partly), axis=1)
        lines[:, 5] = _with_total(np.where(partly, counts.unseen, 0.0))
    return Estimate(*lines[0].tolist()), lines[1:]


def _scaled_up(
    counts: _Counts, chances: NDArray[np.float64], partly: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Matches of all rows, from those of the sample; variance, degrees of freedom: total, then ages."""
    rows, sample, drawn = counts.rows, counts.sample, int(counts.sample.sum())
    weight = rows / drawn
    found = np.where(partly[:, None], counts.sampled / chances[:, None], 0.0)
    by_place = _with_total(weight * found.sum(axis=1) * (1 / chances - 1))
    found = np.concatenate((found.sum(axis=0)[None], found))
    total = weight * found.sum(axis=1)
    # Lower bound of the variance: one match more or less, with the largest weight.
    least = np.where(partly, weight / chances, 0.0)
    least = np.concatenate(([least.max()], least)) ** 2
    used = sample > 0
    groups = int(np.count_nonzero(used))
    if groups < 2:
        return total, np.maximum(least, np.square(total)), np.ones(total.size)
    without = rows * (found.sum(axis=1)[:, None] - found[:, used]) / (drawn - sample[used])
    spread = (groups - 1) * without.var(axis=1)
    variance = np.minimum(spread, (1 - drawn / rows) * spread + by_place)
    return total, np.maximum(least, variance), np.full(total.size, groups - 1.0)


def _with_total(by_age: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.concatenate(([by_age.sum()], by_age))


def student(f: NDArray[np.float64]) -> NDArray[np.float64]:
    """The 97.5 % quantiles of Student's distributions (Cornish–Fisher expansion; exact to 1 % from 3 on)."""
    z = 1.959964
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / f + second / f**2 + third / f**3
