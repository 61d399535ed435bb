"""Writes output: to a function, to files exactly once, or to any other Spark format.

Files of batch N are in the directory `batch=N` and replace what a first attempt left there. The plan of a
batch fixes its rows, so a replay writes the same rows again, and files hold every row exactly once. The
directories can be read as one data set with a column `batch`. Where the file system can rename, a batch is
shown in one step, by a run that still holds the checkpoint (`drafts.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tidegate.api.nodes import Output
from tidegate.driver.failures import reason
from tidegate.driver.io import drafts, tables
from tidegate.driver.io.drafts import Fence, folder_of
from tidegate.errors import FlowError

#: Conditions of Spark: no such format, or one of Spark's whose package is not there (Kafka, Avro).
_NO_FORMAT = ("DATA_SOURCE_NOT_FOUND", "DATA_SOURCE_NOT_ENABLED", "Failed to find data source")


def write(output: Output, frame: DataFrame, batch: int, fence: Fence) -> None:
    """Write one batch of one output."""
    fence.check()
    if output.function is not None:
        output.function(frame, batch)
        return
    if output.table is not None:
        tables.append(output, frame, batch)
        return
    writer = frame.write.format(output.format or "").options(**output.options)
    if output.partition_by:
        writer = writer.partitionBy(*output.partition_by)
    if output.path is None:
        writer.mode("append").save()
    elif drafts.has_drafts(frame.sparkSession, output):
        draft = drafts.draft_of(output.path, batch, fence)
        writer.mode("overwrite").save(draft)
        drafts.show(frame.sparkSession, draft, folder_of(output, batch), fence)
    else:
        writer.mode("overwrite").save(folder_of(output, batch))


def remove(spark: SparkSession, output: Output, batch: int) -> None:
    """Remove the files of a batch that turned out to have no rows."""
    jvm: Any = spark._jvm
    folder = jvm.org.apache.hadoop.fs.Path(folder_of(output, batch))
    folder.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf()).delete(folder, True)


def may_skip(output: Output, batch: int) -> bool:
    """Whether an empty batch may be skipped: not for functions, nor for the first files (their schema)."""
    return output.function is None and batch > 0


def refuse_unknown_formats(spark: SparkSession, outputs: Sequence[Output]) -> None:
    """Raise for a format that Spark does not have, which would fail in the first batch with a Java stack."""
    for output in outputs:
        if output.format is not None and not _is_known(spark, output.format):
            raise FlowError(
                f"Output {output.name!r} has a format that Spark does not know",
                code="OUTPUT_FORMAT_UNKNOWN",
                got=repr(output.format),
                do="Check the name, and that its package is on Spark's class path (spark.jars.packages)",
            )


def refuse_unknown_databases(spark: SparkSession, outputs: Sequence[Output]) -> None:
    """Raise for a table in a database that does not exist, which would fail in the first batch."""
    for output in outputs:
        database = "" if output.table is None else output.table.rpartition(".")[0]
        if database and not spark.catalog.databaseExists(database):
            raise FlowError(
                f"The database of table {output.table!r} does not exist",
                code="OUTPUT_DATABASE_UNKNOWN",
                got=f"output {output.name!r}, database {database!r}",
                do=f"Check the name, or create it: spark.sql('CREATE DATABASE {database}')",
            )


def refuse_unreachable_paths(spark: SparkSession, outputs: Sequence[Output]) -> None:
    """Raise for a path on a storage that Spark cannot open, which would fail after the query has started."""
    for output in outputs:
        if output.path is not None and spark._jvm is not None:
            with _reaching(output):
                _file_system(spark, spark._jvm.org.apache.hadoop.fs.Path(output.path))


def _is_known(spark: SparkSession, name: str) -> bool:
    if spark._jvm is None:
        return True
    sources = spark._jvm.org.apache.spark.sql.execution.datasources.DataSource
    try:
        sources.lookupDataSource(name, spark._jsparkSession.sessionState().conf())
    except (Py4JError, PySparkException) as error:
        # Any other mistake is reported when writing.
        return not any(one in str(error) for one in _NO_FORMAT)
    return True


def refuse_foreign_files(spark: SparkSession, outputs: Sequence[Output], ours: Collection[str] = ()) -> None:
    """Raise if an output directory has batches of another run."""
    for output in outputs:
        foreign = sorted(_batches(spark, output, output.path) - set(ours)) if output.path else []
        if foreign:
            raise FlowError(
                f"Output {output.name!r} would mix with files of another run",
                code="OUTPUT_DIRECTORY_IN_USE",
                got=f"{output.path} holds {foreign[0]} and {len(foreign) - 1} more",
                why="The checkpoint is new, so rows would be written a second time",
                do="Pass the checkpoint of that run, or write to another directory",
            )


def _batches(spark: SparkSession, output: Output, path: str) -> set[str]:
    """Names of the batch directories below a path, on any file system of Spark."""
    if spark._jvm is None:
        return set()
    with _reaching(output):
        pattern = spark._jvm.org.apache.hadoop.fs.Path(f"{path.rstrip('/')}/batch=*")
        found = _file_system(spark, pattern).globStatus(pattern)
        return {status.getPath().getName() for status in found or ()}


def _file_system(spark: SparkSession, path: Any) -> Any:
    return path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())


@contextmanager
def _reaching(output: Output) -> Iterator[None]:
    try:
        yield
    except (Py4JError, PySparkException) as error:
        raise FlowError(
            f"The path of output {output.name!r} cannot be reached",
            code="OUTPUT_PATH_UNREACHABLE",
            got=f"{output.path}: {reason(str(error))}",
            do="Check the address, the rights, and that the connector is on Spark's class path "
            "(spark.jars.packages)",
        ) from error
