"""Passes rows of an Arrow stream through the sifter: batch by batch, with their original schema."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidegate.edge.coordinates import of_column
from tidegate.edge.line_rows import Wishes, columns_missing, marked_twice
from tidegate.edge.node import Node
from tidegate.edge.source import EdgeSource, Sink
from tidegate.errors import FlowError
from tidegate.sift.filter.decision import DROP, SAMPLE
from tidegate.sift.queries.axes import Axis


def carry_batches(source: EdgeSource, sink: Sink, node: Node, wishes: Wishes) -> None:
    """Sift all batches until the stream ends; an input of zero bytes is an empty stream."""
    if not source.peek():
        return
    try:
        reader = pa.ipc.open_stream(pa.PythonFile(source, mode="r"))
    except (pa.ArrowInvalid, OSError) as error:
        if source.stopped:
            return
        raise _broken(error) from error
    _check_columns(node, wishes, reader.schema)
    schema = reader.schema
    if wishes.mark:
        schema = schema.append(pa.field(wishes.mark, pa.bool_(), nullable=False))
    with pa.ipc.new_stream(pa.PythonFile(sink, mode="w"), schema) as writer:
        while (batch := _next(reader, source)) is not None:
            columns = [_column(axis, batch) for axis in node.sifter.axes]
            verdicts = node.decide(columns)
            if wishes.mark:
                batch = batch.append_column(wishes.mark, pa.array(verdicts == SAMPLE)).cast(schema)
            writer.write_batch(batch.filter(pa.array(verdicts != DROP)))
            node.tick()


def _next(reader: Any, source: EdgeSource) -> Any:
    try:
        return reader.read_next_batch()
    except StopIteration:
        return None
    except (pa.ArrowInvalid, OSError) as error:
        if source.stopped:  # a signal came in the middle of a batch
            return None
        raise _broken(error) from error


def _column(axis: Axis, batch: Any) -> NDArray[np.float64]:
    place = batch.schema.get_field_index(axis.column)
    if place < 0:
        return np.full(batch.num_rows, np.nan)
    try:
        return of_column(axis, batch.column(place))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise FlowError(
            f"Column {axis.column} cannot be sifted",
            code="SIFT_COLUMN_TYPE_UNSUPPORTED",
            got=error,
            why=f"The sifter expects a {axis.kind} there",
            do="Cast the column, or use the sifter that was made for these rows",
        ) from error


def _check_columns(node: Node, wishes: Wishes, schema: Any) -> None:
    missing = [axis.column for axis in node.sifter.axes if axis.column not in schema.names]
    if missing and not wishes.allow_missing:
        raise columns_missing(missing, schema.names)
    if wishes.mark in schema.names:
        raise marked_twice(wishes.mark)


def _broken(error: Exception) -> FlowError:
    return FlowError(
        "The Arrow stream cannot be read any further",
        code="SIFT_INPUT_DAMAGED",
        got=error,
        why="Arrow cannot find the next row after a damaged one",
        do="Send an Arrow IPC stream (not an Arrow file), or pass the right --format",
    )
