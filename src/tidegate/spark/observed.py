"""Reads what Spark observed in front of the boxes of a stream: rows, rejected rows, newest time.

In a streaming query the numbers belong to the execution of the running batch, and `foreachBatch` is called
in the middle of it: Spark would publish them only after the batch, too late for our manifest. They are
complete as soon as our action is done, so they are read from the execution itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Observation

from tidegate.errors import BatchFailed, explain


@dataclass(frozen=True)
class Observed:
    """What was seen of one stream in one batch."""

    offered: int
    rejected: int
    seen_us: int | None


def read(observations: Mapping[str, Observation | str], query: Any) -> dict[str, Observed]:
    """The numbers of all observed streams; `query` is the Java streaming query, None in a batch run."""
    if not observations:
        return {}
    if query is None:
        return {
            name: _from_row(watch.get) for name, watch in observations.items() if not isinstance(watch, str)
        }
    metrics = query.streamingQuery().lastExecution().observedMetrics()
    return {name: _from_jvm(name, metrics) for name in observations}


def _from_row(row: Mapping[str, Any]) -> Observed:
    return Observed(row["offered"], row["rejected"], row["seen_us"])


def _from_jvm(name: str, metrics: Any) -> Observed:
    found = metrics.get(name)
    if not found.isDefined():
        raise BatchFailed(
            explain(
                f"Spark did not report what it observed of stream {name!r}",
                why="Without it the watermark cannot move",
                do="Run the batch again; if it happens again, this is a bug in Tidegate",
            )
        )
    row = found.get()
    return Observed(row.getAs("offered"), row.getAs("rejected"), row.getAs("seen_us"))
