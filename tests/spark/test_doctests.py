"""The examples in docstrings of streams, queries and what belongs to them, with the rows of three orders."""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.unit.test_doctests import PUBLIC, needs_spark

import tidegate as tg

OPTIONS = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
NAMES = [name for name in PUBLIC if needs_spark(name)]
#: These have a running query as `query`; what stops it comes last.
ON_A_QUERY = sorted(
    (name for name in NAMES if name.startswith("StreamingQuery.")), key=lambda name: name.endswith(".stop")
)


def at(minute: int, second: int) -> datetime:
    return datetime(2026, 3, 1, 12, minute, second)


@pytest.fixture(scope="module")
def shared(spark: SparkSession) -> dict[str, Any]:
    """What every example may use."""
    orders_df = spark.createDataFrame(
        [(at(0, 0), 1, 10.0), (at(0, 20), 2, 7.5), (at(1, 30), 1, 20.0)],
        "ts timestamp, cell long, fare double",
    )
    tracks_df = spark.createDataFrame(
        [(at(0, 5), 1, 5.0), (at(0, 40), 2, 30.0), (at(5, 0), 1, 12.0)],
        "ts timestamp, cell long, speed double",
    )
    return {
        **{"spark": spark, "tg": tg, "F": F, "orders_df": orders_df, "tracks_df": tracks_df},
        "orders": tg.stream(orders_df, name="orders", time="ts", lateness="10 seconds"),
        "tracks": tg.stream(tracks_df, name="tracks", time="ts", lateness="10 seconds"),
    }


@pytest.fixture(scope="module")
def query(shared: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[tg.StreamingQuery]:
    """A running query that has processed the orders."""
    folder = tmp_path_factory.mktemp("query")
    frame, spark = shared["orders_df"], shared["spark"]
    frame.coalesce(1).write.parquet(str(folder / "orders"))
    arriving = spark.readStream.schema(frame.schema).parquet(str(folder / "orders"))
    orders = tg.stream(arriving, name="orders", time="ts", lateness="10 seconds")
    with tg.start(
        orders.write_to("noop"), name="dispatch", checkpoint=folder / "ck", trigger="1 second"
    ) as running:
        running.process_all_available()
        yield running


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ON_A_QUERY])
def test_an_example_shows_what_it_says(name: str, shared: dict[str, Any], tmp_path: Path) -> None:
    run_examples(name, shared, tmp_path)


@pytest.mark.parametrize("name", ON_A_QUERY)
def test_an_example_on_a_running_query_shows_what_it_says(
    name: str, shared: dict[str, Any], query: tg.StreamingQuery, tmp_path: Path
) -> None:
    run_examples(name, {**shared, "query": query}, tmp_path)


def run_examples(name: str, names: dict[str, Any], folder: Path) -> None:
    # Java keeps the directory in which it was started, so relative paths are made absolute here.
    text = (inspect.getdoc(PUBLIC[name]) or "").replace("out/", f"{folder}/out/")
    found = doctest.DocTestParser().get_doctest(text, dict(names), name, None, None)
    assert found.examples
    said: list[str] = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=OPTIONS)
    runner.run(found, out=said.append)
    assert not runner.failures, "".join(said)
