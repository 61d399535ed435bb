"""Receipts by batch, hour and in total: every row has every column, and batches add up."""

from __future__ import annotations

import json
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from tidegate.control.receipts.recall import Estimate
from tidegate.errors import FlowError
from tidegate.model.codec import to_plain
from tidegate.model.receipts import Receipt, kept_lines
from tidegate.observe.receipts.receipt_tables import COLUMNS, PERIOD_COLUMNS, frame, range_of, receipts_of

COUNTS = {"offered": 10, "processed": 7, "shed": 3, "late": 0, "rejected": 0, "filtered": 0, "unexplained": 0}
LEDGER = {f"rows_{of}": rows for of, rows in COUNTS.items()}
SHED = {"shed_reasons": {"random_drop": 3, "sifter": 0, "window_drop": 0, "sampling": 0, "stale": 0}}
NONE_MISSING = {"missing_windows": [], "windows_missing": 0, "windows_closed": None, "loss_reasons": []}
#: A batch every ten minutes.
FIRST = datetime(2026, 11, 18, 13, 35, tzinfo=UTC)


def receipts_by(
    lines: list[dict[str, Any]], by: str = "batch", since: Any = None, last: Any = None
) -> list[Receipt]:
    return receipts_of(kept_lines(lines)(range_of(by, since, last)), by)


def receipt(batch: int, output: dict[str, Any], latency: dict[str, Any] | None = None) -> dict[str, Any]:
    what = {"mode": "SUBSET", "complete": False, **LEDGER, **SHED}
    stream = {"kind": "stream", "name": "a", **what, "rows_evicted": 1, "readers": [], "loss_ratio": 0.3}
    out = {"kind": "output", "name": "pairs", **what, "rows_written": 4, **NONE_MISSING, "loss_ratio": None}
    started_at = (FIRST + timedelta(minutes=10 * batch)).isoformat(timespec="microseconds")
    rows = [stream, {**out, **output}]
    return {"batch_id": batch, "started_at": started_at, "latency": latency, "rows": rows}


def estimated(found: float, others: float, variance: float) -> dict[str, Any]:
    estimate = Estimate(found, found - 1, others, variance, 15.0, 1e6)
    return {"estimate": to_plain(estimate), "loss_reasons": ["skipped_pairs"]}


def took(p50: float, p95: float, most: float, overdue: float | None = 0.0) -> dict[str, Any]:
    values = {"p50_seconds": p50, "p95_seconds": p95, "max_seconds": most, "overdue_ratio": overdue}
    return {"goal_seconds": 2.0, **values, "basis": "file"}


def totals(lines: list[dict[str, Any]]) -> list[Receipt]:
    return receipts_by(lines, "total")


def test_a_frame_has_a_row_a_batch_and_stream_or_output() -> None:
    table = frame(receipts_by([receipt(0, {}), receipt(1, {"recall": 0.5})]))
    assert list(table.columns) == [*PERIOD_COLUMNS["batch"], *COLUMNS]
    assert table[["batch_id", "kind", "name"]].values.tolist() == [
        [batch, *what] for batch in (0, 1) for what in (("stream", "a"), ("output", "pairs"))
    ]
    parts = table.rows_processed + table.rows_shed + table.rows_late + table.rows_rejected
    assert (table.rows_offered == parts).all()
    assert table.recall.tolist()[3] == 0.5
    assert table.rows_written.isna().tolist() == [True, False, True, False]
    assert table.rows_evicted.tolist() == [1, 0, 1, 0]
    assert table.started_at.iloc[2] == FIRST + timedelta(minutes=10)


def test_times_are_read_as_iso_8601_whatever_their_digits() -> None:
    # Pandas cannot guess the format of 20:26 in 2026, and a guess from one row may not fit the next.
    lines = [receipt(batch, {}) for batch in (0, 1)]
    lines[0]["started_at"] = "2026-11-18T20:26:06.389389+00:00"
    table = frame(receipts_by(lines))
    assert table.started_at.iloc[0] == datetime(2026, 11, 18, 20, 26, 6, 389389, tzinfo=UTC)


def test_the_columns_are_the_fields_of_a_receipt() -> None:
    periods = {"first_batch_id", "last_batch_id", "started_at"}
    assert {one.name for one in fields(Receipt)} == {*COLUMNS, *periods}


