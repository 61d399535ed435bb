"""Writes batches to tables of Spark's catalogue, each row exactly once where the table can do that.

A table of files that this output made has the partition column `batch`: a batch overwrites its partition, so
a replay replaces what the first attempt wrote. To a table that was there before without that column rows are
appended, and a replay may append them twice; Delta tables recognise a batch that they already have.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidegate.api.nodes import Output
from tidegate.driver.compile.keys import quoted
from tidegate.errors import FlowError

#: The partition column of tables of files.
BATCH = "batch"
#: Formats whose partitions Spark can overwrite.
_PARTITIONED = ("parquet", "orc", "json", "csv", "text", "avro")


def append(output: Output, frame: DataFrame, batch: int, query_id: str) -> None:
    """Write one batch to the table of an output; `query_id`: of the query that writes."""
    spark, table = frame.sparkSession, str(output.table)
    if not spark.catalog.tableExists(table):
        _create(output, frame, batch)
    elif _has_batches(spark, table):
        rows = _with_batch(output, frame, batch)
        columns = spark.table(table).columns
        _check_columns(output, rows.columns, columns)
        # The session is the query's own clone. Without rows nothing is overwritten.
        spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
        rows.select(*map(quoted, columns)).write.mode("overwrite").insertInto(table)
    else:
        options = {**exactly_once(output, batch, query_id), **output.options}
        frame.write.options(**options).mode("append").saveAsTable(table)


def exactly_once(output: Output, batch: int, query_id: str) -> dict[str, str]:
    """Options by which Delta skips a write whose application and version it has seen.

    Two queries may write to one table under equal names, and each counts its batches from 0. A batch run has
    no id: nothing of it is repeated.
    """
    if not query_id:
        return {}
    return {"txnAppId": f"tidegate-{query_id}-{output.name}", "txnVersion": str(batch)}


def _create(output: Output, frame: DataFrame, batch: int) -> None:
    default = str(frame.sparkSession.conf.get("spark.sql.sources.default"))
    kind = output.format or default
    writer = frame.write.format(kind).options(**output.options)
    partitions = list(output.partition_by)
    if kind in _PARTITIONED:
        # Partition columns come last, and rows of a batch lie in one partition whatever else divides them.
        rows = _with_batch(output, frame, batch)
        writer = rows.write.format(kind).options(**output.options)
        partitions = [BATCH, *partitions]
    if partitions:
        writer = writer.partitionBy(*partitions)
    writer.mode("append").saveAsTable(str(output.table))


def _with_batch(output: Output, frame: DataFrame, batch: int) -> DataFrame:
    if BATCH in (name.lower() for name in frame.columns):
        raise FlowError(
            f"Output {output.name!r} has a column {BATCH!r}, which its table needs",
            code="OUTPUT_TABLE_BATCH_COLUMN",
            got=f"table {output.table}, columns {', '.join(frame.columns)}",
            why="A replay replaces the rows of its batch by this column",
            do=f"Rename yours: .with_column_renamed({BATCH!r}, 'number'), or write files",
        )
    return frame.withColumn(BATCH, F.lit(batch).cast("long"))


def _has_batches(spark: SparkSession, table: str) -> bool:
    columns = spark.catalog.listColumns(table)
    return any(column.name == BATCH and column.isPartition for column in columns)


def _check_columns(output: Output, given: list[str], known: list[str]) -> None:
    if sorted(given) != sorted(known):
        raise FlowError(
            f"Table {output.table} has other columns than output {output.name!r}",
            code="OUTPUT_TABLE_COLUMNS",
            got=f"table: {', '.join(known)}; output: {', '.join(given)}",
            do="Select the columns of the table, or write to another one",
        )
