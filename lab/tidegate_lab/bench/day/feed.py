"""A scripted day as arriving files: one stream each, several files per tick if there are many rows.

A file has at most the rows of a tick of steady load, so that a limit of files per batch works as a limit of
rows. All files are written before the first one arrives and are put back after each contender, so every
contender gets the same day.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from tidegate_lab.workloads.day import TICK_SECONDS, Day, Stream, streams_of

STREAMS = ("left", "right")
#: What an engine with sets reads, and what one without.
SETS = "ts timestamp, k int, n long, tick int, items array<int>"
BITS = "ts timestamp, k int, n long, tick int, bits long"
#: Event times begin here; what counts is when a file arrives.
BASE_US = 1_700_000_000_000_000


@dataclass(frozen=True)
class Feed:
    """The files of a day, not yet arrived."""

    root: Path
    day: Day
    #: Left rows by tick; the right stream has as many.
    rows: NDArray[np.int64] = field(repr=False)

    @property
    def ticks(self) -> int:
        return self.day.ticks

    @property
    def file_rows(self) -> int:
        return max(1, ceil(self.day.calm_rate * TICK_SECONDS))

    def files(self, tick: int) -> list[tuple[Path, Path]]:
        count = ceil(int(self.rows[tick]) / self.file_rows)
        names = [f"{tick:05d}-{part:03d}.parquet" for part in range(count)]
        return [(self.root / "waiting" / s / name, self.root / s / name) for s in STREAMS for name in names]

    def put_back(self) -> None:
        """As if nothing had arrived."""
        for tick in range(self.ticks):
            for waiting, arrived in self.files(tick):
                if arrived.exists():
                    arrived.rename(waiting)


def prepare(day: Day, root: Path) -> Feed:
    """Write the files of all ticks into `root/waiting`."""
    streams = streams_of(day)
    rows = np.bincount(streams[0].tick, minlength=day.ticks)
    feed = Feed(root, day, rows)
    for name, stream in zip(STREAMS, streams, strict=True):
        (root / "waiting" / name).mkdir(parents=True)
        (root / name).mkdir()
        table, begin = _table(stream), 0
        for tick in range(day.ticks):
            paths = [waiting for waiting, _ in feed.files(tick) if waiting.parent.name == name]
            for part, path in enumerate(paths):
                first = begin + part * feed.file_rows
                last = min(begin + int(rows[tick]), first + feed.file_rows)
                pq.write_table(table.slice(first, last - first), path)
            begin += int(rows[tick])
    return feed


def _table(stream: Stream) -> pa.Table:
    items = pa.array(stream.rows.items.astype(np.int32))
    return pa.table(
        {
            "ts": pa.array(BASE_US + stream.times_us, pa.timestamp("us", tz="UTC")),
            "k": stream.key,
            "n": np.arange(stream.key.size),
            "tick": stream.tick,
            "items": pa.ListArray.from_arrays(pa.array(stream.rows.bounds.astype(np.int32)), items),
            "bits": stream.bits.view(np.int64),
        }
    )
