"""The one input of a streaming query, and the plan of each stream in a batch of it.

    orders ─┐                                   the offset log of Spark goes by position, so each stream
    tracks ─┼─▶ one union ─▶ foreachBatch       stands here once, where it stood in the first run, whatever
    beats  ─┘                                   reads it and however it is called now

A heartbeat triggers batches even when no row arrives. The union has no columns of the streams: in a batch the
engine takes the plan of each stream from below it and builds what reads the stream on top. So every reader
gets only the columns and rows that it needs, as far down as Spark can push that.

Frames that keep state in Spark (dropDuplicates, aggregates), join streams or observe metrics of the user are
the exception: Spark must run them itself, once a batch. Their columns are in the union, and their rows are
read from the frame that Spark passes to the batch.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidegate.driver.compile import ports
from tidegate.driver.compile.keys import quoted
from tidegate.driver.compile.ports import Lanes
from tidegate.driver.frames.grafts import analyzed, holds, standing_in
from tidegate.driver.java_collections import java_items
from tidegate.state.spark_log import HEARTBEAT
from tidegate.worker.runtime.layout import TAG

_log = logging.getLogger(__name__)
#: Whether Spark knows all sources by name, so that they may come and go between two runs.
_BY_NAME = "spark.sql.streaming.queryEvolution.enableSourceEvolution"
#: Nodes of Spark's plans that give the same rows wherever they run.
_STATELESS = {
    *("Project", "Filter", "SubqueryAlias", "EventTimeWatermark", "Union", "Generate", "Repartition"),
    *("RepartitionByExpression", "ResolvedHint", "UnresolvedHint", "MapInArrow", "MapInPandas"),
    *("StreamingRelation", "StreamingRelationV2", "StreamingDataSourceV2Relation"),
    *("TypedFilter", "MapElements", "MapPartitions", "SerializeFromObject", "DeserializeToObject"),
}
#: Nodes that cost next to nothing: reading such a frame twice is cheaper than keeping its rows.
_CHEAP = {"Project", "Filter", "SubqueryAlias", "EventTimeWatermark", "StreamingRelation"}
#: Formats of files that give single columns.
_COLUMNAR = ("parquet", "orc")


class QueryInput:
    """The one input of a streaming query; see the module docstring."""

    def __init__(self, spark: SparkSession, streams: Mapping[str, DataFrame]):
        self._spark = spark
        #: In the order of Spark's offset log: that of their first names (`model/names.py`).
        self.streams: dict[str, DataFrame] = dict(streams)
        #: Streams that Spark itself must run.
        self.run_by_spark: set[str] = {
            name for name, frame in streams.items() if not _is_stateless(analyzed(frame))
        }
        for name in sorted(self.run_by_spark):
            _log.debug("Spark runs the frame of stream %s itself: it keeps state or observes metrics", name)
        self._lanes = Lanes()
        self._lanes_of = {
            name: self._lanes.assign([field.dataType for field in frame.schema.fields])
            for name, frame in self.streams.items()
            if name in self.run_by_spark
        }

    def frame(self) -> DataFrame:
        """All streams and the heartbeat, in one union."""
        reader = self._spark.readStream.format("rate").options(rowsPerSecond=1, numPartitions=1)
        by_name = str(self._spark.conf.get(_BY_NAME, "false")).lower() == "true"
        beats = (reader.name(HEARTBEAT) if by_name else reader).load()
        made = [self._branch(number, name) for number, name in enumerate(self.streams)]
        return ports.union([*made, beats.select(F.lit(-1).cast("short").alias(TAG), *self._columns({}))])

    def _branch(self, number: int, name: str) -> DataFrame:
        frame = self.streams[name]
        lanes = self._lanes_of.get(name, ())
        columns = [F.col(quoted(column)) for column in frame.columns] if lanes else []
        values = dict(zip(lanes, columns, strict=True))
        return frame.select(F.lit(number).cast("short").alias(TAG), *self._columns(values))

    def _columns(self, values: Mapping[str, Any]) -> list[Any]:
        return [
            values.get(lane, F.lit(None)).cast(kind).alias(lane) for lane, kind in self._lanes.types.items()
        ]

    def plans(self, batch: DataFrame, query: Any) -> StreamPlans:
        """The plan of each stream in a running batch; `query`: the Java streaming query."""
        execution = query.streamingQuery().lastExecution()
        plan = execution.analyzed()
        while plan.nodeName() != "Union":
            plan = plan.children().apply(0)
        branches = java_items(plan.children())
        found: dict[str, Any] = {}
        reading: list[str | None] = []
        size_bytes: int | None = 0
        for number, (name, branch) in enumerate(zip([*self.streams, None], branches, strict=False)):
            new = _new_sources(branch)
            reading += [name] * len(new)
            if name is None:
                continue
            if name in self.run_by_spark:
                size_bytes = None
                rows = batch.where(F.col(TAG) == F.lit(number)).select(*self._lanes_of[name])
                found[name] = standing_in(analyzed(self.streams[name]), rows)
            else:
                found[name] = branch.children().apply(0)
                if size_bytes is not None:
                    size_bytes += sum(_size_bytes(leaf) for leaf in new)
        empty = frozenset(self.streams) - self.run_by_spark - set(reading)
        now_ms = execution.offsetSeqMetadata().batchTimestampMs()
        return StreamPlans(found, empty, now_ms, tuple(reading), size_bytes)

    def count_rows(self, query: Any, given: StreamPlans, rows: Mapping[str, int]) -> None:
        """Add the rows of each stream to Spark's own progress, which sees only what Spark itself reads."""
        with suppress(Py4JError):
            leaves = java_items(query.streamingQuery().lastExecution().executedPlan().collectLeaves())
            scans = [leaf for leaf in leaves if leaf.nodeName() != "LocalTableScan"]
            if len(scans) != len(given.reading):
                return
            for name, count in rows.items():
                if count and name in given.reading and name not in self.run_by_spark:
                    metric = scans[given.reading.index(name)].metrics().get("numOutputRows")
                    if metric.isDefined():
                        metric.get().add(count)

    @cached_property
    def leaves(self) -> list[str]:
        """The stream of each source, in Spark's order."""
        return [name for name, frame in self.streams.items() for _ in range(streaming_leaves(frame))]


