"""Receipts by batch, hour or in total, as `model/receipts.Receipt` and as pandas data frames.

    lines of the receipt log ──▶ selected ──▶ periods ──▶ a Receipt for each period, kind and name ──▶ frame
                                 since, last   by

`model/receipts.py` says what the columns mean and how batches add up.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from statistics import NormalDist
from typing import Any, get_args

import numpy as np

from tidegate.control.receipts.recall import Estimate, pooled
from tidegate.control.receipts.receipts import ESTIMATED, EXACT, NO_SAMPLE, OUTPUT, SUBSET, loss_ratio
from tidegate.errors import FlowError
from tidegate.model.codec import from_plain
from tidegate.model.json_values import Metrics
from tidegate.model.receipts import Receipt, ReceiptPeriod
from tidegate.model.times import utc_text
from tidegate.quantities import duration_us, is_whole

#: The receipt of a batch, as `control/receipts/receipts.receipt_of` makes it.
Line = Mapping[str, Any]
Row = Mapping[str, Any]

#: The columns that say which batches a row covers.
PERIOD_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "batch": ("batch_id", "started_at"),
    "hour": ("hour", "first_batch_id", "last_batch_id"),
    "total": ("first_batch_id", "last_batch_id", "started_at"),
}
_FIRST = ("kind", "name", "mode", "complete")
_NUMBERS = (
    "rows_offered",
    "rows_processed",
    "rows_shed",
    "rows_late",
    "rows_rejected",
    "rows_written",
    "recall",
    "recall_low",
    "recall_high",
    "loss_ratio",
    "windows_missing",
    "debt_pairs",
    "repaired_pairs",
    "written_off_pairs",
    "p50_seconds",
    "p95_seconds",
    "max_seconds",
    "overdue_ratio",
)
_REST = (
    "rows_filtered",
    "rows_evicted",
    "rows_unexplained",
    "windows_closed",
    "shed_reasons",
    "loss_reasons",
    "missing_windows",
    "recall_by_lag",
    "readers",
    "warnings",
)
#: All columns but those of the period, the most important first.
COLUMNS = (*_FIRST, *_NUMBERS, *_REST)
_PAIRS = ("debt_pairs", "repaired_pairs", "written_off_pairs")
_WHOLE = ("rows_written", "windows_missing", "windows_closed", *_PAIRS)
_FLOATS = ("recall", "recall_low", "recall_high", "loss_ratio")
_SECONDS = ("p50_seconds", "p95_seconds", "max_seconds", "overdue_ratio")
_ROW_COUNTS = tuple(f"rows_{of}" for of in ("offered", "processed", "shed", "late", "rejected", "filtered"))
_SUMMED = (*_ROW_COUNTS, "rows_evicted", "rows_unexplained")
_NAMES = {one.name for one in fields(Receipt)}
#: For percentiles of several batches a batch stands for a hundred latencies, at these deviations from its
#: median; and the deviations of what is known of it: the lower end, the median, p95, the slowest row.
_DEVIATIONS = np.array([NormalDist().inv_cdf((n + 0.5) / 100) for n in range(100)])
_KNOWN = (-1.645, 0.0, 1.645, 3.0)


def receipts_by(
    lines: Sequence[Line],
    by: str = "batch",
    since: int | str | datetime | None = None,
    last: int | str | timedelta | None = None,
) -> list[Receipt]:
    """The receipts of a period each; `since` and `last` select batches, as in `StreamingQuery.receipts`."""
    if by not in get_args(ReceiptPeriod):
        raise FlowError(
            "Receipts are by batch, by hour or in total",
            code="RECEIPTS_PERIOD_UNKNOWN",
            got=repr(by),
            do='Write by="batch", by="hour" or by="total"',
        )
    chosen = _since(lines, since)
    chosen = _last(chosen, last)
    if by == "batch":
        return [_one(line, row) for line in chosen for row in line["rows"]]
    if by == "total":
        return _of_period(chosen, chosen[0]["started_at"]) if chosen else []
    hours: defaultdict[str, list[Line]] = defaultdict(list)
    for line in chosen:
        hours[_hour(line["started_at"])].append(line)
    return [one for hour, some in sorted(hours.items()) for one in _of_period(some, hour)]


def frame(receipts: Sequence[Receipt], by: str = "batch") -> Any:
    """The receipts as a pandas data frame; times are UTC time stamps."""
    import pandas as pd

    from tidegate.observe.receipts.receipt_frame import ReceiptFrame

    names = {"batch_id": "last_batch_id", "hour": "started_at"}
    columns = (*PERIOD_COLUMNS[by], *COLUMNS)
    made = pd.DataFrame(
        [[_cell(getattr(one, names.get(name, name))) for name in columns] for one in receipts],
        columns=list(columns),
    )
    for name in {"started_at", "hour"} & set(columns):
        made[name] = pd.to_datetime(made[name], utc=True, format="ISO8601")
    types = dict.fromkeys((*_FLOATS, *_SECONDS), "float64") | dict.fromkeys(_WHOLE, "Int64")
    return ReceiptFrame(made.astype({**types, **dict.fromkeys(_SUMMED, "int64"), "complete": "bool"}))


def _cell(value: Any) -> Any:
    """Lists instead of tuples, and plain dictionaries."""
    if isinstance(value, tuple):
        return [_cell(one) for one in value]
    return dict(value) if isinstance(value, Mapping) else value


def _since(lines: Sequence[Line], since: int | str | datetime | None) -> Sequence[Line]:
    """Batches from this one on, or those that began at this time or later; a time without a zone is UTC."""
    if since is None:
        return lines
    if is_whole(since, 0):
        return [line for line in lines if line["batch_id"] >= since]
    try:
        moment = datetime.fromisoformat(since) if isinstance(since, str) else since
    except ValueError:
        moment = None
    if not isinstance(moment, datetime):
        raise FlowError(
            "`since` is neither a batch nor a time",
            code="RECEIPTS_SINCE_INVALID",
            got=repr(since),
            do='Give a batch_id, a datetime, or ISO text such as "2026-11-18T14:00:00Z"',
        )
    utc = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    return [line for line in lines if datetime.fromisoformat(line["started_at"]) >= utc]


def _last(lines: Sequence[Line], last: int | str | timedelta | None) -> Sequence[Line]:
    """The newest batches: so many, or those that began at most this long before the newest one."""
    if last is None or not lines:
        return lines
    if is_whole(last):
        return lines[-last:]
    if isinstance(last, int | float):
        raise FlowError(
            "`last` is neither a number of batches nor a duration",
            code="RECEIPTS_LAST_INVALID",
            got=repr(last),
            do='Give a whole number of batches, or a duration such as "1 hour"',
        )
    newest = datetime.fromisoformat(lines[-1]["started_at"])
    return _since(lines, newest - timedelta(microseconds=duration_us(last, "last")))


def _hour(started_at: str) -> str:
    moment = datetime.fromisoformat(started_at).replace(minute=0, second=0, microsecond=0)
    return utc_text(round(moment.timestamp()) * 1_000_000)


def _one(line: Line, row: Row) -> Receipt:
    """The receipt of one batch."""
    given = {name: _tuples(value) for name, value in row.items() if name in _NAMES}
    latency = _latency([line]) if row["kind"] == OUTPUT else {}
    at = line["batch_id"]
    return Receipt(first_batch_id=at, last_batch_id=at, started_at=line["started_at"], **latency, **given)


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _of_period(lines: Sequence[Line], started_at: str) -> list[Receipt]:
    """One receipt for each stream and output over several batches."""
    by_name: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
    for line in lines:
        for row in line["rows"]:
            by_name[row["kind"], row["name"]].append(row)
    batches: Metrics = {
        "first_batch_id": lines[0]["batch_id"],
        "last_batch_id": lines[-1]["batch_id"],
        "started_at": started_at,
    }
    latency = _latency(lines)
    return [
        Receipt(**batches, name=name, **_total(rows), **(latency if kind == OUTPUT else {}))
        for (kind, name), rows in by_name.items()
    ]


def _total(rows: Sequence[Row]) -> Metrics:
    """What adds up over batches, of one stream or output."""
    modes = {row["mode"] for row in rows}
    found: Metrics = {
        "kind": rows[-1]["kind"],
        "mode": ESTIMATED if ESTIMATED in modes else SUBSET if SUBSET in modes else EXACT,
        "complete": all(row["complete"] for row in rows),
        **{name: sum(row.get(name) or 0 for row in rows) for name in _SUMMED},
        "shed_reasons": {
            reason: sum(row["shed_reasons"].get(reason, 0) for row in rows)
            for reason in rows[-1]["shed_reasons"]
        },
        # Batches of a long burst repeat the same warning: the last one is enough.
        "warnings": next((_tuples(one) for row in reversed(rows) if (one := row.get("warnings"))), ()),
    }
    return found | (_total_output(rows) if rows[-1]["kind"] == OUTPUT else _total_stream(found))


def _total_stream(sums: Row) -> Metrics:
    return {"loss_ratio": sums["rows_shed"] / sums["rows_offered"] if sums["rows_offered"] else 0.0}


def _total_output(rows: Sequence[Row]) -> Metrics:
    written = [row["rows_written"] for row in rows]
    recall = _recall(rows)
    lost = loss_ratio(rows) if recall.get("recall") is None else 1.0 - recall["recall"]
    return {
        "rows_written": None if None in written else sum(written),
        "windows_missing": sum(row["windows_missing"] for row in rows),
        "windows_closed": _sum_or_none(row.get("windows_closed") for row in rows),
        "missing_windows": tuple(_tuples(run) for row in rows for run in row["missing_windows"]),
        "loss_reasons": tuple(sorted({one for row in rows for one in row["loss_reasons"]})),
        "loss_ratio": lost,
        **recall,
        **_repairs(rows),
    }


def _sum_or_none(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _repairs(rows: Sequence[Row]) -> Metrics:
    """The final debt, and all that was repaired and written off; empty without repair."""
    repairs = [row for row in rows if row.get("debt_pairs") is not None]
    if not repairs:
        return {}
    return {
        "debt_pairs": repairs[-1]["debt_pairs"],
        **{of: sum(row[of] for row in repairs) for of in _PAIRS[1:]},
    }


def _recall(rows: Sequence[Row]) -> Metrics:
    if all(row["mode"] == EXACT for row in rows):
        return {"recall": 1.0, "recall_low": 1.0, "recall_high": 1.0}
    known = [row for row in rows if NO_SAMPLE not in row["loss_reasons"]]
    if any("estimate" not in row for row in known) or all(row["mode"] == EXACT for row in known):
        return {}
    whole = pooled(from_plain(Estimate, row["estimate"]) for row in known)
    low, high = whole.interval
    return {"recall": whole.recall, "recall_low": low, "recall_high": high}


def _latency(lines: Sequence[Line]) -> Metrics:
    """The latency of all rows of some batches; empty without rows."""
    found = [
        (line["latency"], sum(row["rows_offered"] for row in line["rows"] if row["kind"] != OUTPUT))
        for line in lines
        if line["latency"] is not None and line["latency"]["p50_seconds"] is not None
    ]
    if not found:
        return {}
    if len(found) == 1:
        return {name: found[0][0][name] for name in _SECONDS}
    weights = np.array([max(1, rows) for _, rows in found], float)
    p50, p95, most = (np.array([one[name] for one, _ in found], float) for name in _SECONDS[:3])
    # Below the median a batch is taken to be as wide as above it.
    knots = np.stack((np.maximum(0.0, 2 * p50 - p95), p50, p95, most), axis=1)
    points = np.stack([np.interp(_DEVIATIONS, _KNOWN, one) for one in knots])
    order = np.argsort(points, axis=None)
    reached = np.cumsum(np.repeat(weights, _DEVIATIONS.size)[order]) / (weights.sum() * _DEVIATIONS.size)
    at = [float(points.ravel()[order][np.searchsorted(reached, share - 1e-9)]) for share in (0.5, 0.95)]
    overdue = [one["overdue_ratio"] for one, _ in found]
    return {
        "p50_seconds": at[0],
        "p95_seconds": at[1],
        "max_seconds": float(most.max()),
        "overdue_ratio": None if None in overdue else float(np.average(overdue, weights=weights)),
    }
