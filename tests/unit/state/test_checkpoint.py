from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.unit.state.mutations import make, play
from tests.unit.state.samples import a_manifest, a_piece, a_plan

from tidegate.errors import CheckpointInUse, StateError
from tidegate.state.checkpoint import Checkpoint, check_flow
from tidegate.state.recovery import added_columns, check_streams
from tidegate.state.store.paths import segment_path


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    return Checkpoint(str(tmp_path / "ck"))


def segment(checkpoint: Checkpoint, batch: int) -> str:
    path = segment_path("near", batch, 0, "a")
    checkpoint.store.write(path, [b"rows"])
    return path


def test_tidegate_and_spark_lie_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for url in ("ck", "ck/", f"{tmp_path}/ck", f"file://{tmp_path}/ck"):
        checkpoint = Checkpoint(url)
        assert checkpoint.store.url == f"{tmp_path}/ck/tidegate"
        assert checkpoint.spark_path == f"file://{tmp_path}/ck/spark"
    assert Checkpoint("memory://x/ck").spark_path == "memory://x/ck/spark"


def test_segments_have_one_folder_per_operator_and_a_name_per_attempt() -> None:
    assert segment_path("near", 12, 3, "0f") == "segments/near/0000000012-3-0f.arrow"


def test_a_checkpoint_in_use_is_refused_until_it_is_closed(checkpoint: Checkpoint) -> None:
    again = Checkpoint(checkpoint.store.url.removesuffix("/tidegate"))
    checkpoint.open("first")
    with pytest.raises(CheckpointInUse, match=r"CHECKPOINT_IN_USE.*held by first"):
        again.open("second")
    checkpoint.close()
    checkpoint.close()
    again.open("second")
    again.close()


def test_nothing_is_committed_or_swept_without_the_lock(checkpoint: Checkpoint) -> None:
    path = segment(checkpoint, 0)
    with pytest.raises(CheckpointInUse, match="INTERNAL_CHECKPOINT_NOT_OPEN"):
        checkpoint.commit(a_manifest(0))
    with pytest.raises(CheckpointInUse, match="INTERNAL_CHECKPOINT_NOT_OPEN"):
        checkpoint.recover()
    assert checkpoint.store.list() == [path]


def test_a_run_goes_on_where_the_last_one_stopped(checkpoint: Checkpoint) -> None:
    checkpoint.open("first")
    assert checkpoint.recover() is None
    manifest = a_manifest(0, a_piece(segment(checkpoint, 0)))
    checkpoint.commit(manifest)
    stray = segment(checkpoint, 1)  # an attempt that failed
    checkpoint.close()
    second = Checkpoint(checkpoint.store.url.removesuffix("/tidegate"))
    second.open("second")
    assert second.recover() == manifest
    assert not second.store.exists(stray)
    second.close()


def test_a_commit_deletes_what_the_new_state_no_longer_needs(checkpoint: Checkpoint) -> None:
    checkpoint.open("first")
    old, new = segment(checkpoint, 0), segment(checkpoint, 1)
    assert checkpoint.commit(a_manifest(0, a_piece(old))) == []
    assert checkpoint.commit(a_manifest(1, a_piece(new))) == [old]
    assert checkpoint.store.list("segments") == [new]
    checkpoint.close()


