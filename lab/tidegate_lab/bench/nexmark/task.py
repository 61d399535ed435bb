"""What a contender is asked to do, and what it answers; both travel as lines of JSON.

{"event": "ready"}                            once, when it can be asked
{"event": "done", …}                          an answer: what `play.py` or `sustain.py` measured
{"event": "died", "why": …}                   the query failed, or the process ended
{"event": "absent", "why": …}                 instead of ready: its package is not there
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

OURS, MEMORY, ROCKSDB = "tidegate", "spark-memory", "spark-rocksdb"
FLINK, FLINK_CHECKPOINTS = "flink", "flink-checkpoints"
ON_SPARK = (OURS, MEMORY, ROCKSDB)
SPARKS = (MEMORY, ROCKSDB)
FLINKS = (FLINK, FLINK_CHECKPOINTS)
CONTENDERS = (*ON_SPARK, *FLINKS)
#: Tasks at a time, and so also shuffle partitions, of every contender.
CORES = 2
Answer = dict[str, Any]


@dataclass(frozen=True)
class Pace:
    """How files are published in the sustained mode."""

    #: Events a second, over all files.
    rate: float
    file_events: int
    #: Latencies count from here on, and for so long.
    warmup_seconds: float
    seconds: float
    trigger: str
    #: A run whose oldest file waits longer than this has lost.
    give_up_seconds: float

    @property
    def files(self) -> int:
        """Files of the whole run, the first one included, which only starts the query."""
        return 1 + int((self.warmup_seconds + self.seconds) * self.rate / self.file_events)


@dataclass(frozen=True)
class Task:
    """One query, run once by one contender."""

    contender: str
    query: str
    #: The folder with the files of events; never written to by a contender, except for their times.
    events: str
    #: The contender's own: results in `out`, checkpoint, inbox.
    work: str
    #: Whether results are written as files, or computed and forgotten.
    keep: bool = True
    pace: Pace | None = None

    def to_line(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def of_line(cls, line: str) -> Task:
        fields = json.loads(line)
        pace = fields.pop("pace")
        return cls(**fields, pace=None if pace is None else Pace(**pace))
