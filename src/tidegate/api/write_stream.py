"""A writer with the methods of Spark's `DataStreamWriter`, for code that was written for Spark.

    near.writeStream.format("parquet").queryName("near").option("checkpointLocation", "ck")
        .trigger(processingTime="1 second").option("tidegate.latency", "2 seconds").start("out/near")

It covers one output. Options that begin with `tidegate.` are settings of `tidegate.start` and `write_to`
(`OPTIONS` lists them); all others go to the format.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tidegate.api.goal import Goal, Shed
from tidegate.api.outputs import commit_every_us
from tidegate.api.start import start
from tidegate.errors import FlowError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tidegate.api.streams import Stream
    from tidegate.driver.streaming_query import StreamingQuery

PREFIX = "tidegate."
_WHOLE, _SHARE, _TEXT = int, float, str
#: Option → how its text is read.
OPTIONS: Mapping[str, Callable[[str], Any]] = {
    "latency": _TEXT,
    "max_loss": _SHARE,
    "max_state": _TEXT,
    "max_gap": lambda text: int(text) if text.isdigit() else text,
    "priority": _SHARE,
    "repair": _TEXT,
    "repair_column": _TEXT,
    "commit_every": _TEXT,
    "instances": _WHOLE,
    "partitions": _WHOLE,
    "seed": _WHOLE,
}
_OF_GOAL = ("latency", "max_loss", "max_state")
_OF_OUTPUT = ("max_gap", "priority", "repair_column", "commit_every")
CHECKPOINT, PATH = "checkpointLocation", "path"
#: Options that are read here; Spark does not mind their case.
_CANONICAL = {name.lower(): name for name in (CHECKPOINT, PATH)}


class StreamWriter:
    """Writes one stream, as `DataStreamWriter` does; every method but the last returns the writer.

    >>> writer = orders.writeStream.format("parquet").outputMode("append").queryName("dispatch")
    >>> query = writer.option("path", "out/dispatch").start()
    >>> spark.read.parquet("out/dispatch").count()
    3
    """

    def __init__(self, stream: Stream):
        self._stream = stream
        self._format: str | None = None
        self._function: Callable[..., None] | None = None
        self._options: dict[str, str] = {}
        self._ours: dict[str, Any] = {}
        self._partition_by: tuple[str, ...] = ()
        self._name: str | None = None
        self._trigger: dict[str, Any] = {}

    def format(self, source: str) -> StreamWriter:
        """The format of the sink: "parquet", "delta", …"""
        self._format = source
        return self

    def option(self, key: str, value: Any) -> StreamWriter:
        """One option of the sink, the checkpoint location, or a setting that begins with `tidegate.`."""
        if key.startswith(PREFIX):
            self._ours[key.removeprefix(PREFIX)] = _read(key, value)
        else:
            name = _CANONICAL.get(key.lower(), key)
            self._options[name] = str(value).lower() if isinstance(value, bool) else str(value)
        return self

    def options(self, **options: Any) -> StreamWriter:
        """Several options at once."""
        for key, value in options.items():
            self.option(key, value)
        return self

    def query_name(self, query_name: str) -> StreamWriter:
        """The name of the query, and of its output."""
        self._name = query_name
        return self

    def output_mode(self, output_mode: str) -> StreamWriter:
        """Only "append": a row is written once, when it is final."""
        if output_mode != "append":
            raise FlowError(
                "Rows are written in append mode only",
                code="OUTPUT_MODE_UNSUPPORTED",
                got=repr(output_mode),
                why="A row is written once, when it is final",
                do='Write outputMode("append"), or leave it out',
            )
        return self

    def partition_by(self, *columns: str) -> StreamWriter:
        """Columns by which files are laid out."""
        self._partition_by = columns
        return self

    def trigger(
        self,
        *,
        processingTime: str | None = None,  # noqa: N803 - the names of Spark
        availableNow: bool | None = None,  # noqa: N803
    ) -> StreamWriter:
        """When batches start: every `processingTime`, or once for what is available now."""
        if (processingTime is None) == (not availableNow):
            raise FlowError(
                "A trigger is processingTime or availableNow",
                code="TRIGGER_AMBIGUOUS",
                got=f"processingTime={processingTime!r}, availableNow={availableNow!r}",
                do='Write trigger(processingTime="1 second") or trigger(availableNow=True)',
            )
        self._trigger = {"available_now": True} if availableNow else {"trigger": processingTime}
        return self

    def foreach_batch(
        self, function: Callable[[DataFrame, int], None] | Callable[[DataFrame, int, int], None]
    ) -> StreamWriter:
        """Write each batch with a function of (data frame, batch id) or (data frame, batch id, run)."""
        self._function = function
        return self

    def start(
        self,
        path: str | None = None,
        format: str | None = None,
        outputMode: str | None = None,  # noqa: N803 - the names of Spark
        partitionBy: str | list[str] | None = None,  # noqa: N803
        queryName: str | None = None,  # noqa: N803
        **options: Any,
    ) -> StreamingQuery:
        """Start the query; the parameters are those of Spark's `start`."""
        self._given(format, outputMode, partitionBy, queryName, options)
        return self._run(path=path)

    def to_table(
        self,
        tableName: str,  # noqa: N803 - the names of Spark
        format: str | None = None,
        outputMode: str | None = None,  # noqa: N803
        partitionBy: str | list[str] | None = None,  # noqa: N803
        queryName: str | None = None,  # noqa: N803
        **options: Any,
    ) -> StreamingQuery:
        """Start the query, and append its rows to a table; the parameters are those of Spark's `toTable`."""
        self._given(format, outputMode, partitionBy, queryName, options)
        if "commit_every" in self._ours:
            commit_every_us(self._ours["commit_every"], f"table {tableName!r}", writes_files=False)
        return self._run(table=tableName)

    def _given(
        self,
        source: str | None,
        mode: str | None,
        columns: str | list[str] | None,
        name: str | None,
        options: Mapping[str, Any],
    ) -> None:
        """What `start` and `to_table` take beside the sink."""
        self.options(**options)
        if source is not None:
            self.format(source)
        if mode is not None:
            self.output_mode(mode)
        if columns is not None:
            self.partition_by(*([columns] if isinstance(columns, str) else columns))
        if name is not None:
            self.query_name(name)

    # The names of Spark's DataStreamWriter.
    queryName = query_name  # noqa: N815
    outputMode = output_mode  # noqa: N815
    partitionBy = partition_by  # noqa: N815
    foreachBatch = foreach_batch  # noqa: N815
    toTable = to_table  # noqa: N815

    def _run(self, path: str | None = None, table: str | None = None) -> StreamingQuery:
        options, ours = dict(self._options), dict(self._ours)
        checkpoint = options.pop(CHECKPOINT, None)
        where = options.pop(PATH, None) if path is None else path
        limits = {name: ours.pop(name) for name in _OF_OUTPUT if name in ours}
        shared: dict[str, Any] = {"partition_by": self._partition_by, "name": self._name, **limits}
        if table is not None and self._function is not None:
            raise FlowError(
                "A function and a table are two sinks",
                code="OUTPUT_FUNCTION_AND_TABLE",
                got=f"foreachBatch and toTable({table!r})",
                why="The function would never be called",
                do="Leave one of them out, or let the function write the table",
            )
        if table is not None:
            output = self._stream.write_to_table(table, format=self._format, options=options, **shared)
        elif self._function is not None:
            output = self._stream.write_to(self._function, where, options=options or None, **shared)
        else:
            output = self._stream.write_to(self._format or "parquet", where, options=options, **shared)
        goal = {name: ours.pop(name) for name in _OF_GOAL if name in ours}
        if goal and "latency" not in goal:
            raise FlowError(
                "A goal needs a latency",
                code="GOAL_LATENCY_MISSING",
                got=", ".join(PREFIX + name for name in goal),
                do='Add .option("tidegate.latency", "2 seconds")',
            )
        repair = ours.pop("repair", None)
        return start(
            output,
            name=self._name,
            checkpoint=checkpoint,
            goal=Goal(**goal) if goal else None,
            shed=None if repair is None else Shed(repair=repair),
            **ours,
            **self._trigger,
        )


def _read(key: str, value: Any) -> Any:
    name = key.removeprefix(PREFIX)
    if name not in OPTIONS:
        raise FlowError(
            "Unknown Tidegate option",
            code="OPTION_UNKNOWN",
            got=repr(key),
            do="Use one of " + ", ".join(PREFIX + one for one in OPTIONS),
        )
    try:
        return OPTIONS[name](str(value))
    except ValueError:
        raise FlowError(
            f"Option {key} has an unreadable value",
            code="OPTION_VALUE",
            got=repr(value),
            do=f'Give a number: .option("{key}", "4")',
        ) from None
