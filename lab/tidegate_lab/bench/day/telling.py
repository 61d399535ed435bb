"""Batch metrics of all engines in one form."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from tidegate_lab.bench.day.feed import STREAMS
from tidegate_lab.bench.day.recorded import BatchOutcome


def told_by_tidegate(progress: Mapping[str, Any]) -> BatchOutcome:
    """A batch of this engine, of any version: what a version does not tell is nothing."""
    shed = progress["shed"].get("pairs", {})
    seconds = progress["balance"]["pairs"]["seconds"]
    debts = progress.get("debts") or {}
    fraction, timings = shed.get("fraction"), progress.get("timings", {})
    return BatchOutcome(
        progress["batch"],
        progress["started"],
        progress["started"] + progress["duration_seconds"],
        progress["offered"][STREAMS[0]],
        progress["input_rows"],
        sum(operator["comparisons"] for operator in progress["operators"]),
        fraction,
        # Pairs in reach are an estimate where rows are found by key: at r = 1 nothing was skipped.
        skipped=sum(w["skipped"] for w in shed.get("windows", ())) if fraction not in (None, 1.0) else 0,
        dropped=sum(shed.get("dropped", ())) + sum(shed.get("stale", ())),
        late=sum(progress["late"].values()),
        imbalance=max(seconds) * len(seconds) / sum(seconds) if sum(seconds) else None,
        owed=int(debts.get("comparisons", 0)),
        repaid=int(debts.get("repaired", {}).get("comparisons", 0)),
        goal_seconds=timings.get("goal", 0.0) + timings.get("intake", 0.0),
        task_seconds=sum(operator.get("cpu_seconds", 0.0) for operator in progress["operators"]),
        decided=progress.get("goal") or {},
    )


def told_by_spark(progress: Any) -> BatchOutcome:
    """A batch of Spark's own engine; one that only moves the watermark has no rows."""
    began = datetime.fromisoformat(progress["timestamp"]).timestamp()
    # A file source describes itself as FileStreamSource[file:/…/left].
    left = next(one for one in progress["sources"] if one["description"].rstrip("]").endswith(STREAMS[0]))
    late = sum(int(one["numRowsDroppedByWatermark"]) for one in progress["stateOperators"])
    return BatchOutcome(
        int(progress["batchId"]),
        began,
        began + int(progress["durationMs"]["triggerExecution"]) / 1000,
        int(left["numInputRows"]),
        int(progress["numInputRows"]),
        late=late,
    )
