"""The messages between `tidegate bench join` and the processes of its contenders.

A contender gets one `Task`, as JSON in a file, and answers in a file of events, one JSON object per line,
written as they happen, so that the results of a contender that dies are kept.

    {"event": "batch", …}     after each batch: garbage collector pauses, and memory if watched
    {"event": "done", …}      after the last: per-batch times as the engine itself reports them, totals
    {"event": "absent", …}    the engine's package cannot be imported
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

#: Engines that run micro-batches and report a time for each.
STREAMING = ("tidegate", "spark-memory", "spark-rocksdb-2", "spark-rocksdb-4", "floor")
#: Engines that take all the data at once and report one time.
WHOLE = ("duckdb", "flink", "pathway")
ENGINES = STREAMING + WHOLE
#: Spark's own engines keep their state in (or beside) the heap of the one Java process, so they get most of
#: the machine; this engine and the floor keep rows outside of it.
HEAP_OTHERS = "14g"
HEAP_OURS = "4g"
#: Tasks that run at the same time, and therefore also the shuffle partitions of every Spark contender.
CORES = 2


@dataclass(frozen=True)
class Task:
    """One run of one contender over `batches` files of each stream."""

    engine: str
    #: Holds `left/` and `right/`, one file a batch; never written to by a contender.
    data: str
    #: The contender's own: checkpoint, shuffle files, logs.
    work: str
    batches: int
    #: Rows of both streams in one batch.
    rows_per_batch: int
    #: The first batches, which fill the window and warm the compilers: run, checked, but not timed.
    warmup: int
    window_ms: int
    payload_bytes: int
    heap: str
    cores: int = CORES
    #: Also note live heap, process sizes and state on disk after each batch (costs time: not for speed runs).
    watch: bool = False
    #: SQL of a pair's checksum over the columns k, a, b, lms, rms (and pa, pb), for engines elsewhere.
    checksum: str = ""
    seed: int = 7

    def save(self) -> Path:
        path = Path(self.work) / "task.json"
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")
        return path

    @classmethod
    def load(cls, path: str) -> Task:
        return cls(**json.loads(Path(path).read_text(encoding="utf-8")))

    @property
    def events(self) -> Path:
        return Path(self.work) / "events.jsonl"


class EventLog:
    """Appends events; each is on disk when `write` returns."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")

    def write(self, event: str, **fields: Any) -> None:
        self._file.write(json.dumps({"event": event, **fields}) + "\n")
        self._file.flush()


def read_events(path: Path) -> Iterator[Mapping[str, Any]]:
    """The events so far; a line that a dying process left half written is skipped."""
    if not path.exists():
        return
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            yield json.loads(line)
        except json.JSONDecodeError:
            continue
