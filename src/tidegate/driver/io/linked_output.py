"""Linked output: hard links make the staged Parquet files of the tasks the output of a batch.

Tasks stage results as Parquet (`staging.py`). If an output needs exactly these rows as Parquet on the same
disk, Spark need not read and write them again. The staged files are linked into a draft (`drafts.py`), which
is renamed to `batch=N`, so that readers see a whole batch or none. A replay creates the same directory again.

An output is linked if nothing lies between it and the operator (no residual condition, no stateless step but
a select of columns by name, which the tasks apply), it has no options, partition columns or repair column,
and its path is on a local disk. If the disk refuses a link, Spark writes the files.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Collection, Sequence

from pyspark.sql import SparkSession

from tidegate.api.nodes import Output
from tidegate.api.streams import HIDDEN
from tidegate.driver.compile.compiled import Compiled
from tidegate.driver.compile.ports import steps_of
from tidegate.driver.io.drafts import Fence, draft_of

_log = logging.getLogger(__name__)
#: Codec names of Spark → Arrow. Outputs with other codecs are not linked.
_CODECS = {"snappy": "snappy", "zstd": "zstd", "gzip": "gzip", "none": "none", "uncompressed": "none"}


def codec_of(spark: SparkSession) -> str | None:
    """The Parquet codec of the session; None if Arrow does not support it."""
    whole = spark.conf.get("spark.sql.files.maxRecordsPerFile") in (None, "0")
    return _CODECS.get(str(spark.conf.get("spark.sql.parquet.compression.codec")).lower()) if whole else None


def linked_outputs(compiled: Compiled, staged: Collection[str]) -> dict[str, str]:
    """Outputs to which the files of these operators can be linked, with the local directory of each."""
    found = {}
    for output in compiled.outputs:
        folder = _folder(compiled, output) if compiled.feeding(output.node) in staged else None
        if folder is not None:
            found[output.name] = folder
    return found


def publish(files: Sequence[str], folder: str, batch: int, fence: Fence) -> bool:
    """Link the staged files as the batch of an output; False if the disk cannot link them."""
    draft, target = draft_of(folder, batch, fence), os.path.join(folder, f"batch={batch}")
    shutil.rmtree(draft, ignore_errors=True)
    os.makedirs(draft)
    try:
        for number, file in enumerate(files):
            os.link(file, os.path.join(draft, f"part-{number:05d}-{os.path.basename(file)}"))
    except OSError as error:
        _log.debug("Spark writes batch %d: the disk of %s cannot link files (%s)", batch, folder, error)
        shutil.rmtree(draft)
        return False
    with open(os.path.join(draft, "_SUCCESS"), "wb"):
        pass
    fence.check()
    _show(draft, target)
    return True


def _show(draft: str, target: str) -> None:
    # A rename cannot replace a directory with files, so remove what a first attempt left.
    shutil.rmtree(target, ignore_errors=True)
    os.rename(draft, target)


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


def _folder(compiled: Compiled, output: Output) -> str | None:
    spark = compiled.spark
    if columns_of(compiled, output) is None or output.format != "parquet" or output.path is None:
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
