"""`tidegate bench join` as a user runs it, at sizes that only show that it works."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tidegate.cli.main import main
from tidegate_lab.bench.join import process
from tidegate_lab.bench.join.process import Outcome, resident_bytes, run_contender
from tidegate_lab.bench.join.spec import Task
from tidegate_lab.workloads.join_data import JoinData, write

TINY = shlex.split(
    "--rows-per-batch 200 --keys 20 --window 1 --batches 2 --warmup 1 --rounds 1 --heap 1g --heap-ours 1g"
)
Runner = Callable[[Task, float, str], Outcome]


def bench(*arguments: str, json_file: Path) -> int:
    return main(
        ["bench", "join", *TINY, "--temp", str(json_file.parent), "--json", str(json_file), *arguments]
    )


def instead(monkeypatch: pytest.MonkeyPatch, engine: str, runner: Runner) -> None:
    """Let `runner` take the place of one engine's process."""

    def chosen(task: Task, timeout_seconds: float, python: str) -> Outcome:
        return (runner if task.engine == engine else run_contender)(task, timeout_seconds, python)

    monkeypatch.setattr(process, "run_contender", chosen)


def as_duckdb(task: Task, timeout_seconds: float, python: str) -> Outcome:
    return replace(run_contender(replace(task, engine="duckdb"), timeout_seconds, python), engine=task.engine)


@pytest.mark.soak
def test_all_engines_on_spark_agree_with_duckdb_and_are_measured(tmp_path: Path) -> None:
    engines = "tidegate,spark-memory,spark-rocksdb-2,spark-rocksdb-4,floor,duckdb"
    assert bench("--engines", engines, "--row-bytes", "60", json_file=tmp_path / "bench.json") == 0
    frame = json.loads((tmp_path / "bench.json").read_text())
    assert frame["command"] == "bench join"
    rows = {row["engine"]: row for row in frame["rows"]}
    assert set(rows) == set(engines.split(","))
    joining = [row for engine, row in rows.items() if engine != "floor"]
    assert len({(row["pairs"], row["checksum"]) for row in joining}) == 1
    assert rows["duckdb"]["pairs"] > 100
    for engine in engines.split(",")[:5]:
        row = rows[engine]
        assert row["died"] is None
        assert row["rows_per_second"] > 0
        assert row["peak_memory_bytes"] > 50_000_000
        assert len(row["samples"]["batch_seconds"][0]) == 2
    for engine in engines.split(",")[:4]:
        assert rows[engine]["state_bytes_per_row"] > 20
    assert [path.name for path in tmp_path.iterdir()] == ["bench.json"]


def test_the_command_fails_when_an_engine_gives_another_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def tampered(task: Task, timeout_seconds: float, python: str) -> Outcome:
        outcome = as_duckdb(task, timeout_seconds, python)
        done = {**outcome.done, "checksum": outcome.done["checksum"] + 1, "batches": [{"seconds": 1.0}] * 9}
        return replace(outcome, done=done)

    instead(monkeypatch, "spark-memory", tampered)
    code = bench("--engines", "spark-memory,duckdb", json_file=tmp_path / "bench.json")
    assert code == 1
    assert "FAILED: default: different results" in capsys.readouterr().out


def test_a_contender_that_dies_is_tried_with_fewer_rows_until_it_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def frail(task: Task, timeout_seconds: float, python: str) -> Outcome:
        if task.rows_per_batch > 50:
            return Outcome(task.engine, "java.lang.OutOfMemoryError", (), 1.0, 1)
        outcome = as_duckdb(task, timeout_seconds, python)
        return replace(outcome, done={**outcome.done, "batches": [{"seconds": 1.0}] * task.batches})

    instead(monkeypatch, "spark-memory", frail)
    assert bench("--engines", "spark-memory,duckdb", json_file=tmp_path / "bench.json") == 0
    rows = json.loads((tmp_path / "bench.json").read_text())["rows"]
    found = [(row["engine"], row["rows_per_batch"], row["died"]) for row in rows]
    assert found == [
        ("spark-memory", 200, "java.lang.OutOfMemoryError"),
        ("spark-memory", 50, None),
        ("duckdb", 200, None),
    ]
    assert "did not survive: java.lang.OutOfMemoryError" in capsys.readouterr().out


def test_a_contender_that_takes_too_long_is_ended_with_all_its_processes(tmp_path: Path) -> None:
    data = JoinData(rows_per_batch=20, batches=2, keys=3)
    list(write(data, tmp_path / "data"))
    task = Task("spark-memory", str(tmp_path / "data"), str(tmp_path / "work"), 2, 20, 0, 1000, 0, "1g")
    seen: set[int] = set()
    original = process.end_session

    def noting(session: int) -> None:
        seen.add(session)
        assert resident_bytes(session)
        original(session)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process, "end_session", noting)
        outcome = run_contender(task, timeout_seconds=1.5)
    assert outcome.died == "not done after 2 s"
    assert len(seen) == 1
    time.sleep(0.1)
    assert resident_bytes(seen.pop()) == {}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--engines", "spark-memory,oracle"], "Unknown engine. Got: oracle. Use some of tidegate"),
        (["--engines", "flink"], "flink needs an interpreter of its own. Give --flink-python PATH"),
    ],
)
def test_an_engine_that_cannot_be_run_is_refused_before_anything_starts(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench(*arguments, json_file=tmp_path / "bench.json") == 2
    assert message in capsys.readouterr().err


def test_an_interpreter_without_the_package_makes_the_engine_absent(tmp_path: Path) -> None:
    engines = ["--engines", "pathway,flink,duckdb"]
    pythons = ["--pathway-python", sys.executable, "--flink-python", sys.executable]
    assert bench(*engines, *pythons, json_file=tmp_path / "bench.json") == 0
    rows = json.loads((tmp_path / "bench.json").read_text())["rows"]
    assert {row["engine"]: row["absent"] for row in rows} == {"flink": True, "pathway": True, "duckdb": False}
