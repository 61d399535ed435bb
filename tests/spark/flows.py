"""What tests of whole flows share: streams out of files, sinks that remember, results that compare."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from tidegate.api.nodes import Output
from tidegate.api.start import StartOptions
from tidegate.driver.start import run_flow
from tidegate.driver.streaming_query import StreamingQuery

#: Seconds that a query of a few small batches may take before a test gives up on it.
PATIENCE_SECONDS = 300
EPOCH_US = 1_700_000_000_000_000


class Sink:
    """A function sink that keeps every row, with the batch it came in."""

    def __init__(self, name: str = "sink"):
        self.__name__ = name
        self.batches: dict[int, list[tuple[Any, ...]]] = {}
        self.columns: list[str] = []

    def __call__(self, frame: DataFrame, batch: int) -> None:
        self.columns = frame.columns
        self.batches[batch] = [tuple(row) for row in frame.collect()]

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        return [row for rows in self.batches.values() for row in rows]

    @property
    def counted(self) -> Counter[str]:
        return counted(self.rows)


def counted(rows: Iterable[Sequence[Any]]) -> Counter[str]:
    """A multiset of rows. By their text, in which NaN equals NaN and -0.0 is not 0.0."""
    return Counter(repr(tuple(row)) for row in rows)


def add_files(folder: Path, tables: Iterable[pa.Table]) -> None:
    """One parquet file per table, to be read in this order."""
    folder.mkdir(parents=True, exist_ok=True)
    first = len(list(folder.glob("*.parquet")))
    for number, table in enumerate(tables, start=first):
        # The file source goes by time of modification; a file must not be seen before it is whole.
        part = folder / f"_{number:04d}"
        pq.write_table(table, part)
        os.utime(part, (EPOCH_US // 10**6 + number, EPOCH_US // 10**6 + number))
        part.rename(folder / f"{number:04d}.parquet")


def read_files(spark: SparkSession, folder: Path, schema: str, per_batch: int = 1) -> DataFrame:
    """The files of a folder as a stream, so many in each batch."""
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", per_batch)
    return reader.parquet(str(folder))


def start_bounded(*outputs: Output, **settings: Any) -> StreamingQuery:
    """Run over what is available now under a goal, batch by batch.

    `tg.start` refuses the two together; tests of shedding need a goal and an input that ends.
    """
    if "checkpoint" in settings:
        settings["checkpoint"] = str(settings["checkpoint"])
    return run_flow(outputs, StartOptions(available_now=True, **settings))


def seconds(value: float) -> int:
    """A time in microseconds, so many seconds after the start of all test data."""
    return EPOCH_US + round(value * 10**6)


def stream_table(rows: Sequence[tuple[int | None, int | None, int, int]]) -> pa.Table:
    """Rows (time in microseconds, k, n, v) as a file of a test stream has them."""
    columns = list(zip(*rows, strict=True)) or [(), (), (), ()]
    return pa.table(
        {
            "ts": pa.array(columns[0], pa.timestamp("us", tz="UTC")),
            "k": pa.array(columns[1], pa.int64()),
            "n": pa.array(columns[2], pa.int64()),
            "v": pa.array(columns[3], pa.int64()),
        }
    )


STREAM_SCHEMA = "ts timestamp, k long, n long, v long"
