"""The public progress: made of telemetry and receipt, true to both, documented, and the same as JSON."""

from __future__ import annotations

import ast
import inspect
import json
import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.model import progress as module
from tidegate.model import receipts as receipts_module
from tidegate.model.codec import to_plain
from tidegate.model.progress import (
    WARNING_CODES,
    DurationProgress,
    LatencyProgress,
    OperatorProgress,
    Progress,
)
from tidegate.observe.progress import QueryIdentity, health_of, progress_of

IDENTITY = QueryIdentity("dispatch", "q-1", "r-1")
OPERATOR = OperatorProgress("join", 9, 100, 63, 0.63, 1.0, None, None, 40, 4000, 2, 1.25, 0, 0)


def telemetry(**given: Any) -> dict[str, Any]:
    return {
        "started": 1_763_476_000.0,
        "duration_seconds": 0.84,
        "budget_seconds": 1.0,
        "cold": False,
        "timings": {"plan": 0.1, "sinks": 0.2, "commit": 0.04, "run": 0.4},
        "watermarks": {"a": "2025-11-18T14:26:30+00:00", "b": None},
        "backlog_rows": {"a": 50},
        "operator_metrics": {"near": to_plain(OPERATOR)},
        "debts": {},
        "warnings": [{"code": "GOAL_UNREACHABLE", "message": "Too long.", "since_batch_id": 3}],
        **given,
    }


def stream(name: str, processed: int, shed: int = 0, late: int = 0, rejected: int = 0) -> dict[str, Any]:
    parts = {"rows_processed": processed, "rows_shed": shed, "rows_late": late, "rows_rejected": rejected}
    return {"kind": "stream", "name": name, "rows_offered": sum(parts.values()), **parts, "rows_evicted": 0}


def output(name: str, **given: Any) -> dict[str, Any]:
    found = {"rows_written": 9, "mode": "EXACT", "complete": True, "loss_ratio": 0.0, "windows_missing": 0}
    return {"kind": "output", "name": name, **found, **given}


def receipt(*rows: dict[str, Any], latency: LatencyProgress | None = None) -> dict[str, Any]:
    known = latency or LatencyProgress(2.0, 0.9, 1.4, 1.9, 0.0, "file")
    return {
        "batch_id": 17,
        "started_at": "2025-11-18T14:26:40.000000+00:00",
        "latency": to_plain(known),
        "rows": list(rows) or [stream("a", 100), stream("b", 20), output("near")],
    }


def of_batch(telemetry: dict[str, Any], receipt: dict[str, Any], identity: QueryIdentity) -> Progress:
    """Of a batch whose commit took no time."""
    return progress_of({**telemetry, "latency": receipt["latency"]}, receipt, identity)


def test_a_progress_says_what_telemetry_and_receipt_say() -> None:
    recall = {"recall": 0.6, "recall_low": 0.5, "recall_high": 0.7, "loss_ratio": 0.4}
    some = output("near", mode="SUBSET", complete=False, windows_missing=4, **recall)
    shed = {"near": {"fraction": 0.6, "windows": [{"in_reach": 100, "looked_at": 63}]}}
    found = of_batch(
        telemetry(shed=shed), receipt(stream("a", 100, 7, 2, 1), stream("b", 10), some), IDENTITY
    )
    assert (found.query_name, found.query_id, found.run_id, found.batch_id) == ("dispatch", "q-1", "r-1", 17)
    a, b = found.inputs["a"], found.inputs["b"]
    assert (a.rows_offered, a.rows_shed, a.rows_late, a.rows_rejected) == (110, 7, 2, 1)
    assert a.backlog_rows == 50
    assert a.backlog_seconds == pytest.approx(50 * 0.84 / 110)
    assert (b.backlog_rows, b.watermark, b.watermark_lag_seconds) == (None, None, None)
    assert a.watermark_lag_seconds == pytest.approx(1_763_476_000.84 - 1_763_475_990)
    assert found.operators == {"near": OPERATOR}
    near = found.outputs["near"]
    assert near.recall is not None
    assert (near.recall.estimate, near.recall.low, near.recall.high) == (0.6, 0.5, 0.7)
    assert (near.mode, near.complete, near.windows_missing, near.debt_pairs) == ("SUBSET", False, 4, None)
    assert found.warnings == (module.WarningProgress("GOAL_UNREACHABLE", "Too long.", 3),)
    assert found.summary == (
        "Batch 17: 120 rows in 0.84 s, shedding (p95 1.40 s of 2.00 s); near probes 63 % of candidate pairs; "
        "7 rows shed; 2 rows late; 1 row rejected; 4 windows missing."
    )


def test_the_parts_of_a_duration_add_up() -> None:
    took = of_batch(telemetry(), receipt(), IDENTITY).duration
    parts = took.plan_seconds + took.execute_seconds + took.sink_seconds + took.commit_seconds
    assert took.total_seconds == pytest.approx(parts) == 0.84


