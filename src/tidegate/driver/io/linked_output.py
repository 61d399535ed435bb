"""Parquet outputs that need no second writing: what the tasks staged becomes the output, by a hard link.

Tasks stage joined rows as Parquet (staging.py). Where an output wants exactly those rows as Parquet on the
same disk, reading them with Spark and writing them again would change nothing but the time of day. So the
staged files are linked into a draft directory, which then takes the place of `batch=N` by a rename: a reader
sees a batch whole or not at all. A replay makes the same directory anew.

An output is linked when nothing stands between the operator and it (no residual condition, no box but a
select of just the columns that are made), it names no options, and its path is on a local disk. Where the
disk refuses a link, Spark writes the files after all.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Sequence

from pyspark.sql import SparkSession

from tidegate.api.nodes import Output
from tidegate.driver.compile.compiled import Compiled
from tidegate.driver.compile.ports import steps_of

#: Spark's name of a codec → Arrow's. Others are left to Spark.
_CODECS = {"snappy": "snappy", "zstd": "zstd", "gzip": "gzip", "none": "none", "uncompressed": "none"}


def codec_of(spark: SparkSession) -> str | None:
    """How the session compresses Parquet files; None where Arrow cannot do it just so."""
    whole = spark.conf.get("spark.sql.files.maxRecordsPerFile") in (None, "0")
    return _CODECS.get(str(spark.conf.get("spark.sql.parquet.compression.codec")).lower()) if whole else None


def linked_outputs(compiled: Compiled, staged: Collection[str]) -> dict[str, str]:
    """Outputs that the files of these operators can become, with the local directory of each."""
    folders = {
        output.name: _folder(compiled, output)
        for output in compiled.outputs
        if compiled.feeding(output.node) in staged
    }
    return {name: folder for name, folder in folders.items() if folder is not None}


def publish(files: Sequence[str], folder: str, batch: int) -> bool:
    """Make the staged files the batch of an output; False where the disk cannot link them."""
    # The dot keeps the draft out of the sight of Spark and of everybody who follows its rules.
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
    # A directory cannot take the place of one that holds files: what a first attempt left goes first.
    shutil.rmtree(target, ignore_errors=True)
    os.rename(draft, target)


def _as_made(compiled: Compiled, output: Output) -> bool:
    """Are the rows of an output just those that tasks make?"""
    operator = compiled.shown_by(output)
    return operator is not None and operator.as_made(steps_of(output.node)[1])


def _folder(compiled: Compiled, output: Output) -> str | None:
    spark = compiled.spark
    if not _as_made(compiled, output) or output.format != "parquet" or output.path is None or output.options:
        return None
    if spark._jvm is None:
        return None
    path = spark._jvm.org.apache.hadoop.fs.Path(output.path)
    system = path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
    if system.getUri().getScheme() != "file":
        return None
    return str(system.makeQualified(path).toUri().getPath())
