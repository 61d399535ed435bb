"""The rows of `tidegate bench windows`: a fixed number per batch of one second, random keys."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SCHEMA = "ts timestamp, k long, v double"
#: Files of a batch, as many as there are cores. Rows are dealt out, as to the partitions of a topic: each
#: file has all the times of its batch, so that dropped windows spare all cores alike.
FILES = 2
START_US = 1_700_000_000_000_000


@dataclass(frozen=True)
class Scenario:
    """Which windows, how many groups, how many rows a batch."""

    name: str
    size_ms: int
    slide_ms: int
    groups: int
    rows: int
    batches: int
    seed: int = 7

    @property
    def size(self) -> str:
        return f"{self.size_ms} milliseconds"

    @property
    def slide(self) -> str:
        return f"{self.slide_ms} milliseconds"

    def write(self, folder: Path) -> None:
        """The files of all batches, in the order in which they are to be read."""
        folder.mkdir(parents=True, exist_ok=True)
        for batch in range(self.batches):
            rng = np.random.default_rng([self.seed, batch])
            times = START_US + batch * 1_000_000 + np.sort(rng.integers(0, 1_000_000, self.rows))
            table = pa.table(
                {
                    "ts": pa.array(times, pa.timestamp("us", "UTC")),
                    "k": rng.integers(0, self.groups, self.rows),
                    "v": rng.random(self.rows),
                }
            )
            for number in range(FILES):
                part = table.take(np.arange(number, self.rows, FILES))
                pq.write_table(part, folder / f"{batch:03d}-{number}.parquet")
