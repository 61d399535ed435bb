"""Weights of files in the latency: by the bytes that Spark listed, however their paths are written."""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JError

from tidegate.control.latency import Availability
from tidegate.driver.io.availability import _by_source, _RunningBatch, sizes_in, weights_of
from tidegate.driver.io.file_log import FileLog, LoggedFile

LISTED = "\n".join(
    f"LocatedFileStatus{{path={path}; isDirectory=false; length={size}; replication=1; blocksize=1}}"
    for path, size in [("file:/in dir/a, b.parquet", 300), ("s3a://bucket/c%2541.parquet", 7)]
)


def test_the_paths_of_the_log_are_those_of_the_list() -> None:
    files = [LoggedFile("file:///in%20dir/a,%20b.parquet", 0), LoggedFile("s3a://bucket/c%252541.parquet", 0)]
    assert weights_of(files, sizes_in(LISTED)) == (300.0, 7.0)


def test_a_file_of_unknown_size_counts_as_the_mean_of_the_others() -> None:
    files = [LoggedFile("file:///in%20dir/a,%20b.parquet", 0), LoggedFile("file:///gone", 0)]
    assert weights_of(files, sizes_in(LISTED)) == (300.0, 300.0)
    assert weights_of(files, {}) == (1.0, 1.0)


class Strange:
    """Something of Java's that has nothing we look for."""

    def __getattr__(self, name: str) -> Any:
        raise Py4JError(f"no {name}")


class StrangeQuery:
    def streamingQuery(self) -> Strange:  # noqa: N802 (Java's name)
        return Strange()


def test_on_a_spark_that_looks_different_inside_latency_starts_with_the_batch() -> None:
    batch = _RunningBatch(StrangeQuery(), 5)
    assert _by_source(3, batch, [FileLog(Strange(), Strange())]) == Availability.at("trigger", 3, 5)
    assert batch.sizes == {}
