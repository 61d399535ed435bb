"""The one input of a streaming query, and the plan of each stream in a batch of it.

    orders ─┐                                   the offset log of Spark goes by position, so each stream
    tracks ─┼─▶ one union ─▶ foreachBatch       stands here once, in order of names, whatever reads it
    beats  ─┘

A heartbeat triggers batches even when no row arrives. The union has no columns of the streams: in a batch the
engine takes the plan of each stream from below it and builds what reads the stream on top. So every reader
gets only the columns and rows that it needs, as far down as Spark can push that.

Frames that keep state in Spark (dropDuplicates, aggregates), join streams or observe metrics of the user are
the exception: Spark must run them itself, once a batch. Their columns are in the union, and their rows are
read from the frame that Spark passes to the batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidegate.driver.compile import ports
from tidegate.driver.compile.keys import quoted
from tidegate.driver.compile.ports import Lanes
from tidegate.driver.frames.grafts import analyzed, standing_in
from tidegate.driver.java_collections import java_items
from tidegate.worker.runtime.layout import TAG

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
        #: In order of names.
        self.streams: dict[str, DataFrame] = dict(sorted(streams.items()))
        #: Streams that Spark itself must run.
        self.run_by_spark: set[str] = {
            name for name, frame in streams.items() if not _is_stateless(analyzed(frame))
        }
        self._lanes = Lanes()
        self._lanes_of = {
            name: self._lanes.assign([field.dataType for field in frame.schema.fields])
            for name, frame in self.streams.items()
            if name in self.run_by_spark
        }

    def frame(self) -> DataFrame:
        """All streams and the heartbeat, in one union."""
        beats = self._spark.readStream.format("rate").options(rowsPerSecond=1, numPartitions=1).load()
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
        found, empty = {}, set()
        for number, (name, branch) in enumerate(zip(self.streams, branches, strict=False)):
            if name in self.run_by_spark:
                rows = batch.where(F.col(TAG) == F.lit(number)).select(*self._lanes_of[name])
                found[name] = standing_in(analyzed(self.streams[name]), rows)
            else:
                found[name] = branch.children().apply(0)
                if _is_empty(found[name]):
                    empty.add(name)
        return StreamPlans(found, frozenset(empty), execution.offsetSeqMetadata().batchTimestampMs())


@dataclass(frozen=True)
class StreamPlans:
    """The plan of each stream in one batch, and the streams whose sources have no new rows."""

    plans: Mapping[str, Any]
    empty: frozenset[str] = frozenset()
    #: The time of the batch, which a replay has too; None in a batch run.
    now_ms: int | None = None


def is_cheap(frame: DataFrame) -> bool:
    """Whether rows of a stream are cheaper read twice than kept: files by column, nothing computed."""
    plan = analyzed(frame)
    jvm: Any = frame.sparkSession._jvm
    patterns = jvm.org.apache.spark.sql.catalyst.trees.TreePattern
    if any(plan.containsPattern(getattr(patterns, kind)()) for kind in ("PYTHON_UDF", "SCALA_UDF")):
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


def _is_empty(plan: Any) -> bool:
    """Whether all sources of a plan of a batch have no new rows."""
    leaves = [leaf for leaf in java_items(plan.collectLeaves()) if leaf.isStreaming()]
    return all(leaf.nodeName() == "LocalRelation" for leaf in leaves)


def _nodes(plan: Any) -> list[Any]:
    return [plan, *(node for child in java_items(plan.children()) for node in _nodes(child))]
