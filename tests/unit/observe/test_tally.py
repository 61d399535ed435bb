from __future__ import annotations

from typing import Any

import pytest

from tidegate.observe.tally import Tally, percentile


def report(batch: int, **changes: Any) -> dict[str, Any]:
    return {
        "batch": batch,
        "duration_seconds": 0.5,
        "input_rows": 10,
        "emitted": {"near": 3, "far": 1},
        "state_rows": 100,
        "state_bytes": 1000,
        "watermarks": {"orders": "2025-03-03T17:00:05", "tracks": "2025-03-03T17:00:04"},
        "late": {"orders": 1, "tracks": 2},
        "rejected": {"orders": 0, "tracks": 5},
        **changes,
    }


def test_a_batch_counts_once_however_often_it_is_reported() -> None:
    tally = Tally()
    tally.add([report(0), report(1)])
    tally.add([report(0), report(1), report(2)])
    assert (tally.rows_in, tally.rows_out, tally.late, tally.rejected) == (30, 12, 9, 15)
    assert len(tally.batch_seconds) == 3


def test_the_peak_stays_when_the_state_shrinks() -> None:
    tally = Tally()
    tally.add([report(0, state_rows=70, state_bytes=9), report(1, state_rows=20, state_bytes=4)])
    assert (tally.state.rows, tally.state_peak.rows) == (20, 70)
    assert (tally.state.bytes, tally.state_peak.bytes) == (4, 9)


def test_the_slowest_stream_gives_the_watermark() -> None:
    tally = Tally()
    tally.add([report(0)])
    assert tally.watermark == "2025-03-03T17:00:04"


def test_a_stream_without_rows_leaves_no_watermark() -> None:
    tally = Tally()
    tally.add([report(0, watermarks={"orders": "2025-03-03T17:00:05", "tracks": None})])
    assert tally.watermark is None


@pytest.mark.parametrize(("share", "expected"), [(0.5, 2.0), (0.95, 4.0), (0.25, 1.0), (0.0, 1.0)])
def test_a_percentile_is_one_of_the_values(share: float, expected: float) -> None:
    assert percentile([4.0, 1.0, 3.0, 2.0], share) == expected


def test_the_percentile_of_nothing_is_zero() -> None:
    assert percentile([], 0.5) == 0.0


def test_what_was_moved_and_made_up_for_is_added_up() -> None:
    tally = Tally()
    move = {"join1": {"moved": {"rows": 5}}, "window1": {"moved": None}}
    first = {"comparisons": 9, "repaired": {"matches": 2}, "written_off": [{}]}
    tally.add(
        [report(0, balance=move, debts=first), report(1, balance=move, debts={**first, "comparisons": 4})]
    )
    assert (tally.moved.plans, tally.moved.rows) == (2, 10)
    assert (tally.repaired, tally.debt, tally.written_off) == (4, 4, 2)


def test_commits_say_when_rows_were_done() -> None:
    tally = Tally()
    tally.add([report(0, started=100.0)])
    assert tally.commits == [(100.5, 10)]


def test_an_idle_report_does_not_stand_for_the_batch_that_comes() -> None:
    tally = Tally()
    tally.add([report(0), report(1, idle=True, input_rows=0)])
    assert (tally.batch, tally.rows_in) == (0, 10)
    tally.add([report(0), report(1)])
    assert (tally.batch, tally.rows_in) == (1, 20)
