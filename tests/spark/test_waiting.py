"""Waiting for what is at the sources now, and pausing: with batches of Spark at random moments."""

from __future__ import annotations

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.spark.flows import (
    PATIENCE_SECONDS,
    STREAM_SCHEMA,
    add_files,
    read_files,
    seconds,
    stream_table,
)

import tidegate as tg

#: Calls at random moments by each of some threads: in `make test`, and in each round of `make soak`.
THREADS, CALLS, MANY_CALLS, ROUNDS = 12, 2, 21, 4


def started(spark: SparkSession, home: Path, **settings: object) -> tg.StreamingQuery:
    """Rows with an even n, and their pairs with themselves; the frame leaves out the others."""
    rows = read_files(spark, home / "a", STREAM_SCHEMA, per_batch=2).where("n % 2 = 0")
    stream = tg.stream(rows, name="a", time="ts", lateness="1 second")
    output = (
        stream.window("1 second", by="n", name="busy")
        .agg(ids="max(v)")
        .write_to("parquet", str(home / "out"), name="busy")
    )
    plain = stream.write_to("parquet", str(home / "rows"), name="rows")
    return tg.start(output, plain, checkpoint=home / "ck", partitions=2, instances=1, **settings)  # type: ignore[arg-type]


class Written:
    """The values of the rows that are published; files are read once, because they never change."""

    def __init__(self, home: Path):
        self.folder, self.seen, self.values = home / "rows", set[Path](), set[int]()

    def __call__(self) -> set[int]:
        for path in set(self.folder.glob("part-*")) - self.seen:
            self.seen.add(path)
            self.values.update(pq.read_table(path, columns=["v"])["v"].to_pylist())
        return self.values


class Callers:
    """Threads that add files and wait for them, each at moments of its own."""

    def __init__(self, query: tg.StreamingQuery, home: Path, seed: int):
        self.query, self.home, self.seed = query, home, seed
        self._adding, self._added, self._wanted = threading.Lock(), 1, {0}
        self._written = Written(home)
        self.done, self.early = 0, list[tuple[int, int]]()

    def run(self, calls: int) -> None:
        with ThreadPoolExecutor(THREADS) as threads:
            for thread in [threads.submit(self._call, number, calls) for number in range(THREADS)]:
                thread.result()

    def _call(self, number: int, calls: int) -> None:
        chance = random.Random(f"{self.seed} {number}")
        for call in range(calls):
            time.sleep(chance.choice([0.0, 0.3, 1.0, 2.0]) * chance.random())
            with self._adding:
                for _ in range(chance.choice([0, 1, 1, 2, 5])):
                    self._add(chance.random() < 0.5)
                wanted = set(self._wanted)
            self.query.process_all_available()
            with self._adding:
                self.done += 1
                if not wanted <= self._written():
                    self.early.append((number, call))

    def _add(self, even: bool) -> None:
        """A file with one row, which the frame lets through if it is even."""
        row = (seconds(self._added), 1, 0 if even else 1, self._added)
        add_files(self.home / "a", [stream_table([row])])
        self._wanted |= {self._added} if even else set()
        self._added += 1


@pytest.mark.parametrize(
    ("calls", "seed"),
    [(CALLS, 0), *(pytest.param(MANY_CALLS, 1 + n, marks=pytest.mark.soak) for n in range(ROUNDS))],
)
def test_all_rows_at_the_sources_are_processed_when_it_returns(
    spark: SparkSession, tmp_path: Path, calls: int, seed: int
) -> None:
    """Files come at random moments, several or one; some bring no row that the frame lets through."""
    add_files(tmp_path / "a", [stream_table([(seconds(0), 1, 0, 0)])])
    with started(spark, tmp_path) as query:
        callers = Callers(query, tmp_path, seed)
        callers.run(calls)
    assert callers.early == []
    assert callers.done == THREADS * calls


def test_a_paused_query_takes_no_rows_until_it_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    written = Written(tmp_path)
    add_files(tmp_path / "a", [stream_table([(seconds(0), 1, 0, 0)])])
    with started(spark, tmp_path) as query:
        query.process_all_available()
        query.pause()
        assert query.status["message"] == "Paused"
        done = query.last_progress
        time.sleep(0.5)
        add_files(tmp_path / "a", [stream_table([(seconds(1), 1, 0, 1)])])
        time.sleep(3)
        assert written() == {0}
        assert done is not None
        assert query.last_progress is not None
        assert query.last_progress.batch_id <= done.batch_id + 1, "a running batch ends, and no other begins"
        with pytest.raises(tg.FlowError, match="QUERY_PAUSED"):
            query.process_all_available()
        query.resume()
        query.process_all_available()
        assert written() == {0, 1}
        query.pause()
        add_files(tmp_path / "a", [stream_table([(seconds(2), 1, 0, 2)])])
        time.sleep(2)
        query.stop(timeout=PATIENCE_SECONDS)
        assert query.exception() is None
    with started(spark, tmp_path) as again:
        again.process_all_available()
        assert written() == {0, 1, 2}
