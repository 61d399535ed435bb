"""Sums the progress of a running query: rows, time, state, and what was shed or moved.

A query returns its last progress reports repeatedly; each batch number counts once, also after a replay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tidegate.model.codec import from_plain
from tidegate.model.progress import LatencyProgress


class StateSize(NamedTuple):
    """Stored rows and bytes."""

    rows: int = 0
    bytes: int = 0


class Moved(NamedTuple):
    """What balancing moved."""

    rows: int = 0
    plans: int = 0


class BatchLatency(NamedTuple):
    """The latency of a batch; None if it was not measured."""

    batch: int
    latency: LatencyProgress | None = None


@dataclass
class Tally:
    """Sums and peaks over all batches seen so far."""

    rows_in: int = 0
    rows_out: int = 0
    late: int = 0
    rejected: int = 0
    #: Stored rows and their bytes, after the last batch and at their peak.
    state: StateSize = field(default_factory=StateSize)
    state_peak: StateSize = field(default_factory=StateSize)
    #: The number of every batch and the latency that the engine measured, in order.
    latencies: list[BatchLatency] = field(default_factory=list)
    #: Duration of every batch, in order.
    batch_seconds: list[float] = field(default_factory=list)
    #: When each batch was committed, and the rows it took.
    commits: list[tuple[float, int]] = field(default_factory=list)
    #: The lowest watermark as an ISO moment; None while a stream has no row.
    watermark: str | None = None
    #: Rows whose owner changed, and the plans that moved them.
    moved: Moved = field(default_factory=Moved)
    #: Results that were found later than in their own batch, pairs in debt, debts written off.
    repaired: int = 0
    debt: int = 0
    written_off: int = 0

    @property
    def batch(self) -> int:
        """Number of the last batch; -1 before the first."""
        return self.latencies[-1].batch if self.latencies else -1

    def add(self, reports: Iterable[Mapping[str, Any]]) -> None:
        """Add reports; batches that are already counted are ignored."""
        for report in sorted(reports, key=lambda r: int(r["batch"])):
            # The batch of an idle report is yet to come.
            if report["batch"] > self.batch and not report.get("idle"):
                self._add_one(report)

    def _add_one(self, report: Mapping[str, Any]) -> None:
        raw = report.get("latency")
        latency = None if raw is None else from_plain(LatencyProgress, raw)
        self.latencies.append(BatchLatency(report["batch"], latency))
        self.batch_seconds.append(report["duration_seconds"])
        self.commits.append((report.get("started", 0.0) + report["duration_seconds"], report["input_rows"]))
        self.rows_in += report["input_rows"]
        self.rows_out += rows_out(report)
        self.late += sum(report["late"].values())
        self.rejected += sum(report["rejected"].values())
        self.state = StateSize(report["state_rows"], report["state_bytes"])
        self.state_peak = StateSize(*map(max, self.state_peak, self.state))
        moments = report["watermarks"].values()
        # ISO moments of one format sort as text; a stream without one holds the watermark back.
        self.watermark = None if None in moments else min(moments, default=None)
        moves = [one["moved"] for one in report.get("balance", {}).values() if one["moved"]]
        rows = sum(move["rows"] for move in moves)
        self.moved = Moved(self.moved.rows + rows, self.moved.plans + bool(rows))
        self._add_debts(report.get("debts") or {})

    def _add_debts(self, debts: Mapping[str, Any]) -> None:
        self.repaired += debts.get("repaired", {}).get("matches", 0)
        self.debt = debts.get("comparisons", 0)
        self.written_off += len(debts.get("written_off", ()))


def rows_out(report: Mapping[str, Any]) -> int:
    """Rows that the operators of a batch emitted."""
    return sum(report["emitted"].values())


def percentile(values: list[float], share: float) -> float:
    """The smallest value that at least `share` of the values do not exceed; 0.0 without values."""
    if not values:
        return 0.0
    ordered = sorted(values)
    rank = max(1, -int(-share * len(ordered) // 1))
    return ordered[min(rank, len(ordered)) - 1]
