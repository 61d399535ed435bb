"""The floor of `tidegate bench join`: the cost of a batch before any kernel does work.

Rows get the engine's layout (tag, time, key code, columns), are routed by the engine's own routing, and reach
Python through Arrow with the engine's own settings; the kernel only counts them. The difference to the engine
is the cost of the join itself and of its state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidegate.driver.engine.engine import CONF
from tidegate.driver.engine.settings import PARTITIONS_PER_CORE
from tidegate.driver.frames.routing_frames import instance_of
from tidegate.model.routing import together
from tidegate.worker.runtime.layout import CODE, TAG, TIME


def count_by_instance(rows: DataFrame, instances: int) -> int:
    """Rows that reached the kernels, in one action."""
    for name, value in CONF.items():
        rows.sparkSession.conf.set(name, value)
    columns = [name for name in ("k", "n", "p") if name in rows.columns]
    time, code = F.unix_micros("ts").alias(TIME), F.xxhash64("k").alias(CODE)
    laid_out = rows.select(F.col("tag").alias(TAG), time, code, *columns)
    partitions = PARTITIONS_PER_CORE * instances
    routing = together(0, instances, tuple(p * instances // partitions for p in range(partitions)))
    placed = laid_out.repartitionById(instances, instance_of(routing, partitions))
    return sum(row.rows for row in placed.mapInArrow(empty_kernel, "rows long").collect())


def empty_kernel(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    count = sum(batch.num_rows for batch in batches)
    yield pa.RecordBatch.from_arrays([pa.array([count], pa.int64())], names=["rows"])
