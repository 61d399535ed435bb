"""Linked output: hard links make the staged Parquet files of the tasks the output of a batch.

Tasks stage results as Parquet (`staging.py`). If an output needs exactly these rows as Parquet on the same
disk, Spark need not read and write them again: `publishing.Publisher.link` makes a draft of them.

An output is linked if nothing lies between it and the operator (no residual condition, no stateless step but
a select of columns by name, which the tasks apply), it has no options, partition columns or repair column,
and its path is on a local disk. If the disk refuses a link, Spark writes the files.
"""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import SparkSession

from tidegate.api.nodes import Output
from tidegate.api.streams import HIDDEN
from tidegate.driver.compile.compiled import Compiled
from tidegate.driver.compile.ports import steps_of
from tidegate.driver.io.folders import LocalFolder, folder_at

#: Codec names of Spark → Arrow. Outputs with other codecs are not linked.
_CODECS = {"snappy": "snappy", "zstd": "zstd", "gzip": "gzip", "none": "none", "uncompressed": "none"}


def codec_of(spark: SparkSession) -> str | None:
    """The Parquet codec of the session; None if Arrow does not support it."""
    whole = spark.conf.get("spark.sql.files.maxRecordsPerFile") in (None, "0")
    return _CODECS.get(str(spark.conf.get("spark.sql.parquet.compression.codec")).lower()) if whole else None


def linked_outputs(compiled: Compiled, staged: Collection[str]) -> frozenset[str]:
    """Outputs to which the files of these operators can be linked."""
    return frozenset(
        output.name
        for output in compiled.outputs
        if compiled.feeding(output.node) in staged and _links(compiled, output)
    )


def columns_of(compiled: Compiled, output: Output) -> tuple[str, ...] | None:
    """The columns of an output, if tasks can write it: they produce these, and nothing else lies between.

    The files of an operator have one set of columns: all, unless it has a single output.
    """
    operator, steps = compiled.shown_by(output), steps_of(output.node)[1]
    if operator is None or not operator.is_plain:
        return None
    made = tuple(name for name in operator.schema.names if not name.startswith(HIDDEN))
    if not steps:
        return made
    chosen = steps[-1].columns if all(step.columns is not None for step in steps) else None
    alone = sum(compiled.shown_by(one) is operator for one in compiled.outputs) == 1
    return chosen if chosen == made or (alone and chosen and set(chosen) <= set(made)) else None


def _links(compiled: Compiled, output: Output) -> bool:
    if columns_of(compiled, output) is None or output.format != "parquet" or output.path is None:
        return False
    if output.options or output.partition_by or output.repair_column is not None:
        return False
    return compiled.spark._jvm is not None and isinstance(folder_at(compiled.spark, output.path), LocalFolder)
