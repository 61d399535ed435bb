"""A warning knows the batch in which it began, also after a restart."""

from __future__ import annotations

from tidegate.control.receipts.warnings import BatchWarning, receipt_warnings, shut_warnings, with_since
from tidegate.model.progress import (
    DEBTS_WRITTEN_OFF,
    OUTPUT_SHUT_OFF,
    ROWS_UNEXPLAINED,
    STALE_ROWS_DROPPED,
    WARNING_CODES,
)


def stale(stream: str, message: str = "three rows") -> BatchWarning:
    return BatchWarning(STALE_ROWS_DROPPED, message, stream)


def test_a_warning_that_goes_on_keeps_its_first_batch() -> None:
    _, known = with_since({}, [stale("a")], 7)
    warnings, known = with_since(known, [stale("a", "four rows"), stale("b")], 8)
    assert [(one.message, one.since_batch_id) for one in warnings] == [("four rows", 7), ("three rows", 8)]


def test_a_warning_that_pauses_begins_anew() -> None:
    _, known = with_since({}, [stale("a")], 7)
    none, known = with_since(known, [], 8)
    assert (none, known) == ([], {})
    warnings, _ = with_since(known, [stale("a")], 9)
    assert warnings[0].since_batch_id == 9


def test_rows_that_a_ledger_does_not_explain_are_warned_of() -> None:
    rows = [
        {"kind": "stream", "name": "a", "rows_unexplained": 2},
        {"kind": "stream", "name": "b", "rows_unexplained": 0, "warnings": [{"code": "X", "message": "m"}]},
    ]
    lost, passed_on = receipt_warnings({"rows": rows})
    assert (lost.code, "2 rows are unexplained" in lost.message) == (ROWS_UNEXPLAINED, True)
    assert passed_on == BatchWarning("X", "m", "b")


def test_pairs_that_nobody_will_repair_are_warned_of() -> None:
    rows = [
        {"kind": "output", "name": "near", "rows_unexplained": None, "written_off_pairs": 70},
        {"kind": "output", "name": "far", "rows_unexplained": None, "written_off_pairs": 0},
        {"kind": "output", "name": "busy", "rows_unexplained": None},
    ]
    (warning,) = receipt_warnings({"rows": rows})
    assert (warning.code, warning.subject) == (DEBTS_WRITTEN_OFF, "output near")
    assert "70 skipped pairs were written off" in warning.message


def test_an_output_that_is_shut_off_is_warned_of() -> None:
    (warning,) = shut_warnings(["busy"])
    assert (warning.code, warning.subject) == (OUTPUT_SHUT_OFF, "busy")


def test_every_code_has_a_meaning() -> None:
    assert all(code == code.upper() and meaning.endswith(".") for code, meaning in WARNING_CODES.items())
