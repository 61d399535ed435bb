"""Two small seeded streams on disk, and what DuckDB says their join is.

One parquet file per stream and batch. Rows come out of order, but never behind the watermark, so the exact
answer is the join of all rows. The last batch is one row per stream far in the future: it sets every row
before it free and waits, itself, for ever.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

#: Batches 0 … BATCHES - 2 hold rows, the last one the row that closes everything.
BATCHES = 7
BATCH_US, LATENESS_US, WITHIN_US = 4_000_000, 2_000_000, 5_000_000
FIRST_US = 1_700_000_000_000_000
CLOSING_US = FIRST_US + 1_000 * BATCH_US
SCHEMA = "id long, ts timestamp, k long, v double"
#: Refuses about one pair in three, so that it also makes rows lonely.
WHERE = "v + w > 0.6"


@dataclass(frozen=True)
class Size:
    """How much there is of each stream."""

    batches: int = BATCHES
    rows_per_batch: int = 80
    keys: int = 12


USUAL = Size()


@dataclass(frozen=True)
class Case:
    """One join over one set of inputs."""

    how: str
    where: str | None
    seed: int

    def arguments(self) -> list[str]:
        return ["--how", self.how, *(["--where", self.where] if self.where else [])]


def prepare(home: Path, seed: int, size: Size = USUAL) -> None:
    """Write the files of both streams under `home`, in the order in which Spark shall take them."""
    random = np.random.default_rng(seed)
    for side, value in (("left", "v"), ("right", "w")):
        folder = home / side
        folder.mkdir(parents=True)
        for batch in range(size.batches):
            path = folder / f"{batch}.parquet"
            pq.write_table(_rows(random, batch, value, size), path)
            # Spark takes older files first; files of one second would come in any order.
            os.utime(path, (1_700_000_000 + 10 * batch,) * 2)


def _rows(random: np.random.Generator, batch: int, value: str, size: Size) -> pa.Table:
    if batch == size.batches - 1:
        ids, times, keys = np.array([-1]), np.array([CLOSING_US]), np.array([-1 if value == "v" else -2])
    else:
        rows = size.rows_per_batch
        ids = np.arange(rows) + batch * rows
        # The watermark stands at or below the start of the batch less the lateness.
        offsets = random.integers(-LATENESS_US, BATCH_US, rows)
        times = FIRST_US + batch * BATCH_US + offsets
        keys = random.integers(0, size.keys, rows)
    without_key = (keys == 0) & (random.random(len(keys)) < 0.5)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "ts": pa.array(times, pa.timestamp("us", tz="UTC")),
            "k": pa.array(keys, pa.int64(), mask=without_key),
            value: pa.array(random.random(len(ids))),
        }
    )


def expected(home: Path, case: Case) -> list[tuple[Any, ...]]:
    """What the join of all rows is, by DuckDB."""
    condition = f" and {case.where}" if case.where else ""
    return _rows_of(
        f"""select l.id, r.id as id_right, l.k, epoch_us(l.ts), v, epoch_us(r.ts), w
            from '{home}/left/*.parquet' l {case.how} join '{home}/right/*.parquet' r
              on l.k = r.k and abs(epoch_us(l.ts) - epoch_us(r.ts)) <= {WITHIN_US} {condition}
            where l.id >= 0"""
    )


def written(home: Path) -> list[tuple[Any, ...]]:
    """What the runs have written, all batches together."""
    return _rows_of(
        f"""select id, id_right, k, epoch_us(ts), v, epoch_us(ts_right), w
            from read_parquet('{home}/out/*.parquet')"""
    )


def _rows_of(query: str) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        return connection.sql(f"from ({query}) order by all").fetchall()
