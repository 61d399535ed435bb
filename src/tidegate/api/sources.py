"""`tidegate.stream`: makes a stream from a Spark data frame, and checks its event time and lateness.

A frame with a watermark (`withWatermark`) brings both: Spark keeps the delay in the metadata of the column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tidegate.api.names import checked_name
from tidegate.api.nodes import Source
from tidegate.api.streams import Stream, refuse_hidden
from tidegate.errors import FlowError
from tidegate.quantities import Duration, duration_us

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Where Spark keeps the delay of a watermark, in milliseconds.
_WATERMARK_KEY = "spark.watermarkDelayMs"
#: Default of `max_ahead`: a timestamp further ahead of the clock is taken for an error.
MAX_AHEAD_DEFAULT = "366 days"


def stream(
    frame: DataFrame,
    *,
    name: str,
    time: str | None = None,
    lateness: Duration | None = None,
    idle_timeout: Duration | None = None,
    max_ahead: Duration | None = MAX_AHEAD_DEFAULT,
    available_at: str | None = None,
) -> Stream:
    """A stream of the rows of a Spark data frame: a streaming one, or a batch one.

    `name`: identifies the stream in checkpoint, progress, receipts and SQL conditions.
    `time`: the event-time column. `lateness`: how far behind the newest row of this stream a row may be
    without being late; where streams meet, the slowest of them decides (docs/joins.md). Both may come from
    the watermark of the frame (`frame.withWatermark("ts", "10 seconds")`) instead. A streaming frame needs
    one of the two; in a batch run nothing is late.
    `idle_timeout`: after this long without rows the stream no longer holds back the watermark of others;
    None: it always does.
    `max_ahead`: a row with a time further ahead of the clock than this is rejected; None: never.
    `available_at`: a column with the time at which a row became available (a Kafka record's `timestamp`),
    from which latency is measured.

    Rows not taken are counted, and are streams themselves: `orders.late`, `orders.rejected`.

    >>> orders = tg.stream(orders_df, name="orders", time="ts", lateness="10 seconds")
    >>> orders
    <tidegate.Stream 'orders': stream orders: time ts, lateness 10 seconds>
    """
    checked_name(name, "stream")
    if not hasattr(frame, "columns"):
        raise FlowError(
            f"Stream {name!r} is not made of a data frame",
            code="STREAM_NOT_A_FRAME",
            got=type(frame).__name__,
            do="Give a streaming data frame, as spark.readStream makes them, or a batch one",
        )
    columns = list(frame.columns)
    refuse_hidden(columns)
    marked = watermark_of(frame, name)
    time_column = _time_column(time, columns, marked, name)
    if available_at is not None and available_at not in columns:
        raise FlowError(
            f"Stream {name!r} has no column {available_at!r}",
            code="STREAM_AVAILABLE_AT_MISSING",
            got="columns " + ", ".join(columns),
            do="Name a timestamp column in available_at=…, or leave it out",
        )
    idle_us = None if idle_timeout is None else duration_us(idle_timeout, f"idle_timeout of {name!r}")
    if idle_us == 0:
        raise FlowError(
            f"idle_timeout of {name!r} is zero",
            code="STREAM_IDLE_TIMEOUT_ZERO",
            got=repr(idle_timeout),
            why="The stream would count as idle in the batch in which its rows arrive",
            do="Give a positive duration, or None: then an idle stream always holds the others back",
        )
    if hasattr(frame, "sparkSession"):
        from tidegate.driver.worker_python import choose_python

        choose_python(frame.sparkSession)
    return Stream(
        Source(
            frame,
            time_column,
            name,
            _lateness_us(lateness, marked, bool(getattr(frame, "isStreaming", False)), name),
            idle_us,
            None if max_ahead is None else duration_us(max_ahead, f"max_ahead of {name!r}"),
            available_at,
        )
    )


def _time_column(time: str | None, columns: Sequence[str], marked: Watermark | None, name: str) -> str:
    if time is None:
        if marked is None:
            raise FlowError(
                f"Stream {name!r} has no event time",
                code="STREAM_TIME_MISSING",
                got="columns " + ", ".join(columns),
                do='Name the column: time="ts", or use withWatermark("ts", "10 seconds") on the frame',
            )
        return marked.column
    if time not in columns:
        raise FlowError(
            f"Stream {name!r} has no column {time!r}",
            code="STREAM_TIME_UNKNOWN",
            got="columns " + ", ".join(columns),
            do="Name the event-time column in time=…",
        )
    if marked is not None and marked.column != time:
        raise FlowError(
            f"Stream {name!r} has two event times",
            code="STREAM_TIME_TWICE",
            got=f"time={time!r}, and a watermark on {marked.column!r}",
            do="Leave out time=…, or take the watermark off",
        )
    return time


def _lateness_us(given: Duration | None, marked: Watermark | None, streaming: bool, name: str) -> int:
    if given is not None:
        lateness_us = duration_us(given, f"lateness of {name!r}")
        if marked is not None and marked.delay_us != lateness_us:
            raise FlowError(
                f"Stream {name!r} has two latenesses",
                code="STREAM_LATENESS_TWICE",
                got=f"lateness={given!r}, and a watermark with a delay of {marked.delay_us / 1e6:g} s",
                do="Leave out lateness=…, or take the watermark off",
            )
        return lateness_us
    if marked is not None:
        return marked.delay_us
    if streaming:
        raise FlowError(
            f"Stream {name!r} does not say how late its rows may be",
            code="STREAM_LATENESS_MISSING",
            why="With none, every row that is out of order would be lost",
            do='Write lateness="10 seconds", or use withWatermark("ts", "10 seconds") on the frame',
        )
    return 0


@dataclass(frozen=True)
class Watermark:
    """The watermark that a user gave to a data frame."""

    column: str
    delay_us: int


def watermark_of(frame: Any, name: str) -> Watermark | None:
    """The watermark of a frame, as Spark keeps it in the metadata of the column; None if there is none."""
    fields = getattr(getattr(frame, "schema", None), "fields", ())
    found = [
        Watermark(field.name, int(field.metadata[_WATERMARK_KEY]) * 1000)
        for field in fields
        if _WATERMARK_KEY in (field.metadata or {})
    ]
    if len(found) > 1:
        raise FlowError(
            f"Stream {name!r} has several watermarks",
            code="STREAM_WATERMARKS_SEVERAL",
            got="columns " + ", ".join(one.column for one in found),
            do="Keep one of them in the frame, and name it in time=…",
        )
    return found[0] if found else None
