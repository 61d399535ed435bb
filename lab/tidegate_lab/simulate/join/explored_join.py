"""One batch of a join that skips work, with the exact result: tests whether recall estimates are right.

New rows of two streams probe stored rows of the other by key, over windows of ten basic windows, with the
same probe ranges and the same probe as the engine. Popular keys change with time, and one stream runs ahead
of the other, so that some basic windows contain most of the pairs (the selective join paper's workload).

Guarantee: a function of scenario and seed. Rows and the choice of exploring rows differ by seed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.control.receipts.recall import Recall, recall_of
from tidegate.join.probe.probe import Ranges, probe
from tidegate.join.selective.reach import Ages, Exploring, NewRows, ages_of, probe_ranges
from tidegate.join.selective.selection import (
    EXPLORE,
    GROUPS,
    purpose,
    row_identity,
    sample_groups,
    unit_hashes,
)
from tidegate.join.within import Within
from tidegate.model.reports import ProbeCounts
from tidegate.model.skip_plan import Skipping

WINDOW_US = 1_000_000
BATCH_US = 150_000


@dataclass(frozen=True)
class Scenario:
    """Two streams and what their join leaves out in one batch."""

    #: Rows of each stream in the length of a window, and how many keys they have.
    rows: int = 6000
    keys: int = 300
    #: 0: all keys are alike; 1: a few have most rows.
    skew: float = 0.6
    #: How far ahead one stream runs, in windows: there the pairs lie. None: they lie everywhere.
    ahead: float | None = 0.4
    #: Rows come in bursts: half of them in a tenth of the time.
    bursts: bool = False
    #: Partners lie at least this far before a row, in windows; 0: before and after it, as far as a window.
    nearest: float = 0.0
    #: Basic windows that are looked at whole, the part of the next one, and the sample.
    whole: tuple[int, ...] = (9, 10, 11)
    part: tuple[int, float] = (12, 0.4)
    explore_share: float = 0.08
    explore_depth: float = 0.1


@dataclass(frozen=True)
class Outcome:
    """What was estimated, and the truth."""

    recall: Recall | None
    found: int
    true: int

    @property
    def covered(self) -> bool | None:
        """Does the interval hold the truth? None: there is no interval."""
        if self.recall is None or not self.true:
            return None
        low, high = self.recall.total.interval
        return low <= self.found / self.true <= high


def played(scenario: Scenario, seed: int) -> Outcome:
    """One batch."""
    lower_us = round(scenario.nearest * WINDOW_US) or -WINDOW_US
    within, random = Within(lower_us, WINDOW_US), np.random.default_rng(seed)
    streams = [_stream(scenario, side, random) for side in (0, 1)]
    left, right = (_shares(scenario, ages_of(within, side).count) for side in (0, 1))
    skipping = Skipping(0.2, (left, right), scenario.explore_share, scenario.explore_depth)
    told, true = [], 0
    for window in (0, 1):
        stored, new = (_sorted(*streams[side], new=side != window) for side in (window, 1 - window))
        counts, all_pairs = _probed_counts(within, skipping, window, stored, new, seed)
        told.append(counts)
        true += all_pairs
    found = int(sum(sum(one.chosen_matches) + sum(one.explored_matches) for one in told))
    return Outcome(recall_of(skipping, [told]), found, true)


def _shares(scenario: Scenario, ages: int) -> tuple[float, ...]:
    shares = {**dict.fromkeys(scenario.whole, 1.0), scenario.part[0]: scenario.part[1]}
    return tuple(shares.get(age, 0.0) for age in range(ages))


Rows = tuple["NDArray[np.uint64]", "NDArray[np.int64]"]


def _stream(scenario: Scenario, side: int, random: np.random.Generator) -> Rows:
    """Codes and times of one window and a batch behind it."""
    count = round(scenario.rows * (1 + BATCH_US / WINDOW_US))
    times = random.integers(0, WINDOW_US + BATCH_US, count)
    if scenario.bursts:
        crowded = random.random(count) < 0.5
        times[crowded] = times[crowded] // 100_000 * 100_000 + times[crowded] % 100_000 // 10
    weights = 1.0 / np.arange(1, scenario.keys + 1) ** scenario.skew
    ranks = random.choice(scenario.keys, count, p=weights / weights.sum())
    if scenario.ahead is not None:
        shifted = times + side * scenario.ahead * WINDOW_US
        ranks = (ranks + (shifted / (2 * WINDOW_US) * scenario.keys).astype(np.int64)) % scenario.keys
    return ranks.astype(np.uint64), times


def _sorted(codes: NDArray[np.uint64], times: NDArray[np.int64], *, new: bool) -> Rows:
    mine = (times >= WINDOW_US) == new
    codes, times = codes[mine], times[mine]
    order = np.lexsort((times, codes))
    return codes[order], times[order]


def _probed_counts(
    within: Within, skipping: Skipping, window: int, stored: Rows, new: Rows, seed: int
) -> tuple[ProbeCounts, int]:
    """What new rows looked at and found, and how many pairs there are."""
    ages, (codes, times) = ages_of(within, window), new
    low, high = within.partner_range(1 - window, times)
    lot = unit_hashes(row_identity(codes, times, window), purpose(seed, EXPLORE))
    exploring = Exploring(skipping.explore_share, skipping.explore_depth)
    rows = NewRows(times, low, high, int(times.min()), int(times.max()), lot, exploring)
    seen, matches, sampled = (
        np.zeros((2, ages.count)),
        np.zeros((2, ages.count)),
        np.zeros((ages.count, GROUPS)),
    )
    groups = sample_groups(lot)
    for explores, age, ranges, pairs in _ranges(ages, skipping.shares[window], rows, stored, codes):
        seen[int(explores), age] += pairs
        matches[int(explores), age] += ranges.total
        if explores:
            sampled[age] += np.bincount(groups[ranges.rows], weights=ranges.count, minlength=GROUPS)
    everything = NewRows(times, low, high, rows.first_us, rows.last_us)
    candidates, true = np.zeros(ages.count), 0
    for _, age, ranges, pairs in _ranges(ages, (1.0,) * ages.count, everything, stored, codes):
        candidates[age] += pairs
        true += ranges.total
    sample = np.bincount(groups[lot < skipping.explore_share], minlength=GROUPS)
    told = ProbeCounts(
        _whole(candidates),
        _whole(seen[0]),
        tuple(matches[0].tolist()),
        _whole(seen[1]),
        tuple(matches[1].tolist()),
        len(times),
        _whole(sample),
        tuple(map(_whole, sampled)),
    )
    return told, true


def _ranges(
    ages: Ages, shares: tuple[float, ...], rows: NewRows, stored: Rows, codes: NDArray[np.uint64]
) -> Iterator[tuple[bool, int, Ranges, int]]:
    """Per look: exploring or not, age, what was met, and how many pairs were in sight."""
    order = np.sort(stored[1])
    for look in probe_ranges(ages, shares, rows, (int(order[0]), int(order[-1]))):
        mine = codes if look.rows is None else codes[look.rows]
        met = probe(mine, look.low, look.high, *stored, 0, len(order), in_order=not look.exploring)
        named = met.rows if look.rows is None else look.rows[met.rows]
        sight = np.searchsorted(order, look.high, "right") - np.searchsorted(order, look.low)
        yield look.exploring, look.age, Ranges(named, met.first, met.count), int(sight.sum())


def _whole(numbers: NDArray[np.generic]) -> tuple[int, ...]:
    return tuple(int(number) for number in numbers.tolist())
