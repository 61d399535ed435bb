"""A day of batches at one a second: what is asked for is answered at once, and exactly."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from tidegate.control.receipts.roll_up import combined
from tidegate.model.json_values import Json
from tidegate.model.times import utc_text
from tidegate.observe.receipts.receipt_tables import frame, range_of, receipts_of
from tidegate.state.receipt_log import ReceiptLog
from tidegate.state.sealed_lines import PER_FILE, sealed_line
from tidegate.state.store.local import LocalStore

DAY = 86_400
SECOND = 1_000_000
#: 2023-11-14, 22:00 UTC.
BEGIN_US = 1_699_999_200 * SECOND
REASONS = dict.fromkeys(("random_drop", "sifter", "window_drop", "sampling", "stale"), 0)
ESTIMATE = {"found": 60.0, "certain": 20.0, "others": 50.0, "variance": 4.0, "freedom": 15.0, "unseen": 99.0}


def receipt(batch: int) -> Json:
    """A batch with two streams and two outputs, one of which skips pairs."""
    rows = 1000 + batch % 7
    ledger = {"rows_offered": rows, "rows_processed": rows - 1, "rows_shed": 0, "rows_late": 1}
    ledger |= {"rows_rejected": 0, "rows_filtered": 0, "rows_unexplained": 0}
    what = {**ledger, "shed_reasons": REASONS, "complete": False, "mode": "EXACT"}
    streams = [
        {"kind": "stream", "name": name, **what, "rows_evicted": 0, "loss_ratio": 0.0, "warnings": []}
        for name in ("orders", "tracks")
    ]
    nothing = {"missing_windows": [], "windows_missing": 0, "windows_closed": None}
    output = {"kind": "output", **what, **nothing, "rows_written": rows, "loss_ratio": 0.0}
    near = {"name": "near", "mode": "SUBSET", "loss_reasons": ["skipped_pairs"], "estimate": ESTIMATE}
    seconds = 0.2 + batch % 60 / 100
    latency = {"p50_seconds": seconds, "p95_seconds": 2 * seconds, "max_seconds": 3 * seconds}
    return {
        "batch_id": batch,
        "started_at": utc_text(BEGIN_US + batch * SECOND),
        "latency": {"goal_seconds": 2.0, **latency, "overdue_ratio": 0.0, "basis": "file"},
        "load": {"duration_seconds": seconds, "state_rows": 10**6, "state_bytes": 10**8},
        "rows": [*streams, {**output, **near}, {**output, "name": "busy", "loss_reasons": []}],
    }


def a_day(home: Path) -> ReceiptLog:
    """The log after a day; its files are written as wholes, which is all that differs from a query's."""
    batches = LocalStore(str(home / "receipts"))
    log = ReceiptLog(batches, *(LocalStore(str(home / name)) for name in ("minutes", "hours")))
    for first in range(0, DAY, PER_FILE):
        lines = [sealed_line(receipt(batch)) for batch in range(first, first + PER_FILE)]
        batches.write_atomic(f"{first:010d}.json", b"\n".join(lines) + b"\n")
        if first % 1000 == 0:
            log.roll_up(receipt(first + PER_FILE - 1), combined)
    log.write(receipt(DAY))
    log.roll_up(receipt(DAY), combined)
    return log


def test_receipts_of_any_hour_of_a_day_are_there_at_once(tmp_path: Path) -> None:
    log = a_day(tmp_path)
    size = sum(path.stat().st_size for path in tmp_path.rglob("*.json"))
    files = len(list(tmp_path.rglob("*.json")))
    print(f"\n{DAY + 1} batches: {files} files, {size / 1e6:.0f} MB")

    def asked(by: str, **given: Any) -> Any:
        # Other processes may be running: processor time is what the answer takes by itself.
        began = time.process_time()
        table = frame(receipts_of(log.read(range_of(by, **given)), by), by)
        took = time.process_time() - began
        print(f"by={by} {given}: {len(table)} rows in {took:.3f} s")
        assert took <= 1.0
        return table[table.name == "orders"].rows_offered

    def rows(first: int, last: int) -> int:
        return sum(1000 + batch % 7 for batch in range(first, last + 1))

    whole = rows(0, DAY)
    assert asked("total").tolist() == [whole]
    assert asked("hour").tolist() == [rows(at, min(at + 3599, DAY)) for at in range(0, DAY + 1, 3600)]
    assert asked("total", last="1 hour").tolist() == [rows(DAY - 3600, DAY)]
    assert asked("hour", last="1 hour").sum() == rows(DAY - 3600, DAY)
    for second in (0, 5 * 3600, 5 * 3600 + 1234, DAY - 17):
        since = utc_text(BEGIN_US + second * SECOND)
        assert asked("total", since=since).tolist() == [rows(second, DAY)]
        assert asked("hour", since=since).sum() == rows(second, DAY)
    assert asked("batch", last=3600).sum() == rows(DAY - 3599, DAY)
