"""Streams: handles on the nodes of a flow.

Every method of a `Stream` adds a node to a directed graph and returns a new handle, so a stream may feed any
number of others. Data frames and column expressions are passed on unread, so this module needs no Spark.
`tidegate.start` compiles and runs the graph.

    tg.stream ─▶ filter / select / with_column / transform ─▶ join / match / window ─▶ … ─▶ write_to
        │
        └─▶ late, rejected: rows that the stream did not accept, as separate streams

Where Spark's `DataFrame` has a method of the same meaning, its camelCase name works too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from tidegate.api.explain import described, summary
from tidegate.api.joins.conditions import OnePart
from tidegate.api.joins.join_node import How, join_node
from tidegate.api.names import operator_name, path_text
from tidegate.api.nodes import (
    Match,
    Node,
    Output,
    Refused,
    Source,
    StatelessStep,
    Window,
    name_of,
    union_node,
)
from tidegate.api.outputs import checked_output, checked_table
from tidegate.api.range_queries import RangeQuery, listed_queries
from tidegate.api.windows import WindowDropName, Windowed, _spec
from tidegate.errors import FlowError
from tidegate.join.within import TimeCondition
from tidegate.quantities import Duration
from tidegate.window.spec import RowsSpec

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

    from tidegate.api.write_stream import StreamWriter


class Stream:
    """A stream of rows with an event time, made by `tidegate.stream`.

    Its methods describe a flow and return new streams. Nothing runs before `tidegate.start`.

    >>> orders = tg.stream(orders_df, name="orders", time="ts")
    >>> tracks = tg.stream(tracks_df, name="tracks", time="ts")
    >>> near = orders.join(tracks, on="cell", within="1 minute")
    >>> near.to_dataframe().count()
    2
    """

    def __init__(self, node: Node):
        self._node = node

    @property
    def name(self) -> str:
        """The name of the stream or operator that the rows come from.

        >>> orders.filter("fare > 8").name
        'orders'
        """
        return name_of(self._node)

    @property
    def schema(self) -> StructType:
        """The columns and their types, as Spark's `StructType`.

        >>> orders.schema["fare"].dataType
        DoubleType()
        """
        from tidegate.driver.describe import schema_of

        return schema_of(self._node)

    @property
    def columns(self) -> list[str]:
        """The names of the columns.

        >>> orders.columns
        ['ts', 'cell', 'fare']
        """
        return list(self.schema.names)

    def explain(self) -> None:
        """Print the flow that makes this stream: sources, steps, operators with keys and time bounds.

        >>> orders.join(tracks, on="cell", within="1 minute", name="near").explain()
        inner join near on cell, within -1 minute … 1 minute
        ├─ stream orders: time ts, lateness 10 seconds
        └─ stream tracks: time ts, lateness 10 seconds
        """
        print(described(self._node))

    def __repr__(self) -> str:
        return f"<tidegate.Stream {self.name!r}: {summary(self._node)}>"

    # -- stateless steps ------------------------------------------------------------------------------

    def filter(self, condition: str | Column) -> Stream:
        """Keep the rows for which the SQL text or column expression is true.

        >>> orders.filter("fare > 8").to_dataframe().count()
        2
        >>> orders.filter(F.col("fare") > 15).to_dataframe().count()
        1
        """
        return self._step("filter", lambda frame: frame.filter(condition))

    def where(self, condition: str | Column) -> Stream:
        """The same as `filter`.

        >>> orders.where("cell = 2").to_dataframe().count()
        1
        """
        return self.filter(condition)

    def select(self, *columns: str | Column | list[str] | list[Column] | list[str | Column]) -> Stream:
        """Keep these columns: names, or column expressions with an alias. The event time stays known.

        >>> orders.select("cell", (F.col("fare") * 2).alias("double_fare")).columns
        ['cell', 'double_fare']
        """
        wanted: Any = columns[0] if len(columns) == 1 and isinstance(columns[0], list) else columns

        def project(frame: Any) -> Any:
            chosen = frame.select(*wanted)
            # "*" includes the hidden columns.
            hidden = [name for name in frame.columns if name.startswith(HIDDEN)]
            missing = [name for name in hidden if name not in chosen.columns]
            return frame.select(*wanted, *missing) if missing else chosen

        names = tuple(name for name in wanted if isinstance(name, str) and name.isidentifier())
        by_name = len(set(names)) == len(wanted)
        return self._step("select", project, names if by_name else None)

    def with_column(self, name: str, expression: Column) -> Stream:
        """Add or replace a column.

        >>> orders.with_column("tip", F.col("fare") * 0.1).columns
        ['ts', 'cell', 'fare', 'tip']
        """
        return self._step("with_column", lambda frame: frame.withColumn(name, expression))

    def with_columns(self, expressions: Mapping[str, Column]) -> Stream:
        """Add or replace several columns.

        >>> orders.with_columns({"tip": F.col("fare") * 0.1, "city": F.lit("NYC")}).columns
        ['ts', 'cell', 'fare', 'tip', 'city']
        """
        if not isinstance(expressions, Mapping):
            raise FlowError(
                "with_columns takes a dict",
                code="STEP_COLUMNS_NOT_A_DICT",
                got=type(expressions).__name__,
                do='Write with_columns({"fare_eur": F.col("fare") * 0.9})',
            )
        return self._step("with_columns", lambda frame: frame.withColumns(dict(expressions)))

    def with_column_renamed(self, existing: str, new: str) -> Stream:
        """Rename a column. The event time stays known when its column is renamed.

        >>> orders.with_column_renamed("fare", "price").columns
        ['ts', 'cell', 'price']
        """
        return self._step("with_column_renamed", lambda frame: frame.withColumnRenamed(existing, new))

    def drop(self, *columns: str) -> Stream:
        """Remove columns; names that do not exist are ignored, as in Spark.

        >>> orders.drop("fare").columns
        ['ts', 'cell']
        """
        refuse_hidden(columns)
        return self._step("drop", lambda frame: frame.drop(*columns))

    def transform(self, function: Callable[[DataFrame], DataFrame], version: str | None = None) -> Stream:
        """Apply any stateless function from data frame to data frame, for example a join with a table.

        `version`: give a new one when the function changes its meaning, because functions cannot be compared
        between two runs on one checkpoint.

        >>> cities = spark.createDataFrame([(1, "NYC")], "cell long, city string")
        >>> orders.transform(lambda frame: frame.join(F.broadcast(cities), "cell")).to_dataframe().count()
        2
        """
        if not callable(function):
            raise FlowError(
                "transform needs a function",
                code="STEP_TRANSFORM_NOT_CALLABLE",
                got=repr(function),
                do="Write transform(lambda frame: frame.join(table, …))",
            )
        return Stream(StatelessStep(self._node, "transform", function, version=version))

    def union_by_name(
        self, other: Stream, *, allow_missing_columns: bool = False, name: str | None = None
    ) -> Stream:
        """The rows of both streams as one stream, columns by name, as Spark's `unionByName`.

        >>> more = tg.stream(orders_df, name="more", time="ts")
        >>> orders.union_by_name(more).to_dataframe().count() == 2 * orders_df.count()
        True

        `other`: a source stream, with or without stateless steps, or another union, as is this stream.
        `allow_missing_columns`: a column that only one of them has is null in the rows of the other.
        `name`: of the union; by default the names of its streams, such as "orders_more_orders".

        Every stream keeps its own lateness, watermark and counts. Operators behind the union go by the
        slowest of these watermarks, so a silent stream holds them back until its `idle_timeout`.
        """
        node = union_node(self._node, getattr(other, "_node", other), allow_missing_columns, name)
        for side in (self, other):
            side._refuse_as_input_of("united with others", "They go straight to an output")
        return Stream(node)

    # The names of Spark's DataFrame.
    def unionByName(self, other: Stream, allowMissingColumns: bool = False) -> Stream:  # noqa: N802, N803
        """The same as `union_by_name`."""
        return self.union_by_name(other, allow_missing_columns=allowMissingColumns)

    withColumn = with_column  # noqa: N815
    withColumns = with_columns  # noqa: N815
    withColumnRenamed = with_column_renamed  # noqa: N815

    @property
    def late(self) -> Stream:
        """The rows of this source that came too late for an operator that reads it (docs/joins.md).

        >>> output = orders.late.write_to("parquet", "out/late")
        >>> output.name
        'orders_late'
        """
        return self._refused("late")

    @property
    def rejected(self) -> Stream:
        """The rows of this source whose time is null or too far in the future.

        >>> orders.rejected.write_to("parquet", "out/rejected").name
        'orders_rejected'
        """
        return self._refused("rejected")

    # -- operators ------------------------------------------------------------------------------------

    def join(
        self,
        other: Stream,
        on: OnePart | Column | Sequence[OnePart | Column],
        *,
        how: How = "inner",
        within: Duration | TimeCondition | None = None,
        where: str | Column | None = None,
        name: str | None = None,
        suffix: str = "_right",
    ) -> Stream:
        """Join with another stream on a condition and on time.

            orders.join(tracks, "cell", within=tg.between("-5 minutes", "1 minute"))
            orders.join(tracks, {"cell": "place"}, within="5 minutes", how="left", where="speed < 10")
            orders.join(
                tracks,
                '''orders.cell = tracks.cell AND speed < 10
                AND tracks.ts BETWEEN orders.ts - INTERVAL 5 MINUTES AND orders.ts + INTERVAL 1 MINUTE''',
            )

        `other`: the right stream.
        `on`: a column that both streams have, a list of columns, {"left_name": "right_name"}, `tg.equal(…)`,
        `tg.overlap(…)`, `tg.inner_product(…)`, `tg.pairwise(…)`, or a list of these with at most one of the
        last three. Or an SQL condition, as text or `F.expr(text)`: comparisons connected by AND, with column
        names qualified by the names of their streams, or plain if only one stream has such a column. Its
        equalities between the streams are the keys (`<=>`: null equals null), its bounds on the event-time
        columns are the time condition, and the rest is treated as `where`. A day counts as 24 hours.
        `how`: `inner`, `left`, `right`, `full`, `left_semi`, `left_anti`, or another of Spark's words.
        `within`: how far the times of two rows may be apart. `tg.between(lower, upper)` means
        `lower <= right.time - left.time <= upper`, a duration `d` means `tg.between(-d, d)`,
        `tg.same_window(size)` means the same tumbling window, and `tg.UNBOUNDED` the full history (inner and
        left semi joins only). Required, unless SQL text in `on` bounds the time.
        `where`: a condition on the joined row, as SQL text or column; part of the join condition, so it also
        decides which rows stay unmatched.
        `name`: the name of the join in checkpoint, progress, receipts, and in the SQL of later joins.
        `suffix`: is added to the names of right columns that the left stream has too.

        Columns of the result: keys with the same name on both sides once, keys with different names both,
        then the other left columns, then the other right ones. Semi and anti joins return the left columns.

        >>> near = orders.join(tracks, "cell", within=tg.between("-5 minutes", "1 minute"), where="speed < 9")
        >>> near.to_dataframe().select("fare", "speed").orderBy("fare").collect()
        [Row(fare=10.0, speed=5.0), Row(fare=20.0, speed=5.0)]
        """
        if not isinstance(other, Stream):
            raise FlowError(
                "A stream joins with a stream",
                code="JOIN_OTHER_INVALID",
                got=type(other).__name__,
                do="Make one of a data frame: tg.stream(frame, …); join a static table by transform",
            )
        for side in (self, other):
            side._refuse_as_input_of(
                "joined", "Their partners may be forgotten already, so pairs would be lost at random"
            )
        return Stream(join_node(self._node, other._node, on, how, within, where, name, suffix))

    def match(
        self,
        queries: Sequence[RangeQuery],
        *,
        name: str | None = None,
        publish_to: str | os.PathLike[str] | None = None,
        sample_column: str | None = None,
    ) -> Stream:
        """Each row once for every query that it satisfies, with the name of the query in `query_name`.

        `queries`: any number of `tidegate.RangeQuery` predicates over the columns of this stream. With a
        goal, the rows that are worth least to the queries are dropped in front of the match under overload.
        `publish_to`: a folder through which rows are dropped at the sources instead: `tidegate sift --follow`
        reads its filters there and counts offered rows. `sample_column`: the boolean column in which it
        marks samples; both are given or none. `name`: the name of this operator.

        >>> hits = orders.match([tg.RangeQuery("dear", "fare > 8"), tg.RangeQuery("far", "cell > 1")])
        >>> hits.to_dataframe().groupBy("query_name").count().orderBy("query_name").collect()
        [Row(query_name='dear', count=2), Row(query_name='far', count=1)]
        """
        if (publish_to is None) != (sample_column is None):
            raise FlowError(
                "Sifting at the sources needs publish_to and sample_column",
                code="MATCH_PUBLISH_INCOMPLETE",
                got=f"publish_to={publish_to!r}, sample_column={sample_column!r}",
                why="Without marked samples the share that sources drop is not known",
                do="Give both, and run `tidegate sift --follow FOLDER --mark COLUMN` at the sources",
            )
        self._refuse_as_input_of("matched", "They go straight to an output, past all operators")
        folder = None if publish_to is None else path_text(publish_to, "publish_to of a match")
        operator = operator_name(name, "match")
        return Stream(Match(self._node, listed_queries(queries), folder, sample_column, operator))

    def window(
        self,
        size: Duration | RowsSpec,
        *,
        slide: Duration | None = None,
        offset: Duration | None = None,
        by: str | Sequence[str] = (),
        name: str | None = None,
        approximate: bool = False,
        drop: WindowDropName = "windows",
    ) -> Windowed:
        """Windows of event time, to be aggregated: `.agg(n=F.count("*"))`.

        A new window begins every `slide` (default: `size`, which gives tumbling windows).
        `tg.row_window(100, slide=10)` in place of a size gives windows of 100 rows. `offset` shifts the
        alignment to the epoch, as Spark's `startTime` does: "15 minutes" gives hours from a quarter past to a
        quarter past. It may be negative, and counts modulo the slide.
        `by`: the grouping columns; each group has its own windows. `approximate`: under a goal, rows may be
        sampled under overload; results are then estimates with intervals (see `agg`). `drop`: with "groups",
        an output with `max_gap` loses other windows of each group under overload, so that also windows much
        longer than a batch are thinned evenly; with "windows", all groups lose the same. `name`: the name of
        the operator in checkpoint, progress and receipts.

        >>> busy = orders.window("1 minute", by="cell").agg(n=F.count("*"))
        >>> busy.columns
        ['window_start', 'window_end', 'cell', 'n']
        """
        self._refuse_as_input_of("aggregated", "Their windows may be closed already, and cannot come twice")
        names = tuple(by) if isinstance(by, Sequence) and not isinstance(by, str) else (by,)
        spec = _spec(size, slide, offset)
        operator = operator_name(name, "window")
        windowed = Windowed(self._node, spec, names, _aggregated, approximate, operator, drop)
        refuse_hidden(windowed.by)
        return windowed

    # -- outputs --------------------------------------------------------------------------------------

    def write_to(
        self,
        target: str | Callable[[DataFrame, int], None] | Callable[[DataFrame, int, int], None],
        path: str | os.PathLike[str] | None = None,
        *,
        name: str | None = None,
        mode: Literal["append"] = "append",
        keys: Sequence[str] = (),
        partition_by: str | Sequence[str] = (),
        options: Mapping[str, Any] | None = None,
        max_loss: float | None = None,
        max_gap: int | Duration | None = None,
        priority: float = 1.0,
        repair_column: str | None = None,
        commit_every: Duration | None = None,
    ) -> Output:
        """Send the rows to a Spark format, or to a function of (data frame, batch id), which may have a third
        parameter `run`: a number that is larger in each later run.

        `target`, `path`: files lie flat in the folder and hold every row exactly once; the folder of another
        run is refused. Without a path (`noop`, `jdbc`, …) rows are appended at least once: those of a failed
        batch are written again.
        `name`: its name in progress and receipts; by default that of the stream it writes.
        `mode`, `keys`: rows are appended. Other modes come with sinks that can merge by key.
        `partition_by`: columns by which files are laid out. `options`: the options of the format.
        `max_loss`: the largest share of its results that may be shed; overrides that of the goal.
        `max_gap`, for windows under a goal: the longest run of windows that may be missing under overload, as
        a number or a duration; windows that are written are exact. None: all are written.
        `priority`: the weight of its loss; with twice the weight it loses half as much for the same time.
        `repair_column`: adds a column to a repaired join: the batch that skipped the row; null in all others.
        `commit_every`: files of several batches are published together, so that they are few ("30 seconds").

        >>> query = tg.start(orders.write_to("parquet", "out/orders", name="taken"))
        >>> spark.read.parquet("out/orders").count()
        3
        """
        return checked_output(
            self._node,
            target,
            path,
            name=name,
            mode=mode,
            keys=keys,
            partition_by=partition_by,
            options=options,
            max_loss=max_loss,
            max_gap=max_gap,
            priority=priority,
            repair_column=repair_column,
            commit_every=commit_every,
        )

    def write_to_table(
        self,
        table: str,
        *,
        format: str | None = None,
        name: str | None = None,
        mode: Literal["append"] = "append",
        keys: Sequence[str] = (),
        partition_by: str | Sequence[str] = (),
        options: Mapping[str, Any] | None = None,
        max_loss: float | None = None,
        max_gap: int | Duration | None = None,
        priority: float = 1.0,
        repair_column: str | None = None,
    ) -> Output:
        """Append the rows to a table of Spark's catalogue; see `write_to` for the other parameters.

        `table`: its name, such as "db.near". `format`: of a table that does not exist yet; by default
        Spark's. A table of files gets the partition column `batch`, whose partition a replay overwrites, so
        that it holds every row exactly once.

        >>> orders.write_to_table("db.orders", format="parquet")
        <tidegate.Output 'orders': table db.orders>
        """
        return checked_output(
            self._node,
            format,
            None,
            table=checked_table(table),
            name=name,
            mode=mode,
            keys=keys,
            partition_by=partition_by,
            options=options,
            max_loss=max_loss,
            max_gap=max_gap,
            priority=priority,
            repair_column=repair_column,
        )

    @property
    def write_stream(self) -> StreamWriter:
        """A writer with the methods of Spark's `DataStreamWriter`, for code that was written for Spark.

        >>> query = orders.writeStream.format("parquet").queryName("taken").start("out/taken")
        >>> query.name
        'taken'
        """
        from tidegate.api.write_stream import StreamWriter

        return StreamWriter(self)

    writeStream = write_stream  # noqa: N815

    def to_dataframe(self) -> DataFrame:
        """The finished result over batch inputs, as a Spark data frame; it runs at once and nothing is late.

        The result is kept by Spark's executors until the data frame is no longer used.

        >>> near = orders.join(tracks, on="cell", within="1 minute")
        >>> near.to_dataframe().select("cell", "fare", "speed").orderBy("cell").collect()
        [Row(cell=1, fare=10.0, speed=5.0), Row(cell=2, fare=7.5, speed=30.0)]
        """
        from tidegate.driver.describe import batch_result

        return batch_result(self._node, self.name)

    def _step(self, kind: str, apply: Callable[[Any], Any], columns: tuple[str, ...] | None = None) -> Stream:
        return Stream(StatelessStep(self._node, kind, apply, columns))

    def _refused(self, kind: str) -> Stream:
        if not isinstance(self._node, Source):
            raise FlowError(
                f"Only a source stream has {kind} rows",
                code="STREAM_REFUSED_NOT_SOURCE",
                got=repr(self),
                why="Event times are checked once, where rows enter, before any step",
                do=f"Take `.{kind}` of the stream that tg.stream(…) returned",
            )
        return Stream(Refused(self._node, kind))

    def _refuse_as_input_of(self, done: str, why: str) -> None:
        node = self._node
        while isinstance(node, (StatelessStep, Match, Window)):
            node = node.parent
        if isinstance(node, Refused):
            raise FlowError(
                f"The {node.kind} rows of a stream cannot be {done}",
                code="STREAM_REFUSED_AS_INPUT",
                got=f"{node.parent.name}.{node.kind}",
                why=why,
                do="Write them out, or give the stream a larger lateness",
            )


#: Columns with this prefix belong to the engine.
HIDDEN = "_tidegate_"


def refuse_hidden(columns: Sequence[str]) -> None:
    reserved = [column for column in columns if column.lower().startswith(HIDDEN)]
    if reserved:
        raise FlowError(
            f"Columns that start with {HIDDEN!r} are reserved",
            code="COLUMN_NAME_RESERVED",
            got=", ".join(reserved),
            do="Rename them",
        )


def _aggregated(window: Window) -> Stream:
    refuse_hidden([name for name, _ in window.aggregates])
    return Stream(window)
