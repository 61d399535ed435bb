"""The contents of a checkpoint as tables for people; all times are UTC."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from tidegate.model.json_values import Metrics
from tidegate.model.plan import Plan
from tidegate.model.receipts import Receipt
from tidegate.observe import units
from tidegate.observe.checkpoint_contents import (
    Contents,
    checkpoint_row,
    debt_rows,
    load_rows,
    routing_rows,
    segment_rows,
    sifter_rows,
    stream_rows,
    window_rows,
)
from tidegate.observe.receipts.receipt_tables import receipts_of
from tidegate.observe.table import print_table
from tidegate.observe.tally import rows_out


def print_contents(console: Console, contents: Contents) -> None:
    """Print all parts that are not empty."""
    whole = checkpoint_row(contents)
    facts = [
        ("last batch done", _or(whole["last_batch"], "none yet")),
        ("batch planned, not done", _or(whole["batch_under_way"], "none")),
        ("manifests kept", _span(whole["manifests_kept"])),
        ("plans kept", _span(whole["plans_kept"])),
        ("state rows", units.count(whole["state_rows"])),
        ("state size", units.size(whole["state_bytes"])),
        ("pieces", units.count(whole["pieces"])),
    ]
    print_table(console, f"Checkpoint {contents.url}", ("", ""), facts)
    _table(console, "Streams (UTC)", [_stream_line(row) for row in stream_rows(contents)], left=1)
    _table(console, "Routing", routing_rows(contents), left=1)
    _table(console, "Segments (UTC)", [_segment_line(row) for row in segment_rows(contents)], left=2)
    _table(console, "Sifters", [_sifter_line(row) for row in sifter_rows(contents.manifest)], left=1)
    _table(console, "Windows (UTC)", [_window_line(row) for row in window_rows(contents.manifest)], left=2)
    _table(console, "Debts (UTC)", [_debt_line(row) for row in debt_rows(contents)], left=1)
    _table(console, "Plans (UTC)", [_plan_line(plan) for plan in contents.plans], left=0)
    _table(console, "Last batches", [_batch_line(b, r) for b, r in contents.telemetry.items()], left=0)
    newest = receipts_of(contents.receipts, "batch")
    _table(console, "Receipts of the last batches", [_receipt_line(one) for one in newest], left=3)
    sums = receipts_of(contents.summed, contents.by)
    title = "Receipts of all batches" if contents.by == "total" else f"Receipts by {contents.by} (UTC)"
    _table(console, title, [_receipt_line(one, dated=contents.by != "total") for one in sums], left=3)
    _table(console, f"Load by {contents.by} (UTC)", [_load_line(row) for row in load_rows(contents)], left=1)


def _stream_line(row: Mapping[str, Any]) -> Metrics:
    times = {name: units.date_and_time(row[name]) for name in ("seen", "watermark", "heard")}
    return {"stream": row["stream"], **times}


def _segment_line(row: Mapping[str, Any]) -> Metrics:
    return {
        "operator": row["operator"],
        "side": row["side"],
        # An identifier, not a count: no separators.
        "slot": _or(row["slot"], "-"),
        "first": units.date_and_time(row["first"]),
        "last": units.date_and_time(row["last"]),
        "pieces": row["pieces"],
        "rows": row["rows"],
        "keyless": row["keyless_rows"],
        "size": units.size(row["bytes"]),
    }


def _sifter_line(row: Mapping[str, Any]) -> Metrics:
    made = f"after batch {row['made_after_batch']}: {row['why']}" if row["why"] else "nothing was dropped yet"
    return {
        "match": row["match"],
        "version": str(row["version"]),
        "regions": row["regions"],
        "passes (z)": f"{row['z']:.3f}",
        "dropped by region": f"{row['threshold_least']:.2f} to {row['threshold_most']:.2f}",
        "samples": row["samples"],
        "quality": "-" if row["expected_quality"] is None else f"{row['expected_quality']:.3f}",
        "last made": made,
    }


def _window_line(row: Mapping[str, Any]) -> Metrics:
    return {
        "window": row["window"],
        "by": ", ".join(row["by"]) or "-",
        "size": _extent(row, "size"),
        "slide": _extent(row, "slide"),
        "partials each": len(row["partials"]),
        "stored": row["stored"],
        "rows per stored": "-" if row["rows_per_partial"] is None else f"{row['rows_per_partial']:.1f}",
        "rows kept": _kept(row),
        "size on disk": units.size(row["bytes"]),
        "oldest": units.date_and_time(row["first"]),
        "closed before": units.date_and_time(row["closed_before"]),
    }


def _extent(row: Mapping[str, Any], of: str) -> str:
    rows = row[f"{of}_rows"]
    return units.seconds(row[f"{of}_us"] / 1e6) if rows is None else f"{units.count(rows)} rows"


def _kept(row: Mapping[str, Any]) -> str:
    """The share of rows that a window keeps; by group if it is approximate."""
    least, most = row["share_least"], row["share_most"]
    if least is None or least == 1:
        return "all"
    return f"{least:.1%}" if least == most else f"{least:.1%} to {most:.1%}"


def _debt_line(row: Mapping[str, Any]) -> Metrics:
    return {
        "operator": row["operator"],
        "batch": str(row["batch"]),
        "state": row["state"],
        "comparisons": row["comparisons"],
        "matches": f"{row['matches']:,.0f}",
        "left rows from": units.date_and_time(row["needed_from"][0]),
        "right rows from": units.date_and_time(row["needed_from"][1]),
    }


def _plan_line(plan: Plan) -> Metrics:
    return {
        "batch": plan.batch,
        "decided": units.date_and_time(units.iso(plan.now_us)),
        "merges": sum(len(groups) for by in plan.rewrites.merges.values() for groups in by.values()),
        "flush": "yes" if plan.flush else "no",
        "seed": str(plan.seed),
    }


def _batch_line(batch: int, report: Mapping[str, Any]) -> Metrics:
    return {
        "batch": batch,
        "took": units.seconds(report["duration_seconds"]),
        "rows in": report["input_rows"],
        "rows out": rows_out(report),
        "state rows": report["state_rows"],
        "state size": units.size(report["state_bytes"]),
        "late": sum(report["late"].values()),
        "rejected": sum(report["rejected"].values()),
        "left out": _left_out(report.get("shed", {})),
    }


def _load_line(row: Mapping[str, Any]) -> Metrics:
    return {
        "start": units.date_and_time(row["start"]),
        "batches": row["batches"],
        "mean": units.seconds(row["duration_seconds"] / row["batches"]),
        "longest": units.seconds(row["duration_seconds_max"]),
        "state rows": row["state_rows"],
        "state": units.size(row["state_bytes"]),
        "largest": units.size(row["state_bytes_max"]),
    }


def _receipt_line(receipt: Receipt, dated: bool = False) -> Metrics:
    low, high = receipt.recall_low, receipt.recall_high
    between = f" ({low:.1%} to {high:.1%})" if low is not None and high is not None and low < high else ""
    first, last = receipt.first_batch_id, receipt.last_batch_id
    return {
        **({"start": units.date_and_time(receipt.started_at)} if dated else {}),
        "batch": str(last) if first == last else f"{first} to {last}",
        "what": f"{receipt.kind} {receipt.name}",
        "mode": receipt.mode,
        "offered": receipt.rows_offered,
        "processed": receipt.rows_processed,
        "shed": receipt.rows_shed,
        "late": receipt.rows_late,
        "rejected": receipt.rows_rejected,
        "written": "-" if receipt.rows_written is None else receipt.rows_written,
        "recall": "-" if receipt.recall is None else f"{receipt.recall:.1%}{between}",
        "shed because of": ", ".join(receipt.loss_reasons) or "-",
    }


def _left_out(shed: Mapping[str, Any]) -> str:
    """The share of candidate pairs that joins skipped; empty without a goal."""
    windows = [window for join in shed.values() for window in join["windows"]]
    candidates = sum(window["in_reach"] for window in windows)
    return f"{sum(window['skipped'] for window in windows) / candidates:.1%}" if candidates else "-"


def _span(batches: Sequence[int]) -> str:
    """`12 to 19 (8)`; only the oldest batches are purged, so the range has no holes."""
    return f"{batches[0]} to {batches[-1]} ({len(batches)})" if batches else "none"


def _or(value: int | None, word: str) -> str:
    return word if value is None else str(value)


def _table(console: Console, title: str, rows: Sequence[Mapping[str, Any]], *, left: int) -> None:
    if rows:
        cells = [[_cell(value) for value in row.values()] for row in rows]
        print_table(console, title, list(rows[0]), cells, left=left)


def _cell(value: Any) -> str:
    return units.count(value) if isinstance(value, int) else str(value)
