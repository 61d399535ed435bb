"""One scripted day of two streams that are joined: calm, a step, a spike, a ramp, a skew jump, a slow sink.

    rows/s  10 ┤                     ██
               │                     ██                 ▁▃▅
             4 ┤     ████████        ██              ▁▃▅███
             2 ┤     ████████        ██            ▃▅██████▇▇▇▇
             1 ┼▆▆▆▆▆████████▆▆▆▆▆▆▆▆██▆▆▆▆▆▆▆▆▆▆▆▆████████████▆▆▆▆▆▆▆▆
                calm    4×     calm  10×    calm      ramp   skew sink calm

A day is plain data: segments with the rate over that of calm, the skew of the keys and how long the sink
holds up a batch. Scaled to another length, everything shrinks alike, the window of the join included.

A pair joins when its keys are equal, its sets have at least `COMMON` items in common and its times lie at
most the window apart. Sets are those of the selective join paper (rotating popularity, one stream behind the
other), so that some parts of a window are worth more than others. Items are few enough for a word of bits:
engines that know no sets compare words.

Guarantee: the same settings give the same rows. Both streams have the same number of rows in every tick.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import FlowError
from tidegate_lab.workloads.selective_join import SECOND_US, Rows, Steps, Workload, draw

#: Files come so often.
TICK_SECONDS = 0.5
KEYS, CALM_SKEW, JUMP_SKEW = 32, 0.5, 1.2
ITEMS, SIZE, COMMON = 64, 6.0, 4
#: The script as it stands, and the window that belongs to it.
SCRIPT_SECONDS, SCRIPT_WINDOW_SECONDS = 240.0, 10.0


@dataclass(frozen=True)
class Segment:
    """A part of the day."""

    name: str
    seconds: float
    #: Rows a second over those of calm, at the beginning and (None: the same) at the end.
    rate: float = 1.0
    rate_end: float | None = None
    #: Zipf exponent of the keys, and by how many ranks they are turned: others are hot.
    skew: float = CALM_SKEW
    turned: int = 0
    #: How long the sink holds up every batch.
    sink_seconds: float = 0.0


CALM, STEP, SPIKE, RAMP, SKEW, SINK = "calm", "4×", "10×", "ramp", "skew", "sink"
SCRIPT = (
    Segment(CALM, 30.0),
    Segment(STEP, 34.0, rate=4.0),
    Segment(CALM, 18.0),
    Segment(SPIKE, 14.0, rate=10.0),
    Segment(CALM, 50.0),
    Segment(RAMP, 32.0, rate=1.0, rate_end=5.0),
    Segment(SKEW, 20.0, rate=2.0, skew=JUMP_SKEW, turned=KEYS // 2),
    Segment(SINK, 18.0, sink_seconds=0.4),
    Segment(CALM, 24.0),
)


@dataclass(frozen=True)
class Day:
    """Segments one after the other, for a machine whose calm has so many rows a second of each stream."""

    calm_rate: float
    segments: tuple[Segment, ...] = SCRIPT
    window_seconds: float = SCRIPT_WINDOW_SECONDS
    seed: int = 7

    def __post_init__(self) -> None:
        if not self.segments or not (self.calm_rate > 0 and self.window_seconds > 0):
            raise FlowError(
                "A day needs segments, rows and a window",
                code="LAB_WORKLOAD_INVALID",
                got=f"{len(self.segments)} segments, {self.calm_rate} rows/s, {self.window_seconds} s",
                do="Give at least one segment, and numbers above 0",
            )

    @property
    def seconds(self) -> float:
        return self.ticks * TICK_SECONDS

    @property
    def ticks(self) -> int:
        return round(sum(segment.seconds for segment in self.segments) / TICK_SECONDS)

    @property
    def window_us(self) -> int:
        return round(self.window_seconds * SECOND_US)

    @property
    def spans(self) -> list[tuple[float, float, Segment]]:
        """Begin and end of every segment."""
        ends = list(accumulate(segment.seconds for segment in self.segments))
        return list(zip([0.0, *ends[:-1]], ends, self.segments, strict=True))

    def at(self, second: float) -> Segment:
        """The segment of a moment; the last one stays."""
        return next((segment for _, end, segment in self.spans if second < end), self.segments[-1])

    def begin_of(self, name: str) -> float | None:
        """When the first segment of this name begins; None where the day has none."""
        return next((begin for begin, _, segment in self.spans if segment.name == name), None)

    @property
    def rate(self) -> Steps:
        """Rows a second of each stream, tick by tick; a ramp rises in ticks."""
        middles = (np.arange(self.ticks) + 0.5) * TICK_SECONDS
        factors = [_factor(self, float(middle)) for middle in middles]
        return Steps(tuple((TICK_SECONDS, self.calm_rate * factor) for factor in factors))


@dataclass(frozen=True)
class Stream:
    """The rows of one stream in order of time; a row's number is its place."""

    rows: Rows
    key: NDArray[np.int32]
    #: The set as bits.
    bits: NDArray[np.uint64]
    #: The tick that brings the row.
    tick: NDArray[np.int32]

    @property
    def times_us(self) -> NDArray[np.int64]:
        return self.rows.times_us


