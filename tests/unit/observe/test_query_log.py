"""Log lines are computed from telemetry: changes only, a summary a minute, a line per batch at DEBUG."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from tidegate.observe.query_log import LogEvents, LogLine, QueryLog


def telemetry(batch: int = 0, rows: int = 100, **more: Any) -> dict[str, Any]:
    return {
        "batch": batch,
        "input_rows": rows,
        "offered": {"orders": rows},
        "late": {"orders": 0},
        "rejected": {"orders": 0},
        "emitted": {"near": 2 * rows},
        "state_rows": 5000,
        "state_bytes": 7_300_000,
        "duration_seconds": 0.5,
        **more,
    }


def probes(ratio: float, **more: Any) -> dict[str, Any]:
    return {"shed": {"near": {"fraction": ratio, "stale": [0, 0], "keep_share": 1.0, **more}}}


def told(lines: list[LogLine], level: int = logging.INFO) -> list[str]:
    return [text for one, text in lines if one >= level]


def test_a_batch_is_one_line_at_debug() -> None:
    assert LogEvents(0.0).of(telemetry(17), 1.0) == [
        LogLine(logging.DEBUG, "batch 17: 100 rows in, 200 out in 0.50 s")
    ]


def test_only_changes_of_what_is_shed_are_told() -> None:
    events = LogEvents(0.0)
    ratios = [1.0, 0.43, 0.44, 0.4, 0.2, 0.95, 1.0, 1.0]
    lines = [told(events.of(telemetry(n, **probes(ratio)), 1.0)) for n, ratio in enumerate(ratios)]
    assert lines == [
        [],
        ["near probes 43 % of candidate pairs"],
        [],
        [],
        ["near probes 20 % of candidate pairs, before 43 %"],
        ["near probes 95 % of candidate pairs, before 20 %"],
        ["near probes all candidate pairs again, before 95 %"],
        [],
    ]


def test_stale_rows_that_are_dropped_are_a_warning() -> None:
    (line,) = [
        one
        for one in LogEvents(0.0).of(telemetry(1, **probes(1.0, stale=[10, 15])), 1.0)
        if one.level > logging.DEBUG
    ]
    assert line == (logging.WARNING, "near drops stale rows and admits 75 % of rows")


def test_windows_samples_and_sifters_are_told() -> None:
    given = telemetry(
        windows={"drops": {"busy": {"p": 0.25}}},
        estimates={"mean": {"kept": 0.05}},
        sift={"hits": {"offered": 100, "received": 40}},
    )
    assert told(LogEvents(0.0).of(given, 1.0)) == [
        "hits admits 40 % of rows",
        "busy computes 75 % of windows",
        "mean estimates windows from 5.0 % of rows",
    ]


def test_moves_and_another_number_of_instances_are_told() -> None:
    events = LogEvents(0.0)
    still = {"near": {"instances": 2, "moved": None}}
    moved = {"near": {"instances": 3, "moved": {"rows": 12340, "keys": 2, "partitions": 1}}}
    assert told(events.of(telemetry(0, balance=still), 1.0)) == []
    assert told(events.of(telemetry(1, balance=moved), 1.0)) == [
        "near: runs on 3 instances, before 2",
        "near: moved 2 keys and 1 partition with 12,340 rows to another instance",
    ]


def test_debts_are_told_when_they_begin_and_end() -> None:
    events = LogEvents(0.0)
    owed = [500, 300, 0]
    lines = [told(events.of(telemetry(n, debts={"comparisons": one}), 1.0)) for n, one in enumerate(owed)]
    assert lines == [["500 skipped pairs wait for repair"], [], ["no pair waits for repair"]]


def test_a_warning_is_told_when_it_begins_whatever_its_numbers() -> None:
    events = LogEvents(0.0)
    said = ["Overhead takes 1.2 s of 2 s", "Overhead takes 1.3 s of 2 s", None, "Overhead takes 1.2 s of 2 s"]
    warnings = [[{"code": "OVERHEAD", "message": one}] if one else [] for one in said]
    lines = [
        told(events.of(telemetry(n, warnings=some), 1.0), logging.WARNING) for n, some in enumerate(warnings)
    ]
    assert lines == [[f"{said[0]} [OVERHEAD]"], [], [], [f"{said[3]} [OVERHEAD]"]]


def test_rejected_rows_are_a_warning() -> None:
    given = telemetry(0, rejected={"orders": 100})
    assert told(LogEvents(0.0).of(given, 1.0), logging.WARNING) == [
        "orders: rejected 100 of 100 rows, whose time is null or too far ahead"
    ]


def test_a_summary_comes_once_a_minute_and_starts_again() -> None:
    events = LogEvents(1000.0, goal_seconds=2.0)
    times = [1030.0, 1059.0, 1060.0, 1090.0, 1120.0]
    lines = [told(events.of(telemetry(n, late={"orders": 1}), now)) for n, now in enumerate(times)]
    assert [len(one) for one in lines] == [0, 0, 1, 0, 1]
    assert lines[2] == [
        "300 rows in, 600 out in 3 batches; p95 0.50 s (goal 2.00 s); state 5,000 rows, 7.3 MB; "
        "late 3, rejected 0; nothing shed"
    ]
    assert lines[4][0].startswith("200 rows in, 400 out in 2 batches")


def test_a_summary_has_the_measured_latency_and_what_is_shed() -> None:
    given = telemetry(0, latency={"p95_seconds": 1.25}, **probes(0.5))
    line = told(LogEvents(0.0).of(given, 60.0))[-1]
    assert "p95 1.25 s;" in line
    assert line.endswith("near probes 50 % of candidate pairs")


def test_the_log_of_a_query_names_it_in_every_record(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="tidegate"):
        log = QueryLog("dispatch", 2.0, clock=lambda: 0.0)
        log.started("0.1.0", "ck", ["orders", "tracks"], ["near"], "2 seconds")
        log.recovered(16, replays=True)
        log.batch(telemetry(17))
        log.ended(None)
    assert [record.getMessage() for record in caplog.records] == [
        "dispatch: started (tidegate 0.1.0): checkpoint ck, inputs orders, tracks, outputs near, "
        "latency goal 2 seconds",
        "dispatch: continues after batch 16; batch 17 was begun and runs again under its plan",
        "dispatch: batch 17: 100 rows in, 200 out in 0.50 s",
        "dispatch: stopped after batch 17",
    ]
    assert {record.name for record in caplog.records} == {"tidegate.query"}
    assert {vars(record)["query_name"] for record in caplog.records} == {"dispatch"}
    assert vars(caplog.records[2])["batch_id"] == 17


def test_a_failure_is_an_error_with_its_message(caplog: pytest.LogCaptureFixture) -> None:
    QueryLog(None, clock=lambda: 0.0).ended(ValueError("[SINK_FAILED] Batch 0 failed"))
    (record,) = caplog.records
    assert (record.levelno, record.getMessage()) == (
        logging.ERROR,
        "query: failed after batch -1: [SINK_FAILED] Batch 0 failed",
    )


def test_nothing_is_printed_unless_the_user_configures_logging() -> None:
    assert any(isinstance(one, logging.NullHandler) for one in logging.getLogger("tidegate").handlers)