@pytest.mark.parametrize("by", ["batch", "hour", "total"])
def test_a_query_without_batches_has_an_empty_frame(by: str) -> None:
    assert list(frame(receipts_by([], by), by).columns) == [*PERIOD_COLUMNS[by], *COLUMNS]


def test_a_receipt_is_plain_json() -> None:
    (one, _) = receipts_by([receipt(3, {})])
    plain = json.loads(one.json)
    assert plain == one.to_dict()
    assert (plain["first_batch_id"], plain["last_batch_id"], plain["rows_shed"]) == (3, 3, 3)
    assert str(one) == "stream a: SUBSET, 10 rows offered, 7 processed, 3 shed, not complete"


def test_batches_add_up_and_so_do_their_estimates() -> None:
    sure = to_plain(Estimate(100.0, 100.0))
    many = [receipt(0, {"mode": "EXACT", "estimate": sure})]
    many += [receipt(batch, estimated(20.0, 81.0, 400.0)) for batch in range(1, 5)]
    stream, output = totals(many)
    assert (stream.rows_offered, stream.shed_reasons["random_drop"], stream.rows_evicted) == (50, 15, 5)
    assert stream.recall is None
    assert stream.loss_ratio == pytest.approx(0.3)
    assert (output.mode, output.rows_written) == ("SUBSET", 20)
    assert (output.first_batch_id, output.last_batch_id) == (0, 4)
    assert output.recall == pytest.approx(180 / (100 + 4 * 100))
    assert output.loss_ratio == pytest.approx(1 - 180 / 500)
    (_, alone) = totals(many[:2])
    assert width(output) < width(alone)


def width(one: Receipt) -> float:
    assert one.recall_high is not None
    assert one.recall_low is not None
    return one.recall_high - one.recall_low


def test_a_batch_without_a_sample_is_left_out_and_one_without_an_estimate_leaves_none() -> None:
    known = receipt(0, estimated(20.0, 81.0, 400.0))
    unlucky = receipt(1, {"loss_reasons": ["no_sample", "skipped_pairs"]})
    dropped = receipt(1, {"loss_reasons": ["random_drop"]})
    assert totals([known, unlucky])[1].recall == pytest.approx(0.2)
    assert totals([known, unlucky])[1].loss_reasons == ("no_sample", "skipped_pairs")
    for lines in ([known, dropped], [unlucky]):
        assert (totals(lines)[1].recall, totals(lines)[1].loss_ratio) == (None, None)


def test_missing_windows_are_a_share_of_those_that_closed() -> None:
    gap = {"missing_windows": [[0, 20, 10]], "windows_missing": 3, "loss_reasons": ["window_drop"]}
    lines = [
        receipt(0, {"mode": "EXACT"}),
        receipt(1, {**gap, "windows_closed": 4}),
        receipt(2, {"mode": "EXACT", "windows_closed": 6}),
    ]
    (_, output) = totals(lines)
    assert (output.windows_missing, output.windows_closed, output.loss_ratio) == (3, 10, 0.3)
    assert output.missing_windows == ((0, 20, 10),)
    assert frame([output], "total").missing_windows[0] == [[0, 20, 10]]


def test_debt_is_that_of_the_last_batch_and_repairs_add_up() -> None:
    names = ("debt_pairs", "repaired_pairs", "written_off_pairs")
    repairs = [dict(zip(names, pairs, strict=True)) for pairs in ((90, 0, 0), (20, 60, 10))]
    lines = [receipt(batch, one) for batch, one in enumerate([*repairs, {}])]
    stream, output = totals(lines)
    assert (output.debt_pairs, output.repaired_pairs, output.written_off_pairs) == (20, 60, 10)
    assert stream.debt_pairs is None
    assert frame(receipts_by(lines)).repaired_pairs.isna().tolist() == [True, False, True, False, True, True]


def test_complete_means_every_batch() -> None:
    whole, late = {"mode": "EXACT", "complete": True}, {"mode": "EXACT", "complete": False}
    assert totals([receipt(0, whole), receipt(1, whole)])[1].complete
    assert not totals([receipt(0, whole), receipt(1, late)])[1].complete


def test_hours_are_those_of_the_start_of_a_batch_in_utc() -> None:
    table = frame(receipts_by([receipt(batch, {}) for batch in range(7)], "hour"), "hour")
    outputs = table[table.kind == "output"]
    assert outputs.hour.tolist() == [datetime(2026, 11, 18, hour, tzinfo=UTC) for hour in (13, 14)]
    assert outputs.first_batch_id.tolist() == [0, 3]
    assert outputs.last_batch_id.tolist() == [2, 6]
    assert outputs.rows_offered.tolist() == [30, 40]


