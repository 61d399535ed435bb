"""A windowed join in whole periods, with or without an index: large windows, full from the start.

Paper: selective join, experiments: the size of basic windows (figure 9).

The cost of a probing row is counted by its `Matcher`: comparisons without an index, list entries read with
one. With an index every basic window has inverted lists of its own, and a row reads the lists of its items in
each basic window that it probes:

    cost of a row = Σ entries read + look-up · (items of the row) · (basic windows touched)

Lists sorted by time can be read in part. Lists sorted by identifier cannot, so a basic window is read as
a whole or not at all: `remainder` says what happens to a basic window that exceeds the budget.

In a period (5 s) rows probe in order of arrival until its time is used up. The others never probe, as if lost
from a full buffer, but stay stored: selective processing stores every row.

Unlike `stream_join.py` this runs in whole periods without input buffers, so windows of 200 s with 100,000
rows can be simulated.

Guarantee: cost is counted, never timed; the same rows, settings and seed give the same periods.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.control.actuators.policy import AgeCounts, Decision, Policy, Telemetry
from tidegate.join.selective.selection import EXPLORE, PLACE, purpose, unit_hashes, within_share
from tidegate.join.sets.inverted_lists import InvertedLists
from tidegate.join.sets.item_sets import ItemSets
from tidegate.join.sets.pair_finders import PairFinder
from tidegate_lab.simulate.join.basic_windows import (
    Ranges,
    Windows,
    explore,
    ranges_by_age,
    select,
    whole_or_nothing,
)
from tidegate_lab.simulate.join.machine import SECOND_US
from tidegate_lab.simulate.join.probe_costs import probe_cost
from tidegate_lab.simulate.join.rate_model import PeriodLoad

PART_OF_IT, SKIPPED, BY_LOT = "part", "skipped", "by lot"
#: Pairs that are found at a time.
_AT_ONCE = 1_000_000


@dataclass(frozen=True)
class PeriodMachine:
    """What the machine can do in a second (comparisons or list entries), and what an index costs on it."""

    work_per_second: float
    #: A look-up, in list entries: a hash table is asked and a list begun, instead of the next entry read.
    lookup: float = 10.0
    #: A basic window that does not fit into a row's budget: read in part, skipped, or read by lot.
    remainder: str = PART_OF_IT
    period_seconds: float = 5.0
    seed: int = 7


@dataclass(frozen=True)
class PeriodTrace:
    """One period, as it went."""

    decision: Decision
    offered: int
    fetched: int
    cost: float
    outputs: int


@dataclass
class _Probes:
    """Rows of one stream in one period: where they look, and what that costs."""

    times_us: NDArray[np.int64]
    sets: ItemSets
    chosen: Ranges
    full: NDArray[np.bool_]
    cost: NDArray[np.float64]

    def first(self, rows: int) -> _Probes:
        part = Ranges(self.chosen.starts[:rows], self.chosen.ends[:rows])
        return _Probes(
            self.times_us[:rows], self.sets.take(np.arange(rows)), part, self.full[:rows], self.cost[:rows]
        )


class PeriodJoin:
    """Two streams, all rows of which are stored when their time has come."""

    def __init__(
        self,
        times_us: tuple[NDArray[np.int64], NDArray[np.int64]],
        sets: tuple[ItemSets, ItemSets],
        windows: Windows,
        matcher: PairFinder,
        machine: PeriodMachine,
    ) -> None:
        self._times_us, self._sets, self._windows, self._machine = times_us, sets, windows, machine
        self._stored = matcher.prepare(sets[0]), matcher.prepare(sets[1])
        self._indexed = isinstance(matcher, InvertedLists)

    def run(self, policy: Policy, begin: float, end: float) -> list[PeriodTrace]:
        """From one second of the streams to another; the windows are as full as the rows before make them."""
        periods, length = [], self._machine.period_seconds
        decision = policy.decision
        for number in range(round((end - begin) / length)):
            period, telemetry = self._period(decision, begin + number * length)
            periods.append(period)
            decision = policy.adapt(telemetry)
        return periods

    def _period(self, decision: Decision, begin: float) -> tuple[PeriodTrace, Telemetry]:
        budget = self._machine.work_per_second * self._machine.period_seconds
        planned = [self._plan(side, decision, begin) for side in (0, 1)]
        times = np.concatenate([probes.times_us for probes in planned])
        order = np.argsort(times, kind="stable")
        cost = np.concatenate([probes.cost for probes in planned])[order]
        fetched = int(np.searchsorted(np.cumsum(cost) - cost, budget, side="left"))
        from_left = int((order[:fetched] < planned[0].times_us.size).sum())
        outputs, counts = 0, []
        for side, rows in ((0, from_left), (1, fetched - from_left)):
            found, learnt = self._find(side, planned[side].first(rows))
            outputs += found
            counts.append(learnt)
        used = float(cost[:fetched].sum())
        period = PeriodTrace(decision, times.size, fetched, used, outputs)
        return period, self._telemetry(period, (counts[1], counts[0]), float(cost.sum()))

    def _plan(self, side: int, decision: Decision, begin: float) -> _Probes:
        """Where the rows that arrive on one side in this period look in the window of the other."""
        window, seed = 1 - side, self._machine.seed
        edges = np.array([begin, begin + self._machine.period_seconds]) * SECOND_US
        first, last = np.searchsorted(self._times_us[side], edges)
        rows = np.arange(first, last)
        times = self._times_us[side][rows]
        whole = ranges_by_age(
            self._times_us[window],
            times,
            self._windows.lengths_us[window],
            self._windows.slot_us,
            equal_times=side == 1,
        )
        identity = (2 * rows + side).astype(np.uint64)
        probing = decision.windows[window]
        full = within_share(identity, decision.full_share, purpose(seed, EXPLORE))
        lot = unit_hashes(identity, purpose(seed, PLACE))
        chosen = select(whole, probing.order, probing.fraction)
        if self._machine.remainder != PART_OF_IT:
            by_lot = self._machine.remainder == BY_LOT
            chosen = whole_or_nothing(whole, chosen, lot if by_lot else None)
        chosen = explore(whole, chosen, full, decision.full_depth, lot)
        sets = self._sets[side].take(rows)
        return _Probes(times, sets, chosen, full, self._cost(window, sets, chosen))

    def _cost(self, window: int, sets: ItemSets, chosen: Ranges) -> NDArray[np.float64]:
        owners, starts, ends = stretches(chosen)
        repeated = sets.take(owners)
        work = probe_cost(self._stored[window], repeated, starts, ends)
        if not self._indexed:
            return np.asarray(np.bincount(owners, weights=work, minlength=len(sets)), np.float64)
        # The lists count one for each that is looked up, per stretch; here a look-up is per basic window.
        entries = work - np.diff(repeated.bounds)
        read = np.bincount(owners, weights=entries, minlength=len(sets))
        touched = (chosen.sizes > 0).sum(axis=1)
        return np.asarray(read + self._machine.lookup * np.diff(sets.bounds) * touched)

    def _find(self, side: int, probes: _Probes) -> tuple[int, AgeCounts]:
        """Pairs found, and what rows that were processed fully found by age."""
        window = 1 - side
        owners, starts, ends = stretches(probes.chosen)
        found, learnt = 0, np.zeros(probes.chosen.starts.shape[1], np.int64)
        for rows, places in self._stored[window].find(probes.sets.take(owners), starts, ends, _AT_ONCE):
            found += rows.size
            fully = probes.full[owners[rows]]
            learnt += self._by_age(window, probes.times_us[owners[rows[fully]]], places[fully])
        return found, AgeCounts(learnt, probes.chosen.sizes[probes.full].sum(axis=0))

    def _by_age(
        self, window: int, times_us: NDArray[np.int64], places: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        slot, depth = self._windows.slot_us, self._windows.ages[window]
        ages = times_us // slot - self._times_us[window][places] // slot if slot else np.zeros_like(places)
        return np.bincount(ages, minlength=depth)

    def _telemetry(
        self, period: PeriodTrace, full: tuple[AgeCounts, AgeCounts], cost_planned: float
    ) -> Telemetry:
        load = PeriodLoad(
            offered=period.offered,
            fetched=period.fetched,
            seconds=self._machine.period_seconds,
            busy_seconds=period.cost / self._machine.work_per_second,
            comparisons=round(period.cost),
            outputs=period.outputs,
            next_rows=period.offered,
            next_comparisons_full=cost_planned,
            rows=period.fetched,
        )
        none = tuple(AgeCounts(np.zeros_like(c.matches), np.zeros_like(c.comparisons)) for c in full)
        return Telemetry(load, full, (none[0], none[1]))


def stretches(chosen: Ranges) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Ranges of neighbouring ages that touch are read in one go: (row, start, end) of each stretch.

    Ages run from new to old, so a stretch goes on at the next age when that one ends where this one starts.
    """
    rows, ages = np.nonzero(chosen.sizes > 0)
    starts, ends = chosen.starts[rows, ages], chosen.ends[rows, ages]
    goes_on = np.zeros(rows.size, np.bool_)
    goes_on[1:] = (rows[1:] == rows[:-1]) & (ends[1:] == starts[:-1])
    first = np.flatnonzero(~goes_on)
    last = np.append(first, rows.size)[1:] - 1
    return rows[first], starts[last], ends[first]
