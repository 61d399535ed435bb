"""Runs a flow on the rows of a test, with Spark but without files, checkpoints or waiting.

    from tidegate import testing

    near = orders.join(tracks, on="cell", within="20 seconds")
    run = testing.run(near, {"orders": [first, second], "tracks": [all_tracks]}, probe_ratio=0.3)
    run.rows("near"), run.receipts(), run.progress

The flow is the one that production runs: only the inputs of its streams are replaced, by batches of rows with
the same columns. Batch i of every stream is processed together; a stream with fewer batches ends earlier.
`probe_ratio` makes joins shed: they probe this share of their candidate pairs in every batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from tidegate.api.nodes import Output
from tidegate.api.streams import Stream
from tidegate.errors import FlowError
from tidegate.quantities import is_number

if TYPE_CHECKING:
    import pandas
    from pyspark.sql import SparkSession

    from tidegate.driver.trial import TrialRun

__all__ = ["run"]

#: The rows of one batch: a pandas data frame, or a list of dicts by column name.
Batch: TypeAlias = "pandas.DataFrame | Sequence[Mapping[str, Any]]"


def run(
    flow: Stream | Output | Sequence[Stream | Output],
    batches: Mapping[str, Sequence[Batch]],
    *,
    probe_ratio: float | None = None,
    seed: int = 0,
    spark: SparkSession | None = None,
) -> TrialRun:
    """Run a flow on batches of rows, and return what it wrote.

    `flow`: a stream, an output, or several of them. The sink of an output is not called; its settings
    (`max_gap`, `name`, …) count. `batches`: by stream, its batches in order; each is a pandas data frame or a
    list of dicts with the columns of the stream. `probe_ratio`: the share of candidate pairs that joins
    probe; None: all. `seed`: decides which pairs are skipped. `spark`: the session; by default that of the
    streams.

    >>> import datetime
    >>> from tidegate import testing
    >>> near = orders.join(tracks, on="cell", within="1 minute", name="near")
    >>> noon = datetime.datetime(2026, 3, 1, 12)
    >>> run = testing.run(near, {
    ...     "orders": [[{"ts": noon, "cell": 1, "fare": 10.0}]],
    ...     "tracks": [[{"ts": noon, "cell": 1, "speed": 5.0}]]})
    >>> [(row["fare"], row["speed"]) for row in run.rows("near")]
    [(10.0, 5.0)]
    """
    if probe_ratio is not None and not (is_number(probe_ratio, 0) and 0 < probe_ratio <= 1):
        raise FlowError(
            "probe_ratio is not a share",
            code="TESTING_PROBE_RATIO_RANGE",
            got=repr(probe_ratio),
            do="Give a number above 0 and up to 1, or None",
        )
    parts = [flow] if isinstance(flow, Stream | Output) else list(flow)
    from tidegate.driver.trial import run_on_batches

    return run_on_batches(parts, batches, probe_ratio, seed, spark)
