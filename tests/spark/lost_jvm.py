"""Kills its own Java process under several queries at once, and prints what their handles say afterwards.

    python -m tests.spark.lost_jvm FOLDER match_between join_sinking …

Each query is a match or a join, caught between two batches, inside a sink, while tasks are busy, or paused.
The last line, JSON, has what every public method of each handle gave.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.spark.flows import STREAM_SCHEMA, add_files, read_files, seconds, stream_table

import tidegate as tg
from tidegate.driver.session import embedded_session
from tidegate.state.checkpoint import Checkpoint

#: Seconds in which a handle must notice.
PATIENCE_SECONDS = 20.0
BETWEEN, SINKING, BUSY, PAUSED = "between", "sinking", "busy", "paused"


class Story:
    """One query and the moment at which it is caught."""

    def __init__(self, spark: SparkSession, home: Path, flow: str, moment: str):
        self.name, self.moment = f"{flow}_{moment}", moment
        self.home = home / self.name
        self.caught = threading.Event()
        self._rows(0)
        stream = self._stream(spark, "a")
        if moment == BUSY:
            stream = stream.select("ts", "k", "n", F.udf(_slow, "long")("v").alias("v"))
        if flow == "match":
            shown = stream.match([tg.RangeQuery("all", "n >= 0"), tg.RangeQuery("none", "n < 0")])
        else:
            shown = stream.join(self._stream(spark, "b"), on="k", within="10 seconds")
        self.query = tg.start(
            shown.write_to(self._sink, name="out"), checkpoint=self.home / "ck", name=self.name, instances=1
        )

    def set_up(self) -> None:
        """Bring the query to its moment."""
        self.query.process_all_available()
        if self.moment == PAUSED:
            self.query.pause()
        if self.moment != BETWEEN:
            self._rows(1)

    def _stream(self, spark: SparkSession, side: str) -> tg.Stream:
        rows = read_files(spark, self.home / side, STREAM_SCHEMA)
        return tg.stream(rows, name=side, time="ts", lateness="1 second")

    def _rows(self, batch: int) -> None:
        for side in ("a", "b"):
            add_files(self.home / side, [stream_table([(seconds(batch), 1, batch, batch)])])

    def _sink(self, frame: DataFrame, batch: int) -> None:
        if self.moment == SINKING and batch > 0:
            self.caught.set()
            time.sleep(3)
        frame.collect()

    @property
    def is_there(self) -> bool:
        """Whether it is at its moment."""
        if self.moment == SINKING:
            return self.caught.is_set()
        return self.moment != BUSY or bool(self.query.status["isTriggerActive"])

    def outcome(self) -> dict[str, Any]:
        """What each method gives: a value, or the code of an error."""
        query = self.query
        found = {
            "await_termination": _told(lambda: query.await_termination(PATIENCE_SECONDS)),
            "seconds": time.monotonic() - KILLED[0],
            "message": str(query.exception()),
        }
        for name in ("is_active", "id", "run_id", "last_progress", "status", "recent_progress", "telemetry"):
            found[name] = _told(lambda name=name: getattr(query, name))  # type: ignore[misc]
        for name in ("process_all_available", "receipts", "explain", "explain_shedding", "stop", "pause"):
            found[name] = _told(getattr(query, name))
        found["exception"] = getattr(query.exception(), "code", None)
        found["repr"] = _told(lambda: repr(query))
        found["rescale"] = _told(lambda: query.rescale(1))
        found["resume"] = _told(query.resume)
        found["lock"] = _told(self._lock)
        return found

    def _lock(self) -> None:
        """A run that comes after may have the checkpoint."""
        checkpoint = Checkpoint(str(self.home / "ck"))
        checkpoint.open("heir")
        checkpoint.recover()
        checkpoint.close()


KILLED = [0.0]


def _slow(value: int) -> int:
    if value > 0:
        time.sleep(60)
    return value


def _told(call: Callable[[], Any]) -> str:
    try:
        return str(call())
    except tg.TidegateError as error:
        return str(error.code)
    except BaseException as error:
        return f"{type(error).__name__}: {error}"


def main(home: Path, names: list[str]) -> None:
    spark = embedded_session("lost jvm", memory="1g")
    stories = [Story(spark, home, *named.split("_")) for named in names]
    for story in stories:
        story.set_up()
    until = time.monotonic() + 120
    while not all(story.is_there for story in stories):
        assert time.monotonic() < until, "a query did not come to its moment"
        time.sleep(0.05)
    pid = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]
    KILLED[0] = time.monotonic()
    os.kill(pid, signal.SIGKILL)
    during = {story.name: _told(lambda story=story: story.query.status["message"]) for story in stories}  # type: ignore[misc]
    with contextlib.redirect_stdout(sys.stderr):
        outcomes = {story.name: story.outcome() for story in stories}
    print(json.dumps({"during": during, "outcomes": outcomes}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
