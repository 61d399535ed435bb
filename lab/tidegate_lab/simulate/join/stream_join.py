"""A windowed join of two streams under a simulated clock with a fixed number of comparisons per second.

Paper: selective join, windowed join and experiments. The stages and policies are independent of simulation.

    clock     |──── tick ────|──── tick ────|        Every tick adds arrivals and a budget of comparisons.
    capacity   ████████████▌   ████████              Rows are fetched oldest first within the budget; the
    buffers    ▪▪▪▪▪▪▪▪▪▪      ▪▪                    rest waits; rows that overflow the buffers are lost.

A fetched row is stored, then compared with the chosen part of the opposite window: rows that came before it.
So each pair is compared once, by its later row, wherever ticks begin. A policy sees the counts of a period
and decides the next one.

Guarantee: cost is counted, never timed; the same rows, settings and seed give the same trace. The result is a
subset of the exact join.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidegate.control.actuators.policy import Decision, Policy
from tidegate.join.selective.selection import EXPLORE, PLACE, purpose, unit_hashes, within_share
from tidegate_lab.simulate.join.arrivals import Arrivals, InputBuffers
from tidegate_lab.simulate.join.basic_windows import Ranges, Windows, explore, ranges_by_age, select
from tidegate_lab.simulate.join.counted_conditions import Condition
from tidegate_lab.simulate.join.machine import SECOND_US, Machine, Period, StoredRows, Stream
from tidegate_lab.simulate.join.trace import Trace

#: Rows that are priced at a time; those that turn out too many stay in the buffers.
_PRICED_AT_ONCE = 256


class StreamJoin:
    """One run; made for two streams, run once."""

    def __init__(
        self, streams: tuple[Stream, Stream], windows: Windows, condition: Condition, machine: Machine
    ) -> None:
        self._windows, self._condition, self._machine = windows, condition, machine
        self._arrivals = Arrivals((streams[0].times_us, streams[1].times_us))
        self._buffers = InputBuffers(self._arrivals, machine.buffer_us, machine.seed)
        self._streams = streams
        self._sides = StoredRows(streams[0]), StoredRows(streams[1])
        self._period = Period(windows.ages)
        #: Comparisons that the last tick took beyond its own: a row is never stopped half-way.
        self._overdrawn = 0.0

    def run(self, policy: Policy, seconds: float) -> Trace:
        """So many seconds under this policy."""
        machine, trace = self._machine, Trace(self._machine.tick_us)
        ticks_per_period = machine.period_us // machine.tick_us
        decision = policy.decision
        for tick in range(1, round(seconds * SECOND_US / machine.tick_us) + 1):
            self._tick(tick * machine.tick_us, decision, trace)
            if tick % ticks_per_period == 0:
                expected = self._expected(tick * machine.tick_us)
                decision = policy.adapt(self._period.telemetry(machine, *expected))
                self._period = Period(self._windows.ages)
        return trace

    def _tick(self, now_us: int, decision: Decision, trace: Trace) -> None:
        period, dropped_before = self._period, int(self._buffers.dropped.sum())
        compared, found, fetched = period.comparisons, period.outputs, period.fetched
        offered = int(self._buffers.arrive(now_us, decision.keep_share).sum())
        period.offered += offered
        if decision.reach < 1:
            for side, length_us in zip(self._sides, self._windows.lengths_us, strict=True):
                side.forget_before(now_us - decision.reach * length_us)
        allowance = self._machine.comparisons_per_second * self._machine.tick_us / SECOND_US - self._overdrawn
        while allowance > 0 and self._buffers.waiting.size:
            allowance -= self._fetch_some(decision, allowance)
        self._overdrawn = max(0.0, -allowance)
        self._buffers.overflow(now_us)
        trace.add(
            decision,
            offered=offered,
            fetched=period.fetched - fetched,
            dropped=int(self._buffers.dropped.sum()) - dropped_before,
            comparisons=period.comparisons - compared,
            outputs=period.outputs - found,
        )

    def _expected(self, now_us: int) -> tuple[float, float]:
        """Rows of the next period and their comparisons with r = 1, if rates stay as in the last second.

        The windows are taken as they will be in the middle of the period: what will have expired by then is
        known, what will have come follows from the rate.
        """
        half_us = self._machine.period_us / 2
        arrived = self._buffers.arrived_since(now_us - SECOND_US)
        rows = arrived * self._machine.period_us / SECOND_US
        in_window = np.zeros(2)
        for side, length_us in enumerate(self._windows.lengths_us):
            stored, oldest_us = self._sides[side], now_us + half_us - length_us
            left = stored.size - int(np.searchsorted(stored.times_us[: stored.size], oldest_us))
            in_window[side] = left + arrived[side] * min(half_us, length_us) / SECOND_US
        waiting = self._buffers.waiting.size
        full = float(rows @ in_window[::-1])
        return float(rows.sum()) + waiting, full * (1 + waiting / max(1.0, float(rows.sum())))

    def _fetch_some(self, decision: Decision, allowance: float) -> int:
        """Store and compare the next rows, as many as the allowance begins; the comparisons made."""
        rows = self._buffers.waiting[:_PRICED_AT_ONCE]
        sizes_before = self._sides[0].size, self._sides[1].size
        mine = [np.flatnonzero(self._arrivals.sides[rows] == side) for side in (0, 1)]
        for side in (0, 1):
            self._sides[side].append(self._arrivals.places[rows[mine[side]]])
        cost = np.zeros(rows.size, np.int64)
        planned = []
        for side in (0, 1):
            chosen, full = self._choose(rows[mine[side]], side, decision)
            cost[mine[side]] = chosen.sizes.sum(axis=1)
            planned.append((chosen, full))
        before = np.cumsum(cost) - cost
        afforded = int(np.searchsorted(before, allowance, side="left"))
        for side in (0, 1):
            count = int(np.searchsorted(mine[side], afforded, side="left"))
            self._sides[side].size = sizes_before[side] + count
            self._compare(rows[mine[side][:count]], side, *planned[side])
        self._buffers.fetch(afforded)
        self._period.fetched += afforded
        return int(cost[:afforded].sum())

    def _choose(
        self, rows: NDArray[np.int64], side: int, decision: Decision
    ) -> tuple[Ranges, NDArray[np.bool_]]:
        """The part of the opposite window that each row is compared with, and who is processed fully."""
        window = 1 - side
        stored, probing = self._sides[window], decision.windows[window]
        whole = ranges_by_age(
            stored.times_us[: stored.size],
            self._arrivals.times_us[rows],
            self._windows.lengths_us[window],
            self._windows.slot_us,
            equal_times=side == 1,
        )
        if stored.first:
            whole = Ranges(np.maximum(whole.starts, stored.first), np.maximum(whole.ends, stored.first))
        identity, seed = self._arrivals.identity[rows], self._machine.seed
        full = within_share(identity, decision.full_share, purpose(seed, EXPLORE))
        chosen = select(whole, probing.order, probing.fraction)
        lot = unit_hashes(identity, purpose(seed, PLACE))
        return explore(whole, chosen, full, decision.full_depth, lot), full

    def _compare(self, rows: NDArray[np.int64], side: int, chosen: Ranges, full: NDArray[np.bool_]) -> None:
        window, period, count = 1 - side, self._period, rows.size
        chosen, full = Ranges(chosen.starts[:count], chosen.ends[:count]), full[:count]
        values = np.ascontiguousarray(self._streams[side].values[:, self._arrivals.places[rows]])
        matches = self._condition.count(values, self._sides[window].values, chosen)
        sizes = chosen.sizes
        for kind in (True, False):
            found, compared = period.counts[kind, window]
            found += matches[full == kind].sum(axis=0)
            compared += sizes[full == kind].sum(axis=0)
        period.comparisons += int(sizes.sum())
        period.outputs += int(matches.sum())
