"""The rows of an overloaded join as arriving files: the selective join paper's workload, with a burst.

rows/s  ▲            ┌──────────────────────  burst: several times the work that fits
        │ steady     │                        (the work of a join grows with the square of the rate)
        └────────────┴─────────────────────▶
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from tidegate_lab.workloads.selective_join import Rows, Steps, Workload, draw, single_values

STREAMS = ("left", "right")
SCHEMA = "ts timestamp, n long, item int, items array<int>"
#: Event times begin here; what counts is when a file arrives.
BASE_US = 1_700_000_000_000_000
TICK_SECONDS = 0.5


@dataclass(frozen=True)
class Story:
    """How many rows a second each stream has, and for how long."""

    calm_rate: float
    rush_rate: float
    calm_seconds: float
    rush_seconds: float
    skew: float = 0.8
    seed: int = 7
    #: How rows are joined (`run.CONDITIONS`); and whether matches depend on the time between rows.
    join: str = "overlap"
    correlated: bool = True

    @property
    def rate(self) -> Steps:
        return Steps(((self.calm_seconds, self.calm_rate), (self.rush_seconds, self.rush_rate)))


@dataclass(frozen=True)
class Feed:
    """The files of a story, not yet arrived."""

    root: Path
    ticks: int
    #: Rows of the left stream per tick; the right one has about as many.
    rows: NDArray[np.int64] = field(repr=False)

    def files(self, tick: int) -> list[tuple[Path, Path]]:
        name = f"{tick:05d}.parquet"
        return [(self.root / "waiting" / stream / name, self.root / stream / name) for stream in STREAMS]


def prepare(story: Story, root: Path) -> Feed:
    """Write one file per stream and tick into `root/waiting`."""
    ticks = round(story.rate.seconds / TICK_SECONDS)
    counts = np.zeros(ticks, np.int64)
    for stream, rows in zip(STREAMS, draw(_workload(story), (story.rate, story.rate)), strict=True):
        (root / "waiting" / stream).mkdir(parents=True)
        (root / stream).mkdir()
        edges = np.searchsorted(rows.times_us, (np.arange(ticks + 1) * TICK_SECONDS * 1e6).astype(np.int64))
        edges[-1] = rows.times_us.size
        for tick in range(ticks):
            table = _table(rows, int(edges[tick]), int(edges[tick + 1]))
            pq.write_table(table, root / "waiting" / stream / f"{tick:05d}.parquet")
        if stream == STREAMS[0]:
            counts = np.diff(edges)
    return Feed(root, ticks, counts)


def _workload(story: Story) -> Workload:
    single = story.join in ("equality", "pairwise")
    workload = single_values(skew=story.skew, seed=story.seed) if single else Workload()
    # Without correlation, what is popular stays so for the whole story.
    period = workload.period_seconds if story.correlated else 1e9
    shift = workload.shift_seconds if story.correlated else Steps(((1.0, 0.0),))
    return replace(workload, skew=story.skew, seed=story.seed, period_seconds=period, shift_seconds=shift)


def _table(rows: Rows, begin: int, end: int) -> pa.Table:
    bounds = rows.bounds[begin : end + 1]
    items = pa.array(rows.items[bounds[0] : bounds[-1]].astype(np.int32))
    return pa.table(
        {
            "ts": pa.array(BASE_US + rows.times_us[begin:end], pa.timestamp("us", tz="UTC")),
            "n": pa.array(np.arange(begin, end)),
            "item": pa.array(items.to_numpy()[bounds[:-1] - bounds[0]]),
            "items": pa.ListArray.from_arrays(pa.array((bounds - bounds[0]).astype(np.int32)), items),
        }
    )