def test_the_end_of_a_batch_run_is_no_watermark() -> None:
    found = of_batch(telemetry(watermarks={"a": "end", "b": "end"}), receipt(), QueryIdentity())
    assert (found.inputs["a"].watermark, found.inputs["a"].watermark_lag_seconds) == (None, None)
    assert (found.query_name, found.query_id, found.run_id) == (None, None, None)


ON_TIME = LatencyProgress(2.0, 0.5, 1.9, 3.0, 0.04, "file")


def from_trigger(goal: float | None, seconds: float) -> LatencyProgress:
    overdue = None if goal is None else float(seconds > goal)
    return LatencyProgress(goal, seconds, seconds, seconds, overdue, "trigger")


QUICK = DurationProgress(0.9, 1.0, 0.1, 0.6, 0.1, 0.1)
UNBOUNDED = replace(QUICK, total_seconds=9.0, budget_seconds=None)
WHOLE = replace(OPERATOR, pairs_probed=100, probe_ratio=1.0)


@pytest.mark.parametrize(
    ("given", "health"),
    [
        ({}, "on_time"),
        ({"cold": True}, "warming_up"),
        ({"latency": replace(ON_TIME, p95_seconds=2.1)}, "overdue"),
        # A long batch whose rows are in time is in time; where latency is not measured, it is not.
        ({"duration": replace(QUICK, total_seconds=1.1)}, "on_time"),
        ({"duration": replace(QUICK, total_seconds=1.1), "latency": from_trigger(2.0, 1.1)}, "overdue"),
        ({"latency": from_trigger(2.0, 0.9)}, "on_time"),
        ({"duration": UNBOUNDED, "latency": from_trigger(None, 9.0)}, "on_time"),
        ({"operators": {"near": OPERATOR}, "cold": True}, "shedding"),
        ({"evicted": True}, "shedding"),
        ({"rows": [stream("a", 1, shed=1)]}, "shedding"),
        ({"rows": [output("near", windows_missing=1)]}, "shedding"),
        ({"rows": [output("near", repaired_pairs=5)], "cold": True}, "repairing"),
        ({"rows": [output("near", repaired_pairs=5)], "evicted": True}, "shedding"),
        ({"rows": [output("near", repaired_pairs=0, mode="SUBSET", complete=False)]}, "on_time"),
    ],
)
def test_health_is_the_first_that_holds(given: dict[str, Any], health: str) -> None:
    rows = given.get("rows", [])
    made = of_batch(telemetry(), receipt(*rows, stream("b", 3)), IDENTITY)
    found = health_of(
        given.get("latency", ON_TIME),
        given.get("duration", QUICK),
        made.inputs,
        given.get("operators", {"near": WHOLE}),
        made.outputs,
        given.get("evicted", False),
        given.get("cold", False),
    )
    assert found == health


COUNTS = st.integers(0, 10**9)


@given(st.dictionaries(st.text(min_size=1), st.tuples(COUNTS, COUNTS, COUNTS, COUNTS), min_size=1), st.data())
def test_the_ledger_balances_and_json_gives_an_equal_value(
    counts: dict[str, tuple[int, int, int, int]], data: st.DataObject
) -> None:
    seconds = st.none() | st.floats(0, 1e6)
    goal, p50, p95, most, overdue = (data.draw(seconds) for _ in range(5))
    latency = LatencyProgress(goal, p50, p95, most, overdue, "record")
    rows = [stream(name, *parts) for name, parts in counts.items()]
    found = of_batch(telemetry(), receipt(*rows, output("near"), latency=latency), IDENTITY)
    for name, parts in counts.items():
        one = found.inputs[name]
        assert (one.rows_processed, one.rows_shed, one.rows_late, one.rows_rejected) == parts
        assert one.rows_offered == sum(parts)
    assert Progress.from_dict(json.loads(found.json)) == found
    assert json.loads(found.json) == found.to_dict()
    assert "\n" not in found.json


def test_the_names_of_the_contract_are_there() -> None:
    assert [one.name for one in fields(Progress)] == [
        *("schema_version", "query_name", "query_id", "run_id", "batch_id", "started_at", "health"),
        *("summary", "latency", "duration", "inputs", "operators", "outputs", "warnings", "would_shed"),
    ]


@pytest.mark.parametrize("source", [module, receipts_module])
def test_every_public_field_is_documented(source: Any) -> None:
    lines = inspect.getsource(source).splitlines()
    undocumented = []
    for node in ast.walk(ast.parse("\n".join(lines))):
        if isinstance(node, ast.ClassDef):
            assert ast.get_docstring(node), node.name
            annotated = [one for one in node.body if isinstance(one, ast.AnnAssign)]
            bare = (one for one in annotated if not lines[one.lineno - 2].lstrip().startswith("#:"))
            undocumented += [f"{node.name}.{ast.unparse(one.target)}" for one in bare]
    assert undocumented == []


def test_the_guide_explains_every_warning_in_its_order() -> None:
    page = (Path(__file__).parents[3] / "docs/overload.md").read_text(encoding="utf-8")
    table = page.partition("| code of a warning |")[2]
    assert re.findall(r"^\| `([A-Z_]+)` \|", table, re.MULTILINE) == list(WARNING_CODES)
