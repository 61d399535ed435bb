"""Writes output other than files: to a function, a table, any other format; and checks sinks at start.

These sinks come before the commit. A replay calls a function again with the same rows and the same number; a
format that cannot tell may get rows twice. Files are published by the commit (`publishing.py`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tidegate.api.nodes import Output
from tidegate.driver.failures import reason
from tidegate.driver.io import tables
from tidegate.errors import FlowError

#: The parameter of a function that gets the number of the run.
RUN = "run"
#: Conditions of Spark: no such format, or one of Spark's whose package is not there (Kafka, Avro).
_NO_FORMAT = ("DATA_SOURCE_NOT_FOUND", "DATA_SOURCE_NOT_ENABLED", "Failed to find data source")


def write(output: Output, frame: DataFrame, batch: int, query_id: str, run: int = 0) -> None:
    """Write one batch of one output that is not of files; `query_id`: of the query that writes, `run`: a
    number that is larger in every later run of it."""
    if output.function is not None:
        more = {RUN: run} if takes_run(output.function) else {}
        output.function(frame, batch, **more)
        return
    if output.table is not None:
        tables.append(output, frame, batch, query_id)
        return
    once = tables.exactly_once(output, batch, query_id) if output.path else {}
    options = {**once, **output.options}
    writer = frame.write.format(output.format or "").options(**options)
    if output.partition_by:
        writer = writer.partitionBy(*output.partition_by)
    if output.path is None:
        writer.mode("append").save()
    else:
        writer.mode("append").save(output.path)


def takes_run(function: Callable[..., None]) -> bool:
    """Whether a function has a parameter for the number of the run."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # functions of C may have no signature
        return False
    return RUN in parameters and parameters[RUN].kind is not inspect.Parameter.POSITIONAL_ONLY


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
                path = spark._jvm.org.apache.hadoop.fs.Path(output.path)
                path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())


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
