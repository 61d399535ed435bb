"""Receipts as tables: every row has every column, and batches add up with their estimates."""

from __future__ import annotations

from typing import Any

import pytest

from tidegate.control.receipts.recall import Estimate
from tidegate.model.codec import to_plain
from tidegate.observe.receipt_tables import COLUMNS, frame, receipt_rows, totals

LEDGER = {"offered": 10, "processed": 7, "shed": 3, "late": 0, "rejected": 0, "filtered": 0, "unexplained": 0}
SHED = {"shed_by": {"random_drop": 3, "sifter": 0, "window_drop": 0, "sampling": 0, "stale": 0}}


def receipt(batch: int, output: dict[str, Any]) -> dict[str, Any]:
    stream = {"kind": "stream", "name": "a", "mode": "SUBSET", **LEDGER, **SHED, "given_up": 1, "readers": []}
    out = {"kind": "output", "name": "pairs", "mode": "SUBSET", **LEDGER, **SHED, "emitted": 4, "why": []}
    return {"batch": batch, "planned_us": 0, "rows": [stream, {**out, **output}]}


def estimated(found: float, others: float, variance: float) -> dict[str, Any]:
    estimate = Estimate(found, found - 1, others, variance, 15.0, 1e6)
    return {"estimate": to_plain(estimate), "why": ["skipped_pairs"]}


def test_a_frame_has_a_row_a_batch_and_stream_or_output() -> None:
    table = frame(receipt_rows([receipt(0, {}), receipt(1, {"recall": 0.5})]))
    assert list(table.columns) == list(COLUMNS)
    assert table[["batch", "kind", "name"]].values.tolist() == [
        [batch, *what] for batch in (0, 1) for what in (("stream", "a"), ("output", "pairs"))
    ]
    assert (table.offered == table.processed + table.shed + table.late + table.rejected).all()
    assert table.recall.tolist()[3] == 0.5
    assert table.emitted.isna().tolist() == [True, False, True, False]
    assert table.given_up.tolist() == [1, 0, 1, 0]


def test_a_query_without_batches_has_an_empty_frame() -> None:
    assert list(frame(receipt_rows([])).columns) == list(COLUMNS)
    assert totals([]) == []


def test_batches_add_up_and_so_do_their_estimates() -> None:
    sure = to_plain(Estimate(100.0, 100.0))
    many = [receipt(0, {"mode": "EXACT", "estimate": sure})]
    many += [receipt(batch, estimated(20.0, 81.0, 400.0)) for batch in range(1, 5)]
    stream, output = totals(many)
    assert (stream["offered"], stream["shed_by"]["random_drop"], stream["given_up"]) == (50, 15, 5)
    assert stream["recall"] is None
    assert (output["mode"], output["emitted"], output["batch"]) == ("SUBSET", 20, 4)
    assert output["recall"] == pytest.approx(180 / (100 + 4 * 100))
    (_, alone) = totals(many[:2])
    assert output["recall_high"] - output["recall_low"] < alone["recall_high"] - alone["recall_low"]


def test_a_batch_without_a_sample_is_left_out_and_one_without_an_estimate_leaves_none() -> None:
    known = receipt(0, estimated(20.0, 81.0, 400.0))
    unlucky = receipt(1, {"why": ["no_sample", "skipped_pairs"]})
    dropped = receipt(1, {"why": ["random_drop"]})
    assert totals([known, unlucky])[1]["recall"] == pytest.approx(0.2)
    assert totals([known, unlucky])[1]["why"] == ["no_sample", "skipped_pairs"]
    assert totals([known, dropped])[1]["recall"] is None
    assert totals([unlucky])[1]["recall"] is None


def test_what_is_owed_is_that_of_the_last_batch_and_what_was_paid_adds_up() -> None:
    repairs = [{"debt": 90, "paid": 0, "forgiven": 0}, {"debt": 20, "paid": 60, "forgiven": 10}, {}]
    stream, output = totals([receipt(batch, one) for batch, one in enumerate(repairs)])
    assert (output["debt"], output["paid"], output["forgiven"]) == (20, 60, 10)
    assert stream["debt"] is None
    table = frame(receipt_rows([receipt(batch, one) for batch, one in enumerate(repairs)]))
    assert table.paid.isna().tolist() == [True, False, True, False, True, True]
