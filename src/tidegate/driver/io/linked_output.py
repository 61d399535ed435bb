"""Linked output: hard links make the staged Parquet files of the tasks the output of a batch.

Tasks stage results as Parquet (`staging.py`). If an output needs exactly these rows as Parquet on the same
disk, Spark need not read and write them again. The staged files are linked into a draft directory, which is
renamed to `batch=N`, so that readers see a whole batch or none. A replay creates the same directory again.

An output is linked if nothing lies between it and the operator (no residual condition, no stateless step but
a select of exactly the produced columns), it has no options, partition columns or repair column, and its path
is on a local disk. If the disk refuses a link, Spark writes the files.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Sequence

from pyspark.sql import SparkSession

from tidegate.api.nodes import Output
from tidegate.driver.compile.compiled import Compiled
from tidegate.driver.compile.ports import steps_of

#: Codec names of Spark → Arrow. Outputs with other codecs are not linked.
_CODECS = {"snappy": "snappy", "zstd": "zstd", "gzip": "gzip", "none": "none", "uncompressed": "none"}


def codec_of(spark: SparkSession) -> str | None:
    """The Parquet codec of the session; None if Arrow does not support it."""
    whole = spark.conf.get("spark.sql.files.maxRecordsPerFile") in (None, "0")
    return _CODECS.get(str(spark.conf.get("spark.sql.parquet.compression.codec")).lower()) if whole else None


def linked_outputs(compiled: Compiled, staged: Collection[str]) -> dict[str, str]:
    """Outputs to which the files of these operators can be linked, with the local directory of each."""
    folders = {
        output.name: _folder(compiled, output)
        for output in compiled.outputs
        if compiled.feeding(output.node) in staged
    }
    return {name: folder for name, folder in folders.items() if folder is not None}


def publish(files: Sequence[str], folder: str, batch: int) -> bool:
    """Link the staged files as the batch of an output; False if the disk cannot link them."""
    # Spark and compatible readers ignore names that begin with a dot.
    draft, target = os.path.join(folder, f".batch={batch}"), os.path.join(folder, f"batch={batch}")
    shutil.rmtree(draft, ignore_errors=True)
    os.makedirs(draft)
    try:
        for number, file in enumerate(files):
            os.link(file, os.path.join(draft, f"part-{number:05d}-{os.path.basename(file)}"))
    except OSError:
        shutil.rmtree(draft)
        return False
    with open(os.path.join(draft, "_SUCCESS"), "wb"):
        pass
    _show(draft, target)
    return True


def _show(draft: str, target: str) -> None:
    # A rename cannot replace a directory with files, so remove what a first attempt left.
    shutil.rmtree(target, ignore_errors=True)
    os.rename(draft, target)


def _as_made(compiled: Compiled, output: Output) -> bool:
    """Whether the rows of an output are exactly those that tasks produce."""
    operator = compiled.shown_by(output)
    return operator is not None and operator.as_made(steps_of(output.node)[1])


def _folder(compiled: Compiled, output: Output) -> str | None:
    spark = compiled.spark
    if not _as_made(compiled, output) or output.format != "parquet" or output.path is None:
        return None
    if output.options or output.partition_by or output.repair_column is not None:
        return None
    if spark._jvm is None:
        return None
    path = spark._jvm.org.apache.hadoop.fs.Path(output.path)
    system = path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
    if system.getUri().getScheme() != "file":
        return None
    return str(system.makeQualified(path).toUri().getPath())