def streaming_leaves(frame: DataFrame) -> int:
    """The number of sources that a frame reads."""
    return sum(bool(leaf.isStreaming()) for leaf in java_items(analyzed(frame).collectLeaves()))


@dataclass(frozen=True)
class StreamPlans:
    """The plan of each stream in one batch, and the streams whose sources have no new rows."""

    plans: Mapping[str, Any]
    empty: frozenset[str] = frozenset()
    #: The time of the batch, which a replay has too; None in a batch run.
    now_ms: int | None = None
    #: The stream of each source with new rows, in Spark's order; None: the heartbeat.
    reading: tuple[str | None, ...] = ()
    #: How much the sources give, as Spark estimates it; None: not known.
    size_bytes: int | None = None


def is_cheap(frame: DataFrame) -> bool:
    """Whether rows of a stream are cheaper read twice than kept: files by column, nothing computed."""
    plan = analyzed(frame)
    if holds(plan, frame.sparkSession, "PYTHON_UDF", "SCALA_UDF"):
        return False
    nodes = _nodes(plan)
    files = [node for node in nodes if node.nodeName() == "StreamingRelation"]
    columnar = all(str(one.dataSource().className()).lower() in _COLUMNAR for one in files)
    return {str(node.nodeName()) for node in nodes} <= _CHEAP and columnar


def _is_stateless(plan: Any) -> bool:
    """Whether a streaming plan gives the same rows if the engine runs it in the batch."""
    if not plan.isStreaming():
        return True
    kind, children = str(plan.nodeName()), java_items(plan.children())
    enriches = kind == "Join" and sum(bool(child.isStreaming()) for child in children) == 1
    return (kind in _STATELESS or enriches) and all(map(_is_stateless, children))


def _new_sources(plan: Any) -> list[Any]:
    """The sources of a plan of a batch that have new rows."""
    leaves = [leaf for leaf in java_items(plan.collectLeaves()) if leaf.isStreaming()]
    return [leaf for leaf in leaves if leaf.nodeName() != "LocalRelation"]


def _size_bytes(leaf: Any) -> int:
    """The size of what a source gives, of its files for example; of one that does not say it: very large."""
    return int(leaf.stats().sizeInBytes())


def _nodes(plan: Any) -> list[Any]:
    return [plan, *(node for child in java_items(plan.children()) for node in _nodes(child))]
