"""Operators of a scenario by counts: what a batch does, costs and finds under a decision of what to shed.

    join      every candidate pair lies in a cell (window, age of basic window); cells differ in their matches
    window    rows of dropped windows do not arrive, and these windows are lost
    match     rows lie at points of a space; points differ in how many queries want their rows

No row is made: a batch is a span of each stream, and counts follow from how many rows arrived by when
(`arrivals.py`). So a scenario takes a second, and the results that a plan loses are known without noise.

Guarantee: functions of the decision, the span and what earlier batches stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tidegate.join.selective.reach import Ages, ages_of, chance_seen
from tidegate.join.within import Within
from tidegate.model.times import LEFT, RIGHT
from tidegate_lab.simulate.goal.arrivals import CELLS, GRAIN

JOIN, WINDOW, MATCH = "join", "window", "match"
US = 1_000_000
#: Moments of a batch for which candidates are counted.
_MOMENTS = 6

#: A batch's rows of a stream: the cells of the clock from `first` to before `end`.
Span = tuple[int, int]
#: Rows that arrived by the end of each cell, by stream.
Rows = Mapping[str, "NDArray[np.int64]"]


@dataclass(frozen=True, eq=False)
class JoinShed:
    """What a join sheds."""

    #: Per window and age: the part that is probed.
    shares: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None
    explore_share: float = 0.0
    explore_depth: float = 1.0
    #: Rows that enter; and, per side, the cell of the clock before which rows are stale.
    keep_share: float = 1.0
    fresh_from: tuple[int, int] = (0, 0)
    level: float = 1.0


@dataclass(frozen=True, eq=False)
class WindowShed:
    """What a window sheds: spans of cells whose rows do not arrive, and of window starts that are lost."""

    rows: tuple[tuple[float, float], ...] = ()
    starts: tuple[tuple[float, float], ...] = ()
    level: float = 0.0


@dataclass(frozen=True, eq=False)
class MatchShed:
    """What a match sheds: the part dropped of the rows at each point of the space; samples pass."""

    dropped: NDArray[np.float64] | None = None
    sampled: float = 0.0
    level: float = 1.0


Shed = JoinShed | WindowShed | MatchShed


@dataclass(frozen=True, eq=False)
class Did:
    """What one operator did in a batch."""

    #: Seconds on a warm machine without noise; and with nothing shed, in this batch or before.
    seconds: float
    full_seconds: float
    #: Results that were found, and that there were to be found.
    found: float
    possible: float
    rows: float = 0.0
    #: Of joins: rows per side that came, and of these that did not enter and that were stale.
    sides: tuple[tuple[float, float, float], ...] = ()
    #: Of joins, per window and age: pairs that could be probed, were probed, and were probed to explore.
    candidates: NDArray[np.float64] | None = None
    chosen: NDArray[np.float64] | None = None
    explored: NDArray[np.float64] | None = None
    #: Of joins: the part of the time that pairs take; rows that are stored.
    probing: float = 0.0
    stored: float = 0.0
    #: The part of the work that was done; 1 if nothing was shed.
    level: float = 1.0


@dataclass(frozen=True, eq=False)
class SimulatedJoin:
    """A join of two streams within a window on both sides."""

    name: str
    streams: tuple[str, str]
    window_seconds: float
    #: Per window: where the matches lie among the ages (0 to 1), how narrow, and how many lie everywhere.
    peaks: tuple[tuple[float, float], tuple[float, float]]
    everywhere: float
    #: By how many parts of the window the peaks move in a second.
    moves: float
    #: Candidate pairs per pair of rows in reach: 1 over the number of keys.
    key_share: float
    #: Matches per candidate pair, on average over a full window.
    density: float
    #: Seconds per row, candidate pair and match.
    costs: tuple[float, float, float]
    #: How much more a pair costs when twice as much is stored as `usual`.
    by_state: float
    usual: float
    #: The part of the work at each instance, before and after the skew appears at a moment.
    instances: tuple[float, ...] = (0.25,) * 4
    skewed: tuple[float, ...] = ()
    skewed_from: float = np.inf
    kind: str = JOIN

    @property
    def within(self) -> Within:
        return Within(-round(self.window_seconds * US), round(self.window_seconds * US))

    @property
    def ages(self) -> tuple[Ages, Ages]:
        return ages_of(self.within, LEFT), ages_of(self.within, RIGHT)

    def values(self, now: float) -> NDArray[Any]:
        """Matches per candidate pair, per window and age."""
        count = self.ages[LEFT].count
        ages = np.arange(count) / count
        found: list[NDArray[np.float64]] = []
        for middle, width in self.peaks:
            off = np.abs((ages - middle - self.moves * now + 0.5) % 1.0 - 0.5)
            found.append(np.exp(-((off / width) ** 2)) + self.everywhere)
        values = np.stack(found)
        return values * (self.density / float(values.mean()))

    def uneven(self, now: float, cores: int) -> float:
        """Seconds of the join relative to those with equally loaded instances."""
        parts = self.parts(now)
        return max(max(parts), 1 / cores) * min(cores, len(parts))

    def parts(self, now: float) -> tuple[float, ...]:
        return self.skewed if now >= self.skewed_from else self.instances


@dataclass(frozen=True, eq=False)
class SimulatedWindow:
    """A window aggregate over a stream."""

    name: str
    stream: str
    size_seconds: float
    slide_seconds: float
    max_gap: int
    #: Seconds per row.
    cost: float
    kind: str = WINDOW

    @property
    def share_max(self) -> float:
        """The largest share of its windows that may be dropped."""
        return self.max_gap / (self.max_gap + 1)

    @property
    def sheddable(self) -> float:
        """The part of the rows that goes if as many windows are dropped as may be, in the longest runs."""
        run = (self.max_gap + 1) * self.slide_seconds - self.size_seconds
        return self.share_max * max(0.0, run) / (self.max_gap * self.slide_seconds)

    def starts(self, span: tuple[float, float]) -> NDArray[np.float64]:
        """Starts of the windows that begin in a span."""
        first, beyond = (int(np.ceil(at / self.slide_seconds - 1e-9)) for at in span)
        return self.slide_seconds * np.arange(first, beyond, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class SimulatedMatch:
    """Rows of a stream that are tried against range queries."""

    name: str
    stream: str
    #: Points of the space that rows lie at, equally likely, and the queries that want each.
    points: NDArray[np.float64]
    hits: NDArray[np.int32]
    #: Seconds per row in front of the sifter, and per row that passes it.
    costs: tuple[float, float]
    #: Number of the workload that its queries come from.
    seed: int
    kind: str = MATCH


Simulated = SimulatedJoin | SimulatedWindow | SimulatedMatch


class JoinState:
    """A join as it runs: what it has stored."""

    def __init__(self, join: SimulatedJoin, rows: Rows) -> None:
        self.join = join
        self._arrived = [rows[stream] for stream in join.streams]
        self._ages = join.ages
        #: Rows stored by the end of each cell, up to the last batch.
        self.stored = [np.zeros(CELLS + 1), np.zeros(CELLS + 1)]

    def batch(self, shed: JoinShed, spans: Sequence[Span], now: float) -> Did:
        """One batch of these spans, per side."""
        join = self.join
        sides = [self._enter(side, spans[side], shed) for side in (LEFT, RIGHT)]
        values = join.values(now)
        candidates = self._candidates(spans, self.stored, shed)
        full = self._candidates(spans, self._arrived, JoinShed())
        ones = np.ones_like(values)
        shares = ones if shed.shares is None else np.stack(shed.shares)
        explores = shed.explore_share if shares.min() < 1 else 0.0
        chance = np.vectorize(chance_seen)(shares, shed.explore_depth)
        chosen, explored = (1 - explores) * shares * candidates, explores * chance * candidates
        pairs, possible = float((chosen + explored).sum()), float((values * full).sum())
        found = float((values * (chosen + explored)).sum())
        taken = sum(rows - dropped - stale for rows, dropped, stale in sides)
        came = sum(rows for rows, _, _ in sides)
        by_row, by_pair, by_match = join.costs
        by_pair *= self._state_factor(spans, self.stored)
        seconds = by_row * taken + by_pair * pairs + by_match * found
        by_pair_full = join.costs[1] * self._state_factor(spans, self._arrived)
        full_seconds = by_row * came + by_pair_full * float(full.sum()) + by_match * possible
        return Did(
            seconds,
            full_seconds,
            found,
            possible,
            came,
            tuple(sides),
            candidates,
            chosen,
            explored,
            1 - by_row * taken / max(seconds, 1e-12),
            self._in_reach(spans, self.stored),
            pairs / max(float(full.sum()), 1e-9) if full.sum() else 1.0,
        )

    def parts(
        self, spans: Sequence[Span], now: float
    ) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
        """With nothing shed: seconds of rows; and seconds and matches of each cell of both windows."""
        full = self._candidates(spans, self._arrived, JoinShed())
        by_row, by_pair, by_match = self.join.costs
        by_pair *= self._state_factor(spans, self._arrived)
        came = sum(self._came(side, spans[side]) for side in (LEFT, RIGHT))
        matches = self.join.values(now) * full
        return by_row * came, by_pair * full + by_match * matches, matches

    def _came(self, side: int, span: Span) -> float:
        arrived = self._arrived[side]
        return float(arrived[span[1]] - arrived[span[0]])

    def _enter(self, side: int, span: Span, shed: JoinShed) -> tuple[float, float, float]:
        """Store the rows that enter: rows that came, that were dropped, and that were stale."""
        arrived, stored = self._arrived[side], self.stored[side]
        first, end = span
        fresh = min(max(first, shed.fresh_from[side]), end)
        stored[first : fresh + 1] = stored[first]
        new = shed.keep_share * (arrived[fresh : end + 1] - arrived[fresh])
        stored[fresh : end + 1] = stored[first] + new
        stored[end:] = stored[end]
        rows = float(arrived[end] - arrived[first])
        stale = float(arrived[fresh] - arrived[first])
        return rows, (1 - shed.keep_share) * (rows - stale), stale

    def _candidates(
        self, spans: Sequence[Span], stored: Sequence[NDArray[np.generic]], shed: JoinShed
    ) -> NDArray[np.float64]:
        """Pairs in reach, per window and age."""
        return np.stack([self._of_window(side, spans, stored[side], shed) for side in (LEFT, RIGHT)])

    def _of_window(
        self, side: int, spans: Sequence[Span], stored: NDArray[np.generic], shed: JoinShed
    ) -> NDArray[np.float64]:
        ages, arrived, span = self._ages[side], self._arrived[1 - side], spans[1 - side]
        first = min(max(span[0], shed.fresh_from[1 - side]), span[1])
        edges = np.linspace(first, span[1], _MOMENTS + 1).astype(np.int64)
        new = shed.keep_share * np.diff(arrived[edges])
        at = (edges[1:] + edges[:-1])[:, None] * (GRAIN / 2)
        slot = ages.slot_us / US
        own = np.floor(at / slot)
        begin = (own + ages.ahead - np.arange(ages.count)) * slot
        # Left rows also meet the right rows of their batch; right rows those that were stored before.
        there = spans[RIGHT][1] if side == RIGHT else spans[LEFT][0]
        low = np.maximum(begin, at - ages.back_us / US)
        high = np.maximum(low, np.minimum(begin + slot, at + ages.ahead_us / US))
        low_cell, high_cell = (np.clip((end / GRAIN).astype(np.int64), 0, there) for end in (low, high))
        met = stored[high_cell].astype(np.float64) - stored[low_cell].astype(np.float64)
        return np.asarray(self.join.key_share * (new @ met))

    def _in_reach(self, spans: Sequence[Span], stored: Sequence[NDArray[np.generic]]) -> float:
        back = round(self.join.window_seconds / GRAIN)
        return sum(
            float(one[span[1]]) - float(one[max(0, span[1] - back)])
            for one, span in zip(stored, spans, strict=True)
        )

    def _state_factor(self, spans: Sequence[Span], stored: Sequence[NDArray[np.generic]]) -> float:
        if not self.join.by_state:
            return 1.0
        return max(0.5, 1 + self.join.by_state * (self._in_reach(spans, stored) / self.join.usual - 1))


@dataclass
class WindowState:
    """A window aggregate as it runs."""

    window: SimulatedWindow
    rows: Rows
    #: Starts of windows that were lost.
    lost: set[float] = field(default_factory=set)

    def batch(self, shed: WindowShed, spans: Sequence[Span], now: float) -> Did:
        (span,) = spans
        arrived = self.rows[self.window.stream]
        came = float(arrived[span[1]] - arrived[span[0]])
        gone = 0.0
        for low, high in shed.rows:
            first, end = (int(np.clip(at / GRAIN, *span)) for at in (low, high))
            gone += float(arrived[end] - arrived[first])
        starts = self.window.starts((span[0] * GRAIN, span[1] * GRAIN))
        lost = np.zeros(starts.size, np.bool_)
        for low, high in shed.starts:
            lost |= (low - 1e-6 <= starts) & (starts < high - 1e-6)
        self.lost |= set(starts[lost].tolist())
        cost = self.window.cost
        level = 1 - gone / came if came else 1.0
        found = float((~lost).sum())
        return Did(
            cost * (came - gone),
            cost * came,
            found,
            float(starts.size),
            came,
            ((came, gone, 0.0),),
            level=level,
        )


@dataclass
class MatchState:
    """A match as it runs."""

    match: SimulatedMatch
    rows: Rows

    def batch(self, shed: MatchShed, spans: Sequence[Span], now: float) -> Did:
        (span,) = spans
        arrived = self.rows[self.match.stream]
        came = float(arrived[span[1]] - arrived[span[0]])
        dropped = np.zeros(len(self.match.points)) if shed.dropped is None else shed.dropped
        passes = shed.sampled + (1 - shed.sampled) * (1 - dropped)
        per_row = self.match.hits / len(passes)
        level = float(passes.mean())
        before, behind = self.match.costs
        return Did(
            (before + behind * level) * came,
            (before + behind) * came,
            float(per_row @ passes) * came,
            float(per_row.sum()) * came,
            came,
            level=level,
        )


class State(Protocol):
    """An operator as it runs."""

    def batch(self, shed: Any, spans: Sequence[Span], now: float) -> Did:
        """One batch of these spans of its streams; `shed` is of the operator's kind."""
        ...


def streams_of(operator: Simulated) -> tuple[str, ...]:
    return operator.streams if isinstance(operator, SimulatedJoin) else (operator.stream,)


def state_of(operator: Simulated, rows: Rows) -> State:
    """The operator before its first batch."""
    if isinstance(operator, SimulatedJoin):
        return JoinState(operator, rows)
    return (
        WindowState(operator, rows) if isinstance(operator, SimulatedWindow) else MatchState(operator, rows)
    )