def scripted(seconds: float, calm_rate: float, seed: int = 7) -> Day:
    """The script in so many seconds."""
    scale = seconds / SCRIPT_SECONDS
    segments = tuple(replace(segment, seconds=segment.seconds * scale) for segment in SCRIPT)
    return Day(calm_rate, segments, min(1.0, scale) * SCRIPT_WINDOW_SECONDS, seed)


def streams_of(day: Day) -> tuple[Stream, Stream]:
    """The left and the right stream."""
    period = 2 * day.window_seconds
    workload = Workload(
        ITEMS,
        period_seconds=period,
        # The paper's: 5/8 of the period.
        shift_seconds=Steps(((1.0, 5 / 8 * period),)),
        size_mean=SIZE,
        seed=day.seed,
    )
    left, right = (
        Stream(rows, _keys(day, side, rows.times_us), _bits(rows), _ticks(day, rows.times_us))
        for side, rows in enumerate(draw(workload, (day.rate, day.rate)))
    )
    return left, right


def rate_of(pairs: float, window_seconds: float) -> float:
    """The rate of each stream at which, in calm, so many pairs a second have equal keys and are in reach."""
    return float(np.sqrt(pairs / (2 * window_seconds * (_shares(CALM_SKEW) ** 2).sum())))


def _factor(day: Day, second: float) -> float:
    for begin, end, segment in day.spans:
        if second < end:
            last = segment.rate if segment.rate_end is None else segment.rate_end
            return segment.rate + (last - segment.rate) * (second - begin) / (end - begin)
    return day.segments[-1].rate


def _shares(skew: float) -> NDArray[np.float64]:
    shares = np.arange(1, KEYS + 1, dtype=np.float64) ** -skew
    return np.asarray(shares / shares.sum())


def _keys(day: Day, side: int, times_us: NDArray[np.int64]) -> NDArray[np.int32]:
    random = np.random.default_rng([day.seed, KEYS, side])
    edges = np.searchsorted(times_us, [round(end * SECOND_US) for _, end, _ in day.spans])
    edges[-1] = times_us.size
    parts = []
    for first, last, segment in zip([0, *edges[:-1]], edges, day.segments, strict=True):
        ranks = random.choice(KEYS, int(last - first), p=_shares(segment.skew))
        parts.append((ranks + segment.turned) % KEYS)
    return np.concatenate(parts).astype(np.int32)


def _bits(rows: Rows) -> NDArray[np.uint64]:
    bits = np.zeros(rows.times_us.size, np.uint64)
    owners = np.repeat(np.arange(bits.size), np.diff(rows.bounds))
    np.bitwise_or.at(bits, owners, np.uint64(1) << rows.items.astype(np.uint64))
    return bits


def _ticks(day: Day, times_us: NDArray[np.int64]) -> NDArray[np.int32]:
    ticks = times_us // round(TICK_SECONDS * SECOND_US)
    return np.minimum(ticks, day.ticks - 1).astype(np.int32)
