"""Summarises the runs of `tidegate bench join`: one plain object per line, raw samples included.

Only batches after the warm-up count. A rate is rows over the time of their batches. Ratios are computed
within a round and reported as median, minimum and maximum over the rounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from tidegate.observe.tally import percentile
from tidegate_lab.bench.join.process import Outcome
from tidegate_lab.bench.join.rounds import Entry, Line
from tidegate_lab.bench.join.spec import WHOLE

US = "tidegate"


def timed_seconds(entry: Entry, outcome: Outcome) -> list[float]:
    """Seconds of each timed batch; empty for an engine without batches."""
    return [batch["seconds"] for batch in outcome.done.get("batches", [])[entry.warmup :]]


def rows_per_second(entry: Entry, outcome: Outcome) -> float:
    if entry.engine in WHOLE:
        return float(outcome.done["rows"] / outcome.done["whole_seconds"])
    seconds = timed_seconds(entry, outcome)
    return entry.data.rows_per_batch * len(seconds) / sum(seconds)


@dataclass(frozen=True)
class Spread:
    """A figure of several rounds."""

    median: float
    min: float
    max: float


def spread(values: Sequence[float]) -> Spread | None:
    return Spread(median(values), min(values), max(values)) if values else None


def measured(line: Line) -> Line | None:
    """The line that a contender is judged by: itself, or where it died its largest surviving rate."""
    return line if line.alive else line.survivor


def speedup(us: Line, other: Line) -> Spread | None:
    """How many times the other's rows per second we do, round by round."""
    judged = measured(other)
    if not us.alive or judged is None:
        return None
    ours = [rows_per_second(us.entry, o) for o in us.outcomes]
    theirs = [rows_per_second(judged.entry, o) for o in judged.outcomes]
    if judged is other:
        return spread([a / b for a, b in zip(ours, theirs, strict=True)])
    return spread([a / theirs[0] for a in ours])


def batch_time_ratio(numerator: Line, denominator: Line) -> Spread | None:
    """Median batch time over median batch time, round by round."""
    if not (numerator.alive and denominator.alive):
        return None
    medians = [
        [median(timed_seconds(line.entry, o)) for o in line.outcomes] for line in (numerator, denominator)
    ]
    return spread([a / b for a, b in zip(*medians, strict=True)])


def rows_of_report(scenario: str, lines: Sequence[Line]) -> list[dict[str, Any]]:
    """One object per line, and one more for each survivor at its lower rate."""
    rows = []
    for line in lines:
        us = next((one for one in lines if one.entry.engine == US and same_work(one, line)), None)
        found = speedup(us, line) if us is not None and us is not line else None
        ratio = None if found is None else asdict(found)
        rows.append({**_row(scenario, line), "tidegate_speedup": ratio})
        if line.survivor is not None:
            before = line.entry.data.rows_per_batch
            rows.append({**_row(scenario, line.survivor), "tidegate_speedup": ratio, "died_at_rows": before})
    return rows


def same_work(a: Line, b: Line) -> bool:
    return (a.entry.data, a.entry.window_ms) == (b.entry.data, b.entry.window_ms)


def _row(scenario: str, line: Line) -> dict[str, Any]:
    entry = line.entry
    lived = [o for o in line.outcomes if o.done] if line.alive else []
    seconds = [timed_seconds(entry, o) for o in lived]
    pooled = [s for one in seconds for s in one]
    rates = [rows_per_second(entry, o) for o in lived]
    last = lived[-1].done if lived else {}
    return {
        "scenario": scenario,
        "engine": entry.engine,
        "rows_per_batch": entry.data.rows_per_batch,
        "keys": entry.data.keys,
        "zipf": entry.data.zipf,
        "window_seconds": entry.window_ms / 1000,
        "row_bytes": entry.data.row_bytes,
        "warmup_batches": entry.warmup,
        "timed_batches": entry.data.batches - entry.warmup,
        "rows_per_second": median(rates) if rates else None,
        "batch_seconds_median": median(pooled) if pooled else None,
        "batch_seconds_p95": percentile(pooled, 0.95) if pooled else None,
        "state_bytes_per_row": _state_bytes_per_row(entry, lived),
        "peak_memory_bytes": max((o.peak_memory_bytes for o in line.outcomes), default=0),
        "gc_share": _gc_share(entry, lived),
        "pairs": last.get("pairs"),
        "checksum": last.get("checksum"),
        "died": line.died or None,
        "absent": line.absent,
        "batches_before_death": _batches_before_death(line),
        "samples": {
            "rows_per_second": rates,
            "batch_seconds": seconds,
            "watched": [_watched(o) for o in lived] if entry.watch else [],
        },
    }


def _state_bytes_per_row(entry: Entry, lived: Sequence[Outcome]) -> float | None:
    """Median over the timed batches, each as the engine itself counts its bytes and rows."""
    shares = [
        batch["state_bytes"] / batch["state_rows"]
        for outcome in lived
        for batch in outcome.done.get("batches", [])[entry.warmup :]
        if batch.get("state_rows")
    ]
    return median(shares) if shares else None


def _gc_share(entry: Entry, lived: Sequence[Outcome]) -> float | None:
    """Share of the time after the warm-up in which the Java process stood still to collect garbage."""
    shares = []
    for outcome in lived:
        batches = batch_events(outcome)[max(0, entry.warmup - 1) :]
        if len(batches) > 1:
            wall_ms = 1000 * (batches[-1]["at"] - batches[0]["at"])
            shares.append((batches[-1]["pause_ms"] - batches[0]["pause_ms"]) / wall_ms)
    return median(shares) if shares else None


def batch_events(outcome: Outcome) -> list[Mapping[str, Any]]:
    return [event for event in outcome.events if event["event"] == "batch"]


def _watched(outcome: Outcome) -> list[dict[str, Any]]:
    names = ("heap_live_bytes", "driver_python_bytes", "workers_bytes", "disk_bytes")
    return [{name: event[name] for name in names} for event in batch_events(outcome)]


def _batches_before_death(line: Line) -> int | None:
    dead = [o for o in line.outcomes if o.died]
    return len(batch_events(dead[0])) if dead else None
