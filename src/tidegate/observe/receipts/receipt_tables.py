"""Receipts by batch, hour or in total, as `model/receipts.Receipt` and as pandas data frames.

    lines of the receipt log ──▶ periods ──▶ a Receipt for each period, kind and name ──▶ frame
     (`range_of`: since, last)     by

`model/receipts.py` says what the columns mean, `control/receipts/roll_up.py` how batches add up.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

from tidegate.control.receipts.receipts import OUTPUT
from tidegate.control.receipts.roll_up import combined
from tidegate.errors import FlowError
from tidegate.model.json_values import Metrics
from tidegate.model.receipts import Receipt, ReceiptPeriod, ReceiptRange, began, hour_of
from tidegate.quantities import duration_us, is_whole

#: The receipt of a batch, as `control/receipts/receipts.receipt_of` makes it, or of several, added up.
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
    "would_rows_shed",
    "would_pairs_skipped",
    "would_windows_missing",
    "would_loss_ratio",
    "would_recall",
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
_WOULD = ("would_rows_shed", "would_pairs_skipped", "would_windows_missing")
_WHOLE = ("rows_written", "windows_missing", "windows_closed", *_PAIRS, *_WOULD)
_FLOATS = ("recall", "recall_low", "recall_high", "loss_ratio", "would_loss_ratio", "would_recall")
_SECONDS = ("p50_seconds", "p95_seconds", "max_seconds", "overdue_ratio")
_ROW_COUNTS = tuple(f"rows_{of}" for of in ("offered", "processed", "shed", "late", "rejected", "filtered"))
_SUMMED = (*_ROW_COUNTS, "rows_evicted", "rows_unexplained")
_NAMES = {one.name for one in fields(Receipt)}


def range_of(
    by: str, since: int | str | datetime | None = None, last: int | str | timedelta | None = None
) -> ReceiptRange:
    """What to read for these arguments of `StreamingQuery.receipts`."""
    if by not in get_args(ReceiptPeriod):
        raise FlowError(
            "Receipts are by batch, by hour or in total",
            code="RECEIPTS_PERIOD_UNKNOWN",
            got=repr(by),
            do='Write by="batch", by="hour" or by="total"',
        )
    return ReceiptRange(
        by_batch=by == "batch",
        first_batch=since if is_whole(since, 0) else 0,
        since=None if since is None or is_whole(since, 0) else _moment(since),
        last_batches=last if is_whole(last) else None,
        last=None if last is None or is_whole(last) else _age(last),
    )


def receipts_of(lines: Sequence[Line], by: str) -> list[Receipt]:
    """The receipts of a period each, of lines that cover every batch once."""
    if by == "batch":
        return [_one(line, row) for line in lines for row in line["rows"]]
    return [one for start, some in by_period(lines, by) for one in _of_period(some, start)]


def by_period(lines: Sequence[Line], by: str) -> list[tuple[str, list[Line]]]:
    """The lines of each period, by its start: of a batch, an hour, or all of them."""
    periods: defaultdict[str, list[Line]] = defaultdict(list)
    for line in lines:
        start = hour_of(line) if by == "hour" else began(lines[0] if by == "total" else line)
        periods[start].append(line)
    return sorted(periods.items())


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
    if value is None or isinstance(value, int | float | str):  # nearly all, and there are many
        return value
    if isinstance(value, tuple):
        return [_cell(one) for one in value]
    return dict(value) if isinstance(value, Mapping) else value


def _moment(since: object) -> datetime:
    """A time at which batches began at the earliest; without a zone it is UTC."""
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
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def _age(last: Any) -> timedelta:
    """How long before the newest batch others began at the earliest."""
    if isinstance(last, int | float):
        raise FlowError(
            "`last` is neither a number of batches nor a duration",
            code="RECEIPTS_LAST_INVALID",
            got=repr(last),
            do='Give a whole number of batches, or a duration such as "1 hour"',
        )
    return timedelta(microseconds=duration_us(last, "last"))


def _one(line: Line, row: Row) -> Receipt:
    """The receipt of one batch."""
    at = line["batch_id"]
    return Receipt(
        first_batch_id=at,
        last_batch_id=at,
        started_at=line["started_at"],
        **_latency(line, row),
        **_known(row),
    )


def _of_period(lines: Sequence[Line], started_at: str) -> list[Receipt]:
    """One receipt for each stream and output over several batches."""
    whole = combined(lines)
    batches: Metrics = {name: whole[name] for name in ("first_batch_id", "last_batch_id")}
    return [
        Receipt(started_at=started_at, **batches, **_latency(whole, row), **_known(row))
        for row in whole["rows"]
    ]


def _known(row: Row) -> Metrics:
    """The columns that a row has."""
    return {name: _tuples(value) for name, value in row.items() if name in _NAMES}


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _latency(line: Line, row: Row) -> Metrics:
    """The latency of an output; empty for streams, and without rows."""
    latency = line["latency"]
    if row["kind"] != OUTPUT or latency is None or latency["p50_seconds"] is None:
        return {}
    return {name: latency[name] for name in _SECONDS}
