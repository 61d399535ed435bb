from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tidegate.cli.inspect import read_contents
from tidegate.cli.main import main
from tidegate.errors import StateError
from tidegate.model.manifest import Manifest, StreamClock
from tidegate.model.pieces import ByteRange, Piece
from tidegate.model.plan import LateRows, Plan, Rewrites
from tidegate.model.routing import together
from tidegate.state.checkpoint import Checkpoint
from tidegate.state.manifest_log import ManifestLog
from tidegate.state.plan_log import PlanLog

ROUTING = {"near": together(0, 2, (0, 1, 0, 1))}


def piece(batch: int) -> Piece:
    return Piece(
        operator="near",
        side=batch % 2,
        slot=batch,
        level=0,
        rows=1000 + batch,
        first_us=batch,
        last_us=batch + 1,
        batches=(batch, batch),
        keyless=False,
        partitions=(0,),
        bounds=(0, 1000 + batch),
        data=ByteRange(f"segments/near/{batch:010d}-0-a.arrow", 0, 2048, "aa"),
    )


def plan(batch: int) -> Plan:
    merges = {"near": {"0": (("a@0", "b@0"), ("c@0", "d@0")), "1": (("a@0", "b@0"),)}}
    return Plan(
        batch, 1_741_021_200_000_000, LateRows({"orders": 0}), {"near": 0}, ROUTING, Rewrites(merges), seed=11
    )


def manifest(batch: int) -> Manifest:
    return Manifest(
        batch=batch,
        flow={"keys": ["cell"]},
        clocks={"orders": StreamClock(1_741_021_231_000_000, 1_741_021_229_500_000, 1_741_021_300_000_000)},
        settled_us={"near": 0},
        routing=ROUTING,
        pieces=tuple(piece(b) for b in range(batch + 1)),
    )


def progress(batch: int) -> dict[str, Any]:
    return {
        "batch": batch,
        "duration_seconds": 0.25 + batch,
        "input_rows": 10_000,
        "emitted": {"near": 600, "busy": 1},
        "state_rows": 3003,
        "state_bytes": 6144,
        "watermarks": {"orders": None},
        "late": {"orders": 4},
        "rejected": {"orders": 0},
        "timings": {},
        "operators": [],
        "shed": {"near": {"windows": [{"in_reach": 300, "skipped": 60}, {"in_reach": 100, "skipped": 40}]}},
    }


def receipt(batch: int) -> dict[str, Any]:
    counts = {"offered": 10, "processed": 7, "shed": 1, "late": 2, "rejected": 0}
    ledger = {f"rows_{of}": rows for of, rows in counts.items()} | {"complete": False}
    shed = {"shed_reasons": {"random_drop": 1}, "rows_filtered": 0, "rows_unexplained": 0}
    stream = {"kind": "stream", "name": "orders", "mode": "SUBSET", **ledger, **shed}
    output = {"kind": "output", "name": "near", "mode": "SUBSET", **ledger, **shed, "rows_written": 600}
    recall = {"recall": 0.5, "recall_low": 0.4, "recall_high": 0.6, "loss_reasons": ["skipped_pairs"]}
    estimate = {"found": 5.0, "certain": 5.0, "others": 5.0, "variance": 1.0, "freedom": 15.0, "unseen": 99.0}
    windows = {"missing_windows": [], "windows_missing": 0, "loss_ratio": 0.5}
    rows = [stream, {**output, **recall, **windows, "estimate": estimate}]
    return {"batch_id": batch, "started_at": "2025-03-03T17:00:00+00:00", "latency": None, "rows": rows}


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """Three batches done, the fourth planned; the query that writes it is still running."""
    kept = Checkpoint(str(tmp_path / "ck"))
    kept.open("a test")
    for batch in range(4):
        kept.plans.write(plan(batch))
        if batch < 3:
            kept.telemetry.write(batch, progress(batch))
            kept.receipts.write(receipt(batch))
            kept.commit(manifest(batch))
    return tmp_path / "ck"


def files(root: Path) -> dict[str, float]:
    return {str(path): path.stat().st_mtime_ns for path in root.rglob("*")}