def test_nothing_is_deleted_when_the_commit_fails(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint.open("first")
    old = segment(checkpoint, 0)
    checkpoint.commit(a_manifest(0, a_piece(old)))

    def full_disk(path: str, data: bytes) -> bool:
        raise OSError("no space left")

    monkeypatch.setattr(checkpoint.store, "write_new", full_disk)
    with pytest.raises(OSError, match="no space left"):
        checkpoint.commit(a_manifest(1))
    assert checkpoint.store.list("segments") == [old]
    assert checkpoint.manifests.latest_batch() == 0
    checkpoint.close()


def test_history_is_purged_on_the_way_and_a_plan_that_may_run_again_is_not(checkpoint: Checkpoint) -> None:
    checkpoint.open("first")
    for batch in range(80):
        checkpoint.plans.write(a_plan(batch + 1))
        checkpoint.telemetry.write(batch, {})
        checkpoint.commit(a_manifest(batch))
        assert checkpoint.plans.read(batch + 1) == a_plan(batch + 1)
    checkpoint.close()
    assert len(checkpoint.manifests.batches()) < 60
    assert len(checkpoint.store.list("plans")) < 20
    assert checkpoint.manifests.load_latest() == a_manifest(79)


def test_a_run_that_is_killed_anywhere_leaves_a_state_that_loads(tmp_path: Path) -> None:
    """A process commits batch after batch as fast as it can until SIGKILL; what it left must be whole."""
    program = """
import sys
from tests.unit.state.samples import a_manifest, a_piece, a_plan
from tidegate.state.checkpoint import Checkpoint
from tidegate.state.store.paths import segment_path
checkpoint = Checkpoint(sys.argv[1])
checkpoint.open("victim")
last = checkpoint.recover()
pieces = list(last.pieces) if last else []
for batch in range(last.batch + 1 if last else 0, 1_000_000):
    checkpoint.plans.write(a_plan(batch))  # refused unless a replay decides the same
    path = segment_path("near", batch, 0, "a")
    checkpoint.store.write(path, [b"rows of %d" % batch])
    pieces = [*pieces[-4:], a_piece(path)]
    checkpoint.commit(a_manifest(batch, *pieces))
    if batch % 50 == 0:
        print(batch, flush=True)
"""
    newest = -1
    for delay in (0.0, 0.003, 0.02):
        with subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path / "ck")],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.getcwd()},
        ) as child:
            assert child.stdout is not None
            reported = int(child.stdout.readline())
            time.sleep(delay)
            child.send_signal(signal.SIGKILL)
        checkpoint = Checkpoint(str(tmp_path / "ck"))
        checkpoint.open("heir")
        manifest = checkpoint.recover()
        assert manifest is not None
        assert manifest.batch >= max(reported, newest)
        newest = manifest.batch
        assert manifest == a_manifest(newest, *manifest.pieces)
        assert checkpoint.store.list("segments") == [p.data.file for p in manifest.pieces]
        assert checkpoint.store.list(temporary=True) == []
        checkpoint.close()


def test_the_same_flow_is_accepted_with_tuples_for_lists() -> None:
    check_flow({"on": ["cell"], "within": [1, 2]}, {"on": ("cell",), "within": (1, 2)})


def test_a_changed_flow_is_refused_with_path_old_and_new() -> None:
    stored = {"joins": {"near": {"on": ["cell"], "within": [1, 2], "how": "inner"}}, "gone": 1}
    current = {"joins": {"near": {"on": ["cell", "x"], "within": [1, 3], "how": "inner"}}, "fresh": None}
    with pytest.raises(StateError) as caught:
        check_flow(stored, current)
    message = str(caught.value)
    assert "joins.near.within.1: 2 → 3" in message
    assert 'joins.near.on.1: (absent) → "x"' in message
    assert "gone: 1 → (absent)" in message
    assert "fresh: (absent) → null" in message
    assert "inner" not in message
    assert "new checkpoint" in message


def test_a_part_of_another_name_is_named_without_its_description() -> None:
    one = {"on": ["cell"], "how": "inner"}
    with pytest.raises(StateError) as caught:
        check_flow({"joins": {"near": one}}, {"joins": {"close": one}})
    assert "joins.near: in the checkpoint only; joins.close: in this flow only" in str(caught.value)
    assert "inner" not in str(caught.value)


def test_operators_may_come_and_go_and_one_that_changed_needs_a_new_name() -> None:
    stored = {"partitions": 4, "operators": {"near": {"within": 1}, "busy": {"size": 5}}}
    check_flow(stored, {"partitions": 4, "operators": {"busy": {"size": 5}, "close": {"within": 2}}})
    with pytest.raises(StateError, match=r"within: 1 → 2\..*Give near a new name.*all else goes on"):
        check_flow(stored, {"partitions": 4, "operators": {"near": {"within": 2}}})
    stateless = {"partitions": 4, "operators": {}, "names": {"operators": ["near"]}}
    with pytest.raises(StateError, match=r"operators\.near: in the checkpoint only.*Give near a new name"):
        check_flow(stored, stateless)
    with pytest.raises(StateError, match=r"operators\.near: in this flow only.*Give near a new name"):
        check_flow(stateless, stored)
    with pytest.raises(StateError, match=r"partitions: 4 → 5.*Start the changed flow with a new checkpoint"):
        check_flow(stored, {"partitions": 5, "operators": {"near": {"within": 2}}})


