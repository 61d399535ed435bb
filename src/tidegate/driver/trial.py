"""A flow on the batches of a test: its sources are replaced by files, one per stream and batch.

Each batch becomes one Parquet file with the schema of the stream, and the file source gives one file per
stream to a batch. Results are collected: tests have few rows.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tidegate.api.goal import Goal, Shed
from tidegate.api.nodes import Node, OperatorNode, Output, Refused, Source, StatelessStep
from tidegate.api.start import StartOptions
from tidegate.api.streams import Stream
from tidegate.driver.compile.graph_checks import sources_of
from tidegate.driver.start import run_flow
from tidegate.driver.streaming_query import StreamingQuery
from tidegate.errors import FlowError, shortened
from tidegate.model.progress import Progress
from tidegate.model.receipts import ReceiptPeriod, ReceiptRange, kept_lines

if TYPE_CHECKING:
    import pandas

#: Files are read in the order of their modification times, which are whole seconds from here on.
_EPOCH_SECONDS = 1_700_000_000
#: Far more than a test takes: the probe ratio alone decides what is shed.
_LATENCY = "1 hour"


@dataclass(frozen=True)
class TrialRun:
    """What a flow wrote in a test.

    >>> from tidegate import testing
    >>> run = testing.run(orders.filter("fare > 8"), {"orders": [orders_df.toPandas()]})
    >>> [row["fare"] for row in run.rows()]
    [10.0, 20.0]
    >>> run.receipts(by="total")["complete"].tolist()
    [True, True]
    """

    _rows: Mapping[str, list[dict[str, Any]]]
    _query: StreamingQuery

    def rows(self, output: str | None = None) -> list[dict[str, Any]]:
        """The rows of an output, in the order in which they were written; its name may be left out if there
        is only one."""
        if output is None and len(self._rows) == 1:
            return next(iter(self._rows.values()))
        if output is None or output not in self._rows:
            raise FlowError(
                "There is no such output in this run",
                code="TESTING_OUTPUT_UNKNOWN",
                got=repr(output),
                do="Use one of " + ", ".join(map(repr, self._rows)),
            )
        return self._rows[output]

    def receipts(
        self,
        since: int | str | datetime | None = None,
        last: int | str | timedelta | None = None,
        *,
        by: ReceiptPeriod = "batch",
    ) -> pandas.DataFrame:
        """The receipts as a pandas data frame; see `StreamingQuery.receipts`."""
        return self._query.receipts(since, last, by=by)

    @property
    def progress(self) -> list[Progress]:
        """The progress of every batch, oldest first."""
        return self._query.recent_progress


def run_on_batches(
    parts: Sequence[Stream | Output],
    batches: Mapping[str, Sequence[Any]],
    probe_ratio: float | None,
    seed: int,
    spark: SparkSession | None,
) -> TrialRun:
    """See `tidegate.testing.run`."""
    given = [one if isinstance(one, Output) else one.write_to("noop") for one in parts]
    sources = {source.name: source for source in sources_of(given)}
    _check_streams(sources, batches)
    session = spark or next(iter(sources.values())).frame.sparkSession
    home = Path(tempfile.mkdtemp(prefix="tidegate-test-"))
    try:
        swapped = _Swapped(
            {
                name: _stream(session, source, batches.get(name, ()), home / f"input-{number}")
                for number, (name, source) in enumerate(sources.items())
            }
        )
        collected: dict[str, list[dict[str, Any]]] = {output.name: [] for output in given}
        outputs = [_collecting(output, swapped, collected) for output in given]
        options = StartOptions(checkpoint=str(home / "checkpoint"), available_now=True, seed=seed)
        if probe_ratio is not None:
            options = replace(options, goal=Goal(_LATENCY), shed=Shed(rate=probe_ratio))
        query = run_flow(outputs, options)
        query.await_termination()
        query._read_receipts = kept_lines(query._read_receipts(ReceiptRange()))
        return TrialRun(collected, query)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _check_streams(sources: Mapping[str, Source], batches: Mapping[str, Sequence[Any]]) -> None:
    unknown = sorted(set(batches) - set(sources))
    missing = sorted(set(sources) - set(batches))
    if unknown or missing:
        raise FlowError(
            "The batches do not belong to the streams of the flow",
            code="TESTING_STREAMS_DIFFER",
            got=f"unknown: {', '.join(unknown) or 'none'}; missing: {', '.join(missing) or 'none'}",
            do=f"Give batches for {', '.join(sources)}; an empty list for a stream without rows",
        )


class _Swapped:
    """A flow with other sources; nodes that were shared stay shared."""

    def __init__(self, frames: Mapping[str, DataFrame]):
        self._frames = frames
        self._made: dict[int, Any] = {}

    def node(self, node: Node) -> Any:
        if id(node) not in self._made:
            self._made[id(node)] = self._swap(node)
        return self._made[id(node)]

    def _swap(self, node: Any) -> Any:
        if isinstance(node, Source):
            return replace(node, frame=self._frames[node.name])
        kinds = (Source, StatelessStep, Refused, OperatorNode)
        inputs = {one.name: getattr(node, one.name) for one in fields(node)}
        return replace(
            node, **{name: self.node(one) for name, one in inputs.items() if isinstance(one, kinds)}
        )


def _collecting(output: Output, swapped: _Swapped, collected: Mapping[str, list[dict[str, Any]]]) -> Output:
    name = output.name

    def collect(frame: DataFrame, batch: int) -> None:
        collected[name].extend(row.asDict(recursive=True) for row in frame.collect())

    return replace(
        output,
        node=swapped.node(output.node),
        given_name=name,
        function=collect,
        format=None,
        path=None,
        table=None,
        options={},
        partition_by=(),
    )


def _stream(session: SparkSession, source: Source, batches: Sequence[Any], home: Path) -> DataFrame:
    """The batches of one stream as a file stream, one file per batch."""
    folder = (
        home / "inputs" / str(len(list((home / "inputs").glob("*"))) if (home / "inputs").exists() else 0)
    )
    folder.mkdir(parents=True)
    schema = source.frame.schema
    for number, batch in enumerate(batches):
        rows = _rows(batch, schema.names, source.name)
        written = folder.parent / f"_{folder.name}-{number}"
        try:
            made = session.createDataFrame(rows, schema, verifySchema=True)
        except (PySparkException, TypeError, ValueError) as error:
            raise FlowError(
                f"Batch {number} of stream {source.name!r} does not fit its columns",
                code="TESTING_ROWS_INVALID",
                got=f"{shortened(str(error))}",
                do=f"Give rows of {schema.simpleString()}",
            ) from error
        made.coalesce(1).write.parquet(str(written))
        (part,) = written.glob("part-*.parquet")
        os.utime(part, (_EPOCH_SECONDS + number,) * 2)
        part.rename(folder / f"{number:06d}.parquet")
    return session.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


def _rows(batch: Any, columns: Sequence[str], stream: str) -> Any:
    """A pandas frame with the columns of the stream, or a list of tuples in their order."""
    named = list(batch.columns) if hasattr(batch, "columns") else None
    if named is None:
        rows = list(batch)
        named = sorted({name for row in rows for name in row})
    unknown = [name for name in named if name not in columns]
    if unknown:
        raise FlowError(
            f"The test rows of stream {stream!r} have columns that it does not have",
            code="TESTING_COLUMNS_UNKNOWN",
            got=", ".join(unknown),
            do=f"Use the columns {', '.join(columns)}; missing ones are null",
        )
    if hasattr(batch, "assign"):
        # None, because NaN would be a value: of a double, and no value at all of an array.
        return batch.assign(**{name: None for name in columns if name not in named})[list(columns)]
    return [tuple(row.get(name) for name in columns) for row in rows]