def test_tables_name_what_is_there(checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(checkpoint)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    for fact in (
        "last batch done 2",
        "batch planned, not done 3",
        "manifests kept 0 to 2 (3)",
        "state rows 3,003 state size 6.1 kB",
        "orders 2025-03-03 17:00:31.000 2025-03-03 17:00:29.500",
        "near left 0 1970-01-01 00:00:00.000 1970-01-01 00:00:00.000 1 1,000 0 2.0 kB",
        "3 2025-03-03 17:00:00.000 3 no 11",
        "2 2.25 s 10,000 601 3,003 6.1 kB 4 0 25.0%",
        "2 stream orders SUBSET 10 7 1 2 0 - - -",
        "1 output near SUBSET 10 7 1 2 0 600 50.0% (40.0% to 60.0%) skipped_pairs",
        "0 to 2 stream orders SUBSET 30 21 3 6 0 - - -",
        "0 to 2 output near SUBSET 30 21 3 6 0 1,800 50.0% (",
    ):
        assert fact in text


def test_json_has_the_frame_and_all_kinds_of_lines(
    checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", str(checkpoint), "--json"]) == 0
    frame = json.loads(capsys.readouterr().out)
    assert (frame["command"], frame["seed"], frame["bars"]) == ("inspect", 11, [])
    assert {row["kind"] for row in frame["rows"]} == {
        "checkpoint",
        "stream",
        "routing",
        "segments",
        "plan",
        "telemetry",
        "receipt",
        "receipts",
    }


def test_receipts_and_load_are_told_by_hour_and_from_a_time_on(
    checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = Checkpoint(str(checkpoint)).receipts
    for batch, at in ((3, "17:59:59"), (4, "18:00:00"), (5, "18:59:30")):
        load = {"duration_seconds": 1.5 * batch, "state_rows": 7, "state_bytes": 1000 * batch}
        log.write({**receipt(batch), "started_at": f"2025-03-03T{at}+00:00", "load": load})
    assert main(["inspect", str(checkpoint), "--by", "hour"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    for fact in (
        "2025-03-03 17:00:00.000 0 to 3 stream orders SUBSET 40 28 4 8 0",
        "2025-03-03 18:00:00.000 4 to 5 output near SUBSET 20 14 2 4 0 1,200",
        "2025-03-03 18:00:00.000 2 6.75 s 7.50 s 7 5.0 kB 5.0 kB",
    ):
        assert fact in text
    asked = ["inspect", str(checkpoint), "--by", "hour", "--since", "2025-03-03T18:00:00Z", "--json"]
    assert main(asked) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    hours = [row["hour"] for row in rows if row["kind"] == "receipts"]
    assert [(one["name"], one["first_batch_id"], one["rows_offered"]) for one in hours] == [
        ("orders", 4, 20),
        ("near", 4, 20),
    ]
    assert [row["batches"] for row in rows if row["kind"] == "load"] == [2]


def test_a_receipt_file_that_was_deleted_is_missed(
    checkpoint: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    (checkpoint / "receipts" / "0000000000.json").unlink()
    assert main(["inspect", str(checkpoint)]) == 0
    assert "The receipts of 3 of the batches 0 to 2 are missing" in caplog.text


def test_only_the_last_batches_are_told(checkpoint: Path) -> None:
    assert list(read_contents(str(checkpoint), last=2).telemetry) == [1, 2]


def test_a_running_query_is_looked_at_without_a_trace(checkpoint: Path) -> None:
    before = files(checkpoint)
    read_contents(str(checkpoint), last=10)
    assert files(checkpoint) == before


def test_a_query_without_a_finished_batch_is_a_checkpoint_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Checkpoint(str(tmp_path)).plans.write(plan(0))
    assert main(["inspect", str(tmp_path)]) == 0
    assert "none yet" in capsys.readouterr().out


@pytest.mark.parametrize("there", [True, False])
def test_any_other_place_is_refused(there: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "elsewhere"
    if there:
        (place / "data").mkdir(parents=True)
        (place / "data" / "part-0.parquet").touch()
    assert main(["inspect", str(place)]) == 2
    assert capsys.readouterr().err.startswith(
        f"tidegate inspect: [CHECKPOINT_NOT_FOUND] There is no Tidegate checkpoint here. Got: {place}."
    )
    assert place.exists() == there


def test_a_damaged_manifest_is_an_error_with_its_name(checkpoint: Path) -> None:
    path = checkpoint / "tidegate" / "manifests" / "0000000002.json"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(StateError, match=r"CHECKPOINT_FILE_DAMAGED.*0000000002"):
        read_contents(str(checkpoint), last=10)


def test_a_damaged_plan_is_an_error_with_its_name(checkpoint: Path) -> None:
    path = checkpoint / "tidegate" / "plans" / "0000000001.json"
    path.write_bytes(b"{}")
    with pytest.raises(StateError, match=r"CHECKPOINT_FILE_DAMAGED.*0000000001"):
        read_contents(str(checkpoint), last=10)


def test_a_plan_that_is_purged_meanwhile_is_left_out(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = PlanLog.read

    def purged_first(log: PlanLog, batch: int) -> Plan | None:
        path = checkpoint / "tidegate" / "plans" / "0000000001.json"
        if batch == 1 and path.exists():
            path.unlink()
            raise StateError("gone", code="CHECKPOINT_FILE_MISSING")
        return read(log, batch)

    monkeypatch.setattr(PlanLog, "read", purged_first)
    assert [found.batch for found in read_contents(str(checkpoint), last=10).plans] == [0, 2, 3]


def test_a_manifest_that_is_purged_meanwhile_gives_way_to_the_newest(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = ManifestLog.load

    def overtaken(log: ManifestLog, batch: int) -> Manifest:
        if batch == 2:
            writer = ManifestLog(log._store)
            writer.commit(manifest(3))
            raise StateError("gone", code="CHECKPOINT_FILE_MISSING")
        return load(log, batch)

    monkeypatch.setattr(ManifestLog, "load", overtaken)
    found = read_contents(str(checkpoint), last=10).manifest
    assert found is not None
    assert found.batch == 3