@pytest.mark.parametrize(
    ("since", "last", "batches"),
    [
        (None, None, [0, 1, 2, 3, 4]),
        (3, None, [3, 4]),
        (None, 2, [3, 4]),
        (None, 9, [0, 1, 2, 3, 4]),
        (4, 2, [4]),
        (FIRST + timedelta(minutes=20), None, [2, 3, 4]),
        ("2026-11-18T15:55:00+02:00", None, [2, 3, 4]),
        ("2026-11-18T13:56:00Z", None, [3, 4]),
        (datetime(2026, 11, 18, 13, 55), None, [2, 3, 4]),
        (None, "15 minutes", [3, 4]),
        (None, timedelta(minutes=20), [2, 3, 4]),
    ],
)
def test_since_and_last_select_batches(since: Any, last: Any, batches: list[int]) -> None:
    found = receipts_by([receipt(batch, {}) for batch in range(5)], "batch", since, last)
    assert sorted({one.last_batch_id for one in found}) == batches


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"by": "day"}, "RECEIPTS_PERIOD_UNKNOWN"),
        ({"since": "yesterday"}, "RECEIPTS_SINCE_INVALID"),
        ({"since": -1}, "RECEIPTS_SINCE_INVALID"),
        ({"since": True}, "RECEIPTS_SINCE_INVALID"),
        ({"last": 0}, "RECEIPTS_LAST_INVALID"),
        ({"last": 1.5}, "RECEIPTS_LAST_INVALID"),
    ],
)
def test_what_selects_nothing_is_refused(given: dict[str, Any], code: str) -> None:
    with pytest.raises(FlowError) as refused:
        receipts_by([receipt(0, {})], **given)
    assert refused.value.code == code


def test_a_printed_table_has_the_columns_in_which_something_happened() -> None:
    table = frame(receipts_by([receipt(n, {"recall": 0.25}) for n in (0, 1)], "total"), "total")
    assert repr(table).splitlines() == [
        "  kind  name   mode  complete rows_offered rows_processed rows_shed rows_written loss_ratio",
        "stream     a SUBSET     False           20             14         6            -      0.300",
        "output pairs SUBSET     False           20             14         6            8          -",
    ]
    assert "<table" in table._repr_html_()
    assert repr(frame([])) == "no receipts yet"
    by_batch = frame(receipts_by([receipt(7, {})]))
    assert repr(by_batch).split()[0] == "batch_id"
    assert "rows_evicted" in repr(by_batch.set_index("name").T), "what is made of it has all columns"


def test_latency_is_that_of_the_batch_and_only_of_outputs() -> None:
    stream, output = receipts_by([receipt(0, {}, took(0.5, 1.5, 2.5, 0.01))])
    assert stream.p95_seconds is None
    assert (output.p50_seconds, output.p95_seconds, output.max_seconds) == (0.5, 1.5, 2.5)
    assert output.overdue_ratio == 0.01


def test_latency_of_equal_rows_is_pooled_exactly() -> None:
    # 18 batches of a second and two of four: 10 % of the rows take four seconds.
    lines = [receipt(n, {}, took(1.0, 1.0, 1.0)) for n in range(18)]
    lines += [receipt(18 + n, {}, took(4.0, 4.0, 4.0, 1.0)) for n in range(2)]
    lines.append(receipt(20, {}, {**took(0, 0, 0), "p50_seconds": None}))
    (_, output) = totals(lines)
    assert (output.p50_seconds, output.p95_seconds, output.max_seconds) == (1.0, 4.0, 4.0)
    assert output.overdue_ratio == pytest.approx(0.1)


def test_pooled_percentiles_are_near_those_of_all_rows() -> None:
    chance = np.random.default_rng(5)
    batches = [chance.gamma(4.0, scale, 10_000) for scale in (0.2, 0.3, 0.5, 0.25)]
    lines = [
        receipt(n, {}, took(*(float(np.quantile(rows, share)) for share in (0.5, 0.95, 1.0))))
        for n, rows in enumerate(batches)
    ]
    (_, output) = totals(lines)
    p50, p95 = np.quantile(np.concatenate(batches), (0.5, 0.95))
    assert output.p50_seconds == pytest.approx(p50, rel=0.1)
    assert output.p95_seconds == pytest.approx(p95, rel=0.1)
