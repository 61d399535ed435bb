"""Receipts that are added up by minute and hour say what those of the batches say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from itertools import groupby
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.control.receipts.recall import Estimate
from tidegate.control.receipts.roll_up import combined
from tidegate.model.codec import to_plain
from tidegate.model.json_values import Json
from tidegate.model.receipts import Receipt, hour_of, minute_of
from tidegate.model.times import utc_text
from tidegate.observe.receipts.receipt_tables import receipts_of

COUNTS = st.integers(0, 50)
SUMS = [one.name for one in fields(Receipt) if one.name.startswith("rows_")]
PAIRS = ("debt_pairs", "repaired_pairs", "written_off_pairs")


@st.composite
def ledgers(draw: st.DrawFn) -> Json:
    processed, shed, late, rejected = (draw(COUNTS) for _ in range(4))
    return {
        "rows_offered": processed + shed + late + rejected,
        "rows_processed": processed,
        "rows_shed": shed,
        "rows_late": late,
        "rows_rejected": rejected,
        "rows_filtered": draw(COUNTS),
        "rows_unexplained": 0,
        "shed_reasons": {"sifter": shed, "stale": 0},
    }


@st.composite
def outputs(draw: st.DrawFn, name: str) -> Json:
    mode = draw(st.sampled_from(["EXACT", "SUBSET", "ESTIMATED"]))
    reasons = (
        [] if mode == "EXACT" else draw(st.lists(st.sampled_from(["skipped_pairs", "no_sample"]), max_size=2))
    )
    first = 10 * draw(COUNTS)
    runs = draw(st.sampled_from([[], [[first, first + 10, 10]]]))
    row = {
        **draw(ledgers()),
        "kind": "output",
        "name": name,
        "mode": mode,
        "complete": mode == "EXACT" and draw(st.booleans()),
        "rows_written": draw(st.none() | COUNTS),
        "loss_reasons": sorted({*reasons, *(["window_drop"] if runs else [])}),
        "missing_windows": runs,
        "windows_missing": 2 * len(runs),
        "windows_closed": draw(st.none() | st.integers(2, 9)),
    }
    if draw(st.booleans()):
        found = draw(st.integers(0, 100))
        row["estimate"] = to_plain(
            Estimate(found, found // 2, draw(COUNTS), draw(COUNTS), draw(st.integers(0, 15)), 1000.0)
        )
    if draw(st.booleans()):
        row |= dict(zip(PAIRS, (draw(COUNTS), draw(COUNTS), draw(COUNTS)), strict=True))
    return row


@st.composite
def latencies(draw: st.DrawFn) -> Json | None:
    if draw(st.integers(0, 4)) == 0:
        return None
    p50, more, most = (draw(st.integers(0, 5_000)) / 1000 for _ in range(3))
    overdue = draw(st.none() | st.sampled_from([0.0, 0.25, 1.0]))
    return {
        "p50_seconds": p50,
        "p95_seconds": p50 + more,
        "max_seconds": p50 + more + most,
        "overdue_ratio": overdue,
        "basis": "file",
    }


@st.composite
def runs(draw: st.DrawFn) -> list[Json]:
    """The lines of some batches, seconds, minutes or hours apart."""
    lines: list[Json] = []
    at_us = draw(st.integers(0, 10**9)) * 1_000_000
    for batch in range(draw(st.integers(1, 12))):
        at_us += draw(st.sampled_from([1, 25, 70, 1800, 5400])) * 1_000_000
        stream = {**draw(ledgers()), "kind": "stream", "name": "a", "mode": "EXACT", "complete": True}
        stream |= {
            "rows_evicted": draw(COUNTS),
            "warnings": draw(st.sampled_from([[], [{"code": f"W{batch}"}]])),
        }
        lines.append(
            {
                "batch_id": batch,
                "started_at": utc_text(at_us),
                "latency": draw(latencies()),
                "load": {
                    "duration_seconds": draw(COUNTS) / 8,
                    "state_rows": draw(COUNTS),
                    "state_bytes": draw(COUNTS),
                },
                "rows": [stream, draw(outputs("x")), draw(outputs("y"))],
            }
        )
    return lines


def rolled(lines: Sequence[Json], label: Any) -> list[Json]:
    return [{**combined(list(some)), "started_at": name} for name, some in groupby(lines, label)]


def same(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return left == pytest.approx(right, rel=1e-9, abs=1e-12)
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[name], right[name]) for name in left)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


@given(runs())
def test_what_is_added_up_twice_equals_what_is_added_up_at_once(lines: list[Json]) -> None:
    minutes = rolled(lines, minute_of)
    hours = rolled(minutes, hour_of)
    for parts in (
        minutes,
        hours,
        [*hours[:-1], *(one for one in minutes if hour_of(one) == hour_of(hours[-1]))],
    ):
        for by in ("hour", "total"):
            at_once, twice = receipts_of(lines, by), receipts_of(parts, by)
            assert same([one.to_dict() for one in at_once], [one.to_dict() for one in twice])
        assert same(combined(lines), combined(parts))


@given(runs())
def test_a_total_is_the_sum_over_the_lines(lines: list[Json]) -> None:
    for total in receipts_of(rolled(rolled(lines, minute_of), hour_of), "total"):
        rows = [row for line in lines for row in line["rows"] if row["name"] == total.name]
        for name in SUMS:
            values = [row.get(name, 0) for row in rows]
            missing = None in values or (name == "rows_written" and total.kind == "stream")
            assert getattr(total, name) == (None if missing else sum(values))
        assert total.complete == all(row["complete"] for row in rows)
        modes = {row["mode"] for row in rows}
        assert total.mode == next(one for one in ("ESTIMATED", "SUBSET", "EXACT") if one in modes)
        assert (total.first_batch_id, total.last_batch_id) == (0, len(lines) - 1)
        covered = {at for first, last, step in total.missing_windows for at in range(first, last + 1, step)}
        assert covered == {at for row in rows for a, b, _ in row.get("missing_windows", ()) for at in (a, b)}
        known = [line["latency"]["max_seconds"] for line in lines if line["latency"]]
        assert total.max_seconds == (max(known, default=None) if total.kind == "output" else None)
        debts = [row["debt_pairs"] for row in rows if "debt_pairs" in row]
        assert total.debt_pairs == (debts[-1] if debts else None)
