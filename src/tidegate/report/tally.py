"""Adds up what a running query reports batch by batch.

A query hands out its last progress reports again and again; each batch counts once, whoever asks how
often. A batch that ran twice (a replay) reports under the same number and so counts once as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Tally:
    """Sums and peaks over all batches seen so far."""

    rows_in: int = 0
    rows_out: int = 0
    late: int = 0
    rejected: int = 0
    state_rows: int = 0
    state_bytes: int = 0
    state_rows_peak: int = 0
    state_bytes_peak: int = 0
    #: Number of the last batch; -1 before the first.
    batch: int = -1
    #: Duration of every batch, in order.
    batch_seconds: list[float] = field(default_factory=list)
    #: ISO moment that all streams have passed, or None while one has shown no row.
    watermark: str | None = None

    def add(self, reports: Iterable[Mapping[str, Any]]) -> None:
        """Take in reports; those of batches that are counted already change nothing."""
        for report in sorted(reports, key=lambda r: int(r["batch"])):
            if report["batch"] > self.batch:
                self._add_one(report)

    def _add_one(self, report: Mapping[str, Any]) -> None:
        self.batch = report["batch"]
        self.batch_seconds.append(report["duration_seconds"])
        self.rows_in += report["input_rows"]
        self.rows_out += rows_out(report)
        self.late += sum(report["late"].values())
        self.rejected += sum(report["rejected"].values())
        self.state_rows = report["state_rows"]
        self.state_bytes = report["state_bytes"]
        self.state_rows_peak = max(self.state_rows_peak, self.state_rows)
        self.state_bytes_peak = max(self.state_bytes_peak, self.state_bytes)
        moments = report["watermarks"].values()
        # ISO moments of one format sort as text; a stream without one holds the flow back.
        self.watermark = None if None in moments else min(moments, default=None)


def rows_out(report: Mapping[str, Any]) -> int:
    """Rows that the operators of a batch gave out."""
    return sum(report["emitted"].values())


def percentile(values: list[float], share: float) -> float:
    """The smallest value that at least `share` of the values do not exceed; 0.0 of nothing."""
    if not values:
        return 0.0
    ordered = sorted(values)
    rank = max(1, -int(-share * len(ordered) // 1))
    return ordered[min(rank, len(ordered)) - 1]
