"""The targets of the join, each with a fixed id, as `tidegate bench join` reports them.

A bar is identified by what was measured, not by the scenario; bars that a run did not measure are left out. A
run at another scale (a dry run) reports its bars under ids that end in `.dry_run`, as its figures are not
comparable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from tidegate.observe.json_frame import Bar
from tidegate_lab.bench.join.rounds import Line
from tidegate_lab.bench.join.summary import (
    US,
    Spread,
    batch_events,
    batch_time_ratio,
    same_work,
    speedup,
    timed_seconds,
)
from tidegate_lab.plots.bars import at_least, at_most

#: (id, rows per batch, keys, contender, times faster) at ±10 s, uniform keys and plain rows.
SPEED_BARS = (
    ("join.vs_spark_memory_1m", 1_000_000, 10_000_000, "spark-memory", 20.0),
    ("join.vs_spark_rocksdb4_1m", 1_000_000, 10_000_000, "spark-rocksdb-4", 30.0),
    ("join.vs_spark_memory_100k", 100_000, 1_000_000, "spark-memory", 5.0),
    ("join.vs_spark_rocksdb4_100k", 100_000, 1_000_000, "spark-rocksdb-4", 5.0),
)
FLOOR_BAR = ("join.over_floor_1m", 1_000_000, 10_000_000, 1.25)
SPEED_WINDOW_MS = 10_000
FIXED_COST_SECONDS = 0.4
#: Noise between two medians of the same thing on a busy machine; "flat" and "not growing" mean no more.
FLAT = 1.10
#: Segments are merged and deleted in steps, so the bytes on disk swing within a window.
BOUNDED = 1.25
WINDOW_COST = 2.5


def middle(found: Spread | None) -> float | None:
    return None if found is None else found.median


def speed_bars(lines: Sequence[Line], scale: float) -> list[Bar]:
    """Against Spark's own join and against the floor, wherever a bar's own setting was run."""
    bars = []
    for id, rows, keys, engine, target in SPEED_BARS:
        for us, other in _pairs(lines, round(rows * scale), round(keys * scale), engine):
            bars.append(at_least(id, middle(speedup(us, other)), "x", target))
    id, rows, keys, target = FLOOR_BAR
    for us, floor in _pairs(lines, round(rows * scale), round(keys * scale), "floor"):
        bars.append(at_most(id, middle(batch_time_ratio(us, floor)), "x", target))
    return marked(bars, scale)


def _pairs(lines: Sequence[Line], rows: int, keys: int, engine: str) -> list[tuple[Line, Line]]:
    def fits(line: Line) -> bool:
        data = line.entry.data
        plain = data.zipf == 0 and data.payload_bytes == 0 and data.batch_ms == 1000
        return plain and (data.rows_per_batch, data.keys) == (rows, keys)

    return [
        (us, other)
        for us in lines
        for other in lines
        if us.entry.engine == US and other.entry.engine == engine and not other.absent
        if fits(us) and same_work(us, other) and us.entry.window_ms == SPEED_WINDOW_MS
    ]


def fixed_cost_bars(us: Line) -> list[Bar]:
    """An almost empty batch: its median time, and how a batch compares with the one half a run before.

    Neighbours on the machine slow down any stretch of a run, so two stretches prove nothing; a cost that
    grows with the number of batches shows in most of these pairs.
    """
    cost = growth = None
    if us.alive:
        seconds = timed_seconds(us.entry, us.outcomes[0])
        cost = median(seconds)
        half = len(seconds) // 2
        growth = median([late / early for early, late in zip(seconds, seconds[half:], strict=False)])
    return [
        at_most("join.fixed_cost_seconds", cost, "s", FIXED_COST_SECONDS),
        at_most("join.fixed_cost_growth", growth, "x", FLAT),
    ]


def long_stream_bars(us: Line) -> list[Bar]:
    """The last fifth of a long stream against the part that follows the first full window.

    Driver: live heap after a collection plus the Python driver. Workers: their resident sizes.
    """

    def growth(*names: str) -> float | None:
        if not us.alive:
            return None
        events = batch_events(us.outcomes[0])
        values = [float(sum(event[name] for name in names)) for event in events]
        early = values[us.entry.warmup : us.entry.warmup + max(1, len(values) // 5)]
        return median(values[-max(1, len(values) // 5) :]) / median(early)

    return [
        at_most("join.driver_memory_growth", growth("heap_live_bytes", "driver_python_bytes"), "x", FLAT),
        at_most("join.worker_memory_growth", growth("workers_bytes"), "x", FLAT),
        at_most("join.state_disk_growth", growth("disk_bytes"), "x", BOUNDED),
    ]


def long_window_bar(id: str, narrow: Line, wide: Line) -> Bar:
    return at_most(id, middle(batch_time_ratio(wide, narrow)), "x", WINDOW_COST)


def marked(bars: Sequence[Bar], scale: float) -> list[Bar]:
    return list(bars) if scale == 1 else [replace(bar, id=f"{bar.id}.dry_run") for bar in bars]
