"""A task takes the memory of its room, not that of its partition; and a worker knows what it has."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tidegate.worker.runtime import memory, portions
from tidegate.worker.runtime.memory import MemoryMeter, anonymous_bytes, room_bytes

ROWS = 50_000


def ran(kind: str, rows: int) -> tuple[int, int, int]:
    """Rows that came out, peak of anonymous memory and bytes received, of a task in a process of its own."""
    command = [sys.executable, "-m", "tests.unit.worker.runtime.large_task", kind, str(rows)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    emitted, peak, received = map(int, done.stdout.split())
    return emitted, peak, received


@pytest.mark.parametrize(("kind", "pairs"), [("join", 3), ("window", 1)])
def test_ten_times_the_rows_take_the_same_memory(kind: str, pairs: int) -> None:
    (few, small, _), (many, large, received) = ran(kind, ROWS), ran(kind, 10 * ROWS)
    keys = 10_007 if kind == "join" else 0
    assert (few, many) == tuple(pairs * rows - 2 * keys for rows in (ROWS, 10 * ROWS))
    assert received > 10 * (2 << 20)
    assert large <= 1.2 * small


def test_rows_beyond_two_rooms_are_not_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portions, "room_bytes", lambda: 1 << 20)

    def received(count: int) -> list[pa.RecordBatch]:
        parts = (np.arange(n << 16, (n + 1) << 16) for n in range(count))
        return portions.held(pa.record_batch({"x": part}) for part in parts)

    received(32)
    before = anonymous_bytes()
    found = received(256)
    assert sum(batch.nbytes for batch in found) == 128 << 20
    assert anonymous_bytes() - before < 16 << 20
    assert found[-1].column(0)[-1].as_py() == (256 << 16) - 1


def test_a_room_is_a_part_of_the_memory_of_a_core(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(memory, "_LIMITS", (str(limit), str(tmp_path / "none")))
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    rooms = {}
    for text in (str(1 << 30), str(1 << 20), "max"):
        limit.write_text(text)
        room_bytes.cache_clear()
        rooms[text] = room_bytes()
    room_bytes.cache_clear()
    assert rooms[str(1 << 30)] == (1 << 30) // 4 // 32
    assert rooms[str(1 << 20)] == 1 << 20, "enough to make progress"
    assert 0 < rooms["max"] <= 64 << 20


def test_memory_is_measured_where_it_is_in_use() -> None:
    meter = MemoryMeter()
    block = bytearray(64 << 20)
    meter.sample()
    used = anonymous_bytes()
    del block
    assert meter.measured.peak_bytes >= used
    assert used - anonymous_bytes() > 32 << 20