def test_joins_and_streams_may_get_columns_and_streams_lose_them_again() -> None:
    def flow(schema: dict[str, str], output: dict[str, str], stored: list[str]) -> dict[str, Any]:
        sides = {side: {"stream": side, "columns": stored} for side in ("left", "right")}
        streams = {"left": {"time": "ts", "schema": schema}}
        return {"streams": streams, "operators": {"near": {"how": "left", **sides, "output": output}}}

    before = flow({"k": "int", "v": "int"}, {"k": "int", "v": "int"}, ["k", "v"])
    wider = flow(
        {"k": "int", "x": "string", "v": "int"}, {"k": "int", "v": "int", "x": "string"}, ["k", "v", "x"]
    )
    check_flow(before, wider)
    assert added_columns(before, wider) == {"near": ["x"]}
    assert added_columns(before, before) == {}
    check_flow(before, flow({"k": "int"}, {"k": "int", "v": "int"}, ["k", "v"]))
    with pytest.raises(StateError, match=r"operators\.near\.left\.columns\.2: \"x\" → \(absent\)"):
        check_flow(wider, before)
    # What a join does not store may go.
    text = {"k": "int", "v": "int", "note": "string"}
    check_flow(flow(text, text, ["k", "v"]), before)
    with pytest.raises(StateError, match=r'streams\.left\.schema\.v: "int" → "long"'):
        check_flow(before, flow({"k": "int", "v": "long"}, {"k": "int", "v": "int"}, ["k", "v"]))


def test_streams_that_spark_does_not_know_by_name_must_be_the_same() -> None:
    check_streams((), ())
    with pytest.raises(StateError, match=r'CHECKPOINT_STREAM_REMOVED.*Got: b\..*b\.filter\("false"\).*noop'):
        check_streams(["b"], ["c"])
    with pytest.raises(StateError, match=r'CHECKPOINT_STREAM_ADDED.*Got: c, d\..*renames={"old": "c"}'):
        check_streams([], ["c", "d"])


def test_equal_in_python_is_not_equal_in_a_flow() -> None:
    with pytest.raises(StateError, match=r"CHECKPOINT_FLOW_CHANGED.*nullable: true → 1"):
        check_flow({"nullable": True}, {"nullable": 1})


def test_a_change_of_kind_shows_the_whole_value() -> None:
    with pytest.raises(StateError, match=r'CHECKPOINT_FLOW_CHANGED.*on: "cell" → \["cell"\]'):
        check_flow({"on": "cell"}, {"on": ["cell"]})


def test_very_many_changes_are_counted() -> None:
    with pytest.raises(StateError, match=r"CHECKPOINT_FLOW_CHANGED.*and 15 more"):
        check_flow({str(i): 0 for i in range(25)}, {str(i): 1 for i in range(25)})


def test_what_failed_attempts_left_goes_while_the_query_runs(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate.state.checkpoint.SWEEP_EVERY", 10)
    checkpoint.open("test")
    checkpoint.recover()
    strays = []
    for batch in range(41):
        path = segment_path("near", batch, 0, "failed")
        checkpoint.store.write(path, [b"rows"])
        strays.append(path)
        used = segment(checkpoint, batch)
        checkpoint.commit(a_manifest(batch, a_piece(used)))
    assert checkpoint.store.list("segments") == sorted([*strays[33:], used])
    checkpoint.close()


def test_nothing_is_deleted_where_the_manifest_of_a_batch_that_spark_has_done_is_missing(
    tmp_path: Path,
) -> None:
    make(tmp_path / "ck")
    checkpoint = Checkpoint(str(tmp_path / "ck"))
    newest = tmp_path / "ck/tidegate/manifests/0000000006.json"
    segments = checkpoint.store.list("segments")
    for gone in ([newest], list(newest.parent.iterdir())):
        for file in gone:
            file.rename(tmp_path / file.name)
        checkpoint.open("heir")
        with pytest.raises(StateError, match=r"CHECKPOINT_MANIFEST_MISSING.*Spark batch 6 is missing"):
            checkpoint.recover()
        checkpoint.close()
        assert checkpoint.store.list("segments") == segments
        for file in gone:
            (tmp_path / file.name).rename(file)
    assert play(tmp_path / "ck").after.batch == 7


def test_what_goes_along_for_operators_behind_may_come_and_go() -> None:
    def flow(output: str) -> dict[str, Any]:
        return {"operators": {"busy": {"output": f"struct<k:int,{output}_tidegate_report:string>"}}}

    check_flow(flow("n:bigint,"), flow("n:bigint,_tidegate_time:bigint,"))
    check_flow(flow("n:bigint,_tidegate_time:bigint,"), flow("n:bigint,"))
    with pytest.raises(StateError, match=r"CHECKPOINT_FLOW_CHANGED.*operators\.busy\.output"):
        check_flow(flow("n:bigint,"), flow("n:double,_tidegate_time:bigint,"))
