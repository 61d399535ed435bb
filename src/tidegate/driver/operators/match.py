"""The match operator: evaluates range queries on rows, without state and without a shuffle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark import Broadcast, SparkContext, TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from tidegate.api.nodes import Match
from tidegate.control.receipts.ledger import SIFTER
from tidegate.driver.compile.join_columns import arrow_schema, time_name, visible
from tidegate.driver.compile.match_columns import check_mark, kinds_of, match_schema
from tidegate.driver.frames.pass_input import PassInput
from tidegate.driver.frames.sifter_frames import marked, sifted
from tidegate.driver.java_process import unless_lost
from tidegate.driver.operators.protocol import REPORTS, BatchOrder, Builder, Operator
from tidegate.driver.operators.tap import Tap
from tidegate.model.graph import Reader
from tidegate.model.times import BEGINNING_US
from tidegate.sift.filter.sifter import Sifter
from tidegate.sift.index.query_index import QueryIndex
from tidegate.sift.queries.query_set import QuerySet
from tidegate.window.drop import network
from tidegate.worker.match.task import MatchWork, Queries, match_task
from tidegate.worker.runtime.layout import QUERY_NAME, MatchLayout
from tidegate.worker.runtime.task_runner import by_partition


class MatchOperator(Operator):
    """Continuous range queries over one stream."""

    node: Match
    stateful = False
    judges_observed = True

    def __init__(
        self,
        node: Match,
        layout: MatchLayout,
        tap: Tap | None,
        queries: QuerySet,
        schema: T.StructType,
        context: SparkContext,
    ):
        super().__init__(layout.operator, node, schema)
        #: The tap of its rows; None if another operator feeds it.
        self.layout: MatchLayout = layout
        self.tap: Tap | None = tap
        self.queries: QuerySet = queries
        self._context = context
        self._broadcast: Broadcast[Queries] | None = None

    @property
    def streams(self) -> tuple[str | None, ...]:
        return (self.layout.stream,)

    def readers(self, sources: Sequence[tuple[str, bool]], drops: bool) -> Iterator[Reader]:
        ((source, whole),) = sources
        yield Reader(self.name, 0, source, SIFTER, whole)

    def drop_node(self, sources: Sequence[str]) -> network.Node:
        # Rows of a stream are sifted. Rows of an operator are all needed, unless windows follow.
        return super().drop_node(sources) if self.tap else network.DropStepNode(self.name, sources[0])

    def work(self, order: BatchOrder, feeding: Sequence[str]) -> MatchWork:
        planned = order.plan.shed.sifters.get(self.name)
        sifter = None if planned is None else Sifter.from_json(planned)
        # In a replay with other queries over other columns, the planned sifter does not apply.
        fits = sifter is not None and sifter.axes == self.layout.axes
        return MatchWork(
            self.layout,
            self._sent(),
            order.plan.batch,
            late_before_us=order.plan.late.streams.get(self.layout.stream or "", BEGINNING_US),
            newest_us=order.newest_us(self.layout.stream, order.plan),
            sifter=sifter if fits else None,
            seed=order.plan.seed,
            **order.staging(self.name),
        )

    def frame(self, rows: PassInput, work: MatchWork) -> DataFrame | None:
        """No shuffle: tasks take the rows as they come."""
        tried = self._entering(rows, work)
        if tried is None:
            return None
        schema = self.schema if work.stage_root is None else REPORTS
        return rows.run(self, tried, by_partition(match_task, work, TaskContext.get), schema)

    def is_due(self, work: MatchWork) -> bool:
        return False

    def _entering(self, rows: PassInput, work: MatchWork) -> DataFrame | None:
        """The rows that pass the sifter; None in a pass without new rows if a stream feeds it."""

        def sift(tried: DataFrame) -> DataFrame:
            if work.sifter is None:
                return tried
            mark = self.node.sample_column
            known = None if self.tap is None else self.tap.entry.passed_on
            return sifted(tried, work, known) if mark is None else marked(tried, mark)

        if self.tap is None:
            tried = rows.upstream(self.node.parent)
            return None if tried is None else sift(tried)
        # If Spark has not counted rows without a usable time, the tasks do.
        return rows.entering(self.tap, self.tap.stream in rows.compiled.observed, behind=sift)

    def listed(self, work: MatchWork) -> str | None:
        return QUERY_NAME if work.lists_queries else None

    def close(self) -> None:
        if self._broadcast is not None:
            # If Spark itself has stopped, there is nothing to release.
            with unless_lost(), suppress(Py4JError):
                self._broadcast.destroy()

    def _sent(self) -> Broadcast[Queries]:
        """The queries, broadcast once for the life of the query."""
        if self._broadcast is None:
            names = pa.array(self.queries.names, pa.string())
            self._broadcast = self._context.broadcast(Queries(QueryIndex.of(self.queries.boxes), names))
        return self._broadcast


def build_match(node: Match, name: str, builder: Builder) -> MatchOperator:
    """Check the queries of a match against the columns of its stream."""
    frame = builder.frame(node.parent)
    time = time_name(node.parent)
    tap = builder.tap(node.parent, observed_as=name, without=time)
    queries = QuerySet.of(node.queries, kinds_of(T.StructType(visible(frame))))
    check_mark(node, frame)
    schema = match_schema(frame, timed=builder.needs_time(name))
    stream = tap.stream if tap is not None else None
    layout = MatchLayout(name, stream, queries.boxes.axes, arrow_schema(schema, name), time)
    return MatchOperator(node, layout, tap, queries, schema, builder.spark.sparkContext)
