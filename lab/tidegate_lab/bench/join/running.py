"""Running queries of `tidegate bench join`, with one interface for all engines.

The time of a batch is Spark's `triggerExecution` for every engine, this one included: its `foreachBatch` runs
inside an ordinary Spark query, whose progress is read here. Batches without rows (Spark runs one to advance
its watermark, this engine has a heartbeat) are not counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.query import StreamingQuery as SparkQuery

from tidegate_lab.bench.join.spec import Task

if TYPE_CHECKING:
    from tidegate.driver.streaming_query import StreamingQuery


class SparkRunning:
    """A query of Spark's own engine, or the floor."""

    def __init__(self, query: SparkQuery, task: Task) -> None:
        self._query = query
        self._task = task

    def wait(self) -> None:
        self._query.awaitTermination()

    def batches(self) -> list[dict[str, float]]:
        found = [p for p in self._query.recentProgress if with_rows(p, self._task)]
        return [{**timed(p), **spark_state(p)} for p in found]


class TidegateRunning:
    """A query of this engine: timed by the Spark query inside, its state as it reports it."""

    def __init__(self, query: StreamingQuery, task: Task) -> None:
        self._query = query
        self._task = task

    def wait(self) -> None:
        self._query.await_termination()

    def batches(self) -> list[dict[str, float]]:
        inner = self._query.spark_query
        if inner is None:
            return []
        reports = {int(report["batch"]): report for report in self._query.telemetry}
        found = []
        for progress in inner.recentProgress:
            report = reports.get(int(progress["batchId"]))
            # The engine knows its rows; Spark counts what it read, heartbeats included.
            rows = int(progress["numInputRows"] if report is None else report["input_rows"])
            if rows * 2 > self._task.rows_per_batch:
                found.append({**timed(progress), "rows": rows, **tidegate_state(report)})
        return found


def with_rows(progress: Any, task: Task) -> bool:
    """A heartbeat brings a row or so; a tick of data brings all of its rows."""
    return int(progress["numInputRows"]) * 2 > task.rows_per_batch


def timed(progress: Any) -> dict[str, float]:
    return {
        "rows": int(progress["numInputRows"]),
        "seconds": int(progress["durationMs"]["triggerExecution"]) / 1000,
    }


def spark_state(progress: Any) -> dict[str, float]:
    operators = progress["stateOperators"]
    if not operators:
        return {}
    held = operators[0]
    custom = held["customMetrics"]
    on_disk = int(custom["rocksdbSstFileSize"]) if "rocksdbSstFileSize" in custom else 0
    return {
        "state_rows": int(held["numRowsTotal"]),
        "state_bytes": int(held["memoryUsedBytes"]) + on_disk,
    }


def tidegate_state(report: Any) -> dict[str, float]:
    if report is None:
        return {}
    return {"state_rows": int(report["state_rows"]), "state_bytes": int(report["state_bytes"])}
