"""Spark's Java process is killed under queries: each ends with one error and lets its checkpoint go."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.spark.lost_jvm import PATIENCE_SECONDS

#: What a handle says afterwards: a value, or the code of what it raises.
SAYS = {
    "await_termination": "JAVA_PROCESS_LOST",
    "exception": "JAVA_PROCESS_LOST",
    "process_all_available": "JAVA_PROCESS_LOST",
    "is_active": "False",
    "explain": "None",
    "stop": "None",
    "resume": "None",
    "lock": "None",
    "pause": "PAUSE_NOT_RUNNING",
    "rescale": "RESCALE_NOT_RUNNING",
}


@pytest.mark.parametrize(
    "stories",
    [
        ("match_between", "join_sinking", "match_busy", "join_paused"),
        pytest.param(("join_between", "match_sinking", "join_busy", "match_paused"), marks=pytest.mark.soak),
    ],
    ids=lambda stories: stories[0],
)
def test_a_lost_java_process_ends_every_query_with_one_error_and_a_free_checkpoint(
    tmp_path: Path, stories: tuple[str, ...]
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.lost_jvm", str(tmp_path), *stories],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert "Exception in thread" not in done.stderr, done.stderr
    for story in stories:
        found = told["outcomes"][story]
        assert {name: found[name] for name in SAYS} == SAYS, story
        assert found["seconds"] < PATIENCE_SECONDS
        assert "Spark's Java process has ended" in found["message"]
        assert "Spark's Java process has ended" in found["status"]
        assert found["id"] != found["run_id"]
        assert {len(found["id"]), len(found["run_id"])} == {36}, found["id"]
        assert found["last_progress"].startswith("Progress(")
        assert "EXACT" in found["receipts"]
        assert found["explain_shedding"].endswith("everything is processed.")
        assert found["repr"].startswith(f"<tidegate.StreamingQuery {story}: failed")
        assert "Error" not in told["during"][story].partition(":")[0]
