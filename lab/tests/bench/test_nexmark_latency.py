"""Latencies out of the logs that Spark keeps beside a query."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tidegate_lab.bench.nexmark.latency import committed_at, percentile


def log_entry(root: Path, source: int, entry: int, *files: str, ending: str = "") -> None:
    folder = root / "sources" / str(source)
    folder.mkdir(parents=True, exist_ok=True)
    lines = [
        json.dumps({"path": f"file:///in/{file}", "timestamp": 0, "batchId": entry if not ending else number})
        for number, file in enumerate(files)
    ]
    (folder / f"{entry}{ending}").write_text("\n".join(["v1", *lines]))


def log_batch(root: Path, batch: int, offsets: list[int | None], committed: float | None) -> None:
    for name in ("offsets", "commits"):
        (root / name).mkdir(parents=True, exist_ok=True)
    lines = ["-" if offset is None else json.dumps({"logOffset": offset}) for offset in offsets]
    (root / "offsets" / str(batch)).write_text("\n".join(["v1", "{}", *lines]))
    if committed is not None:
        commit = root / "commits" / str(batch)
        commit.write_text("v1\n{}")
        os.utime(commit, (committed, committed))


def test_a_file_is_done_with_the_first_committed_batch_that_read_it(tmp_path: Path) -> None:
    root = tmp_path / "spark"
    log_entry(root, 0, 0, "a")
    log_entry(root, 0, 1, "b", "c")
    log_entry(root, 0, 2, "d")
    log_batch(root, 0, [0], 10.0)
    log_batch(root, 1, [0], 11.0)
    log_batch(root, 2, [1], 12.0)
    log_batch(root, 3, [2], None)
    assert committed_at(tmp_path) == {"a": 10.0, "b": 12.0, "c": 12.0}


def test_every_source_must_have_read_the_file(tmp_path: Path) -> None:
    for source in (0, 2):
        log_entry(tmp_path, source, 0, "a")
        log_entry(tmp_path, source, 1, "b")
    # Another kind of source stands between them, as a heartbeat does.
    (tmp_path / "sources" / "1").mkdir()
    (tmp_path / "sources" / "1" / "0").write_text("v1\n1795034087199")
    log_batch(tmp_path, 0, [0, None, 0], 10.0)
    log_batch(tmp_path, 1, [1, None, 0], 11.0)
    log_batch(tmp_path, 2, [1, None, 1], 12.0)
    assert committed_at(tmp_path) == {"a": 10.0, "b": 12.0}


def test_entries_that_spark_has_gathered_are_read_too(tmp_path: Path) -> None:
    log_entry(tmp_path, 0, 1, "a", "b", ending=".compact")
    log_batch(tmp_path, 0, [0], 10.0)
    log_batch(tmp_path, 1, [1], 11.0)
    assert committed_at(tmp_path) == {"a": 10.0, "b": 11.0}


def test_without_a_checkpoint_nothing_is_done(tmp_path: Path) -> None:
    assert committed_at(tmp_path) == {}


def test_the_percentile_is_one_of_the_latencies() -> None:
    assert percentile([3.0, 1.0, 2.0, 4.0], 0.5) == 3.0
    assert percentile([float(i) for i in range(100)], 0.95) == pytest.approx(95.0)
    assert percentile([], 0.95) is None
