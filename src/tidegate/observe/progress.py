"""The public progress of a batch, made of its telemetry and its receipt by one pure function.

    telemetry (`telemetry.py`) ─┐
    receipt (`control/receipts`) ├─▶ progress_of ─▶ `model/progress.Progress`
    identity of the query       ─┘

Counts of rows, modes, recall and debts come from the receipt alone, so the two never disagree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tidegate.control.receipts.receipts import OUTPUT, STREAM
from tidegate.model.codec import from_plain
from tidegate.model.progress import (
    DurationProgress,
    Health,
    InputProgress,
    LatencyProgress,
    OperatorProgress,
    OutputProgress,
    Progress,
    RecallProgress,
    WarningProgress,
    WouldShed,
)
from tidegate.observe import units
from tidegate.observe.shed_summary import shedding

Row = Mapping[str, Any]


@dataclass(frozen=True)
class QueryIdentity:
    """What Spark calls a query; all None in a run over batch inputs."""

    name: str | None = None
    query_id: str | None = None
    run_id: str | None = None


def progress_of(telemetry: Row, receipt: Row, identity: QueryIdentity) -> Progress:
    """The progress of one batch."""
    rows = {(row["kind"], row["name"]): row for row in receipt["rows"]}
    inputs = {name: _input(row, telemetry) for (kind, name), row in rows.items() if kind == STREAM}
    outputs = {name: _output(row) for (kind, name), row in rows.items() if kind == OUTPUT}
    operators = {
        name: from_plain(OperatorProgress, one) for name, one in telemetry["operator_metrics"].items()
    }
    latency, duration = from_plain(LatencyProgress, telemetry["latency"]), _duration(telemetry)
    observed = telemetry.get("would_shed")
    would = None if observed is None else from_plain(WouldShed, observed)
    evicted = any(row.get("rows_evicted") for row in receipt["rows"])
    health = health_of(latency, duration, inputs, operators, outputs, evicted, telemetry["cold"])
    # Batch 17: 9,000 rows in 0.84 s, shedding (p95 1.4 s of 2 s); near probes 63 % of candidate pairs.
    summary = (
        f"Batch {receipt['batch_id']}: {_rows_in(inputs, duration)}, "
        f"{health.replace('_', ' ')}{_against_goal(latency, duration)}"
    )
    losses = [*shedding(telemetry), *_losses(inputs, outputs), *_repairs(telemetry)]
    return Progress(
        query_name=identity.name,
        query_id=identity.query_id,
        run_id=identity.run_id,
        batch_id=receipt["batch_id"],
        started_at=receipt["started_at"],
        health=health,
        summary="; ".join([summary, *losses]) + ".",
        latency=latency,
        duration=duration,
        inputs=inputs,
        operators=operators,
        outputs=outputs,
        warnings=tuple(from_plain(WarningProgress, one) for one in telemetry["warnings"]),
        would_shed=would,
    )


def health_of(
    latency: LatencyProgress,
    duration: DurationProgress,
    inputs: Mapping[str, InputProgress],
    operators: Mapping[str, OperatorProgress],
    outputs: Mapping[str, OutputProgress],
    evicted: bool,
    cold: bool,
) -> Health:
    """The first that holds; `model/progress.Progress` defines each. `evicted`: state was shed."""
    if _is_overdue(latency, duration):
        return "overdue"
    if evicted or _sheds(inputs, operators, outputs):
        return "shedding"
    if any(one.repaired_pairs for one in outputs.values()):
        return "repairing"
    return "warming_up" if cold else "on_time"


def _is_overdue(latency: LatencyProgress, duration: DurationProgress) -> bool:
    goal, p95 = latency.goal_seconds, latency.p95_seconds
    if latency.is_measured and goal is not None and p95 is not None:
        return p95 > goal
    return duration.budget_seconds is not None and duration.total_seconds > duration.budget_seconds


def _sheds(
    inputs: Mapping[str, InputProgress],
    operators: Mapping[str, OperatorProgress],
    outputs: Mapping[str, OutputProgress],
) -> bool:
    """Whether rows, pairs or windows were left out in this batch."""
    return (
        any(one.rows_shed for one in inputs.values())
        or any(one.probe_ratio is not None and one.probe_ratio < 1 for one in operators.values())
        or any(one.windows_missing for one in outputs.values())
    )


def _input(row: Row, telemetry: Row) -> InputProgress:
    name = row["name"]
    watermark = telemetry["watermarks"].get(name)
    watermark = None if watermark == "end" else watermark
    backlog = telemetry["backlog_rows"].get(name)
    return InputProgress(
        rows_offered=row["rows_offered"],
        rows_processed=row["rows_processed"],
        rows_shed=row["rows_shed"],
        rows_late=row["rows_late"],
        rows_rejected=row["rows_rejected"],
        backlog_rows=backlog,
        backlog_seconds=_backlog_seconds(backlog, row["rows_offered"], telemetry["duration_seconds"]),
        watermark=watermark,
        watermark_lag_seconds=None if watermark is None else _lag_seconds(watermark, telemetry),
    )


def _backlog_seconds(backlog: int | None, rows: int, seconds: float) -> float | None:
    if not backlog:
        return None if backlog is None else 0.0
    return backlog * seconds / rows if rows else None


def _lag_seconds(watermark: str, telemetry: Row) -> float | None:
    """How far the watermark is behind the end of the batch; None if it lies beyond what a date can be."""
    try:
        moment = datetime.fromisoformat(watermark).timestamp()
    except ValueError:
        return None
    return float(telemetry["started"] + telemetry["duration_seconds"] - moment)


def _output(row: Row) -> OutputProgress:
    known = row.get("recall") is not None
    return OutputProgress(
        rows_written=row["rows_written"],
        mode=row["mode"],
        complete=row["complete"],
        recall=RecallProgress(row["recall"], row["recall_low"], row["recall_high"]) if known else None,
        loss_ratio=row["loss_ratio"],
        windows_missing=row["windows_missing"],
        debt_pairs=row.get("debt_pairs"),
        repaired_pairs=row.get("repaired_pairs"),
        written_off_pairs=row.get("written_off_pairs"),
    )


def _duration(telemetry: Row) -> DurationProgress:
    """The parts of a batch; whatever is not planning, writing or committing is execution."""
    total = telemetry["duration_seconds"]
    plan, sink, commit = (telemetry["timings"].get(part, 0.0) for part in ("plan", "sinks", "commit"))
    execute = max(0.0, total - plan - sink - commit)
    # The parts are measured by another clock than the total, which may be a test's.
    return DurationProgress(
        max(total, plan + sink + commit), telemetry["budget_seconds"], plan, execute, sink, commit
    )


def _rows_in(inputs: Mapping[str, InputProgress], duration: DurationProgress) -> str:
    rows = sum(one.rows_offered for one in inputs.values())
    return f"{units.count(rows)} {'row' if rows == 1 else 'rows'} in {units.seconds(duration.total_seconds)}"


def _against_goal(latency: LatencyProgress, duration: DurationProgress) -> str:
    """The number that `overdue` is decided by, where there is a limit for it."""
    if latency.is_measured and latency.goal_seconds is not None and latency.p95_seconds is not None:
        return f" (p95 {units.seconds(latency.p95_seconds)} of {units.seconds(latency.goal_seconds)})"
    if duration.budget_seconds is not None:
        return f" (budget {units.seconds(duration.budget_seconds)})"
    return ""


def _losses(inputs: Mapping[str, InputProgress], outputs: Mapping[str, OutputProgress]) -> list[str]:
    """Rows and windows that were left out, in words; empty if none was."""
    counts = [
        (sum(getattr(one, f"rows_{of}") for one in inputs.values()), "row", of)
        for of in ("shed", "late", "rejected")
    ]
    counts.append((sum(one.windows_missing for one in outputs.values()), "window", "missing"))
    return [f"{units.count(n)} {what}{'s' * (n != 1)} {became}" for n, what, became in counts if n]


def _repairs(telemetry: Row) -> list[str]:
    """Pairs of joins: those of a join with several outputs count once."""
    debts = telemetry["debts"]
    repaired = debts.get("repaired", {}).get("comparisons", 0)
    written_off = sum(one["comparisons"] for one in debts.get("written_off", ()))
    parts = ((repaired, "repaired"), (written_off, "written off"))
    return [f"{units.count(pairs)} pairs {words}" for pairs, words in parts if pairs]
