"""The session that all Spark tests share is what the tests assume it to be."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import SparkSession


def test_a_test_in_this_folder_is_marked_by_itself(request: pytest.FixtureRequest) -> None:
    assert request.node.get_closest_marker("spark") is not None


def test_workers_run_the_interpreter_of_the_tests(spark: SparkSession) -> None:
    def interpreter(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for frame in frames:
            yield frame.assign(python=sys.executable)[["python"]]

    rows = spark.range(4, numPartitions=2).mapInPandas(interpreter, "python string").collect()
    assert {row.python for row in rows} == {sys.executable}


def test_a_timestamp_is_read_as_utc(spark: SparkSession) -> None:
    row = spark.sql("SELECT unix_micros(TIMESTAMP '1970-01-01 00:00:01') AS us").first()
    assert row is not None
    assert row.us == 1_000_000


def test_the_memory_of_the_driver_does_not_depend_on_the_machine(spark: SparkSession) -> None:
    jvm = spark._jvm
    assert jvm is not None
    assert 3.5 * 2**30 < jvm.java.lang.Runtime.getRuntime().maxMemory() <= 4 * 2**30
