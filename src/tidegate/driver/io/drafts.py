"""Drafts: the files of a batch lie in a hidden directory until one rename shows them as `batch=N`.

    out/.batch=12-5e1f…    written under a name that no other run uses; readers ignore names with a dot
    out/batch=12           after the rename

A driver that was halted while another run took over may wake up in the middle of a write. Its files are in
its own draft, and it looks whether it still holds the checkpoint before it shows them. So it can add nothing
to a batch that the other run has published. Object stores have no rename: there, Spark overwrites `batch=N`
in place, and such a driver may write the batch a second time until its job ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from pyspark.sql import SparkSession

from tidegate.api.nodes import Output
from tidegate.state.store.remote import OBJECT_STORES

#: Formats of Spark that write files below their path, and nothing else.
_FILES = ("parquet", "orc", "json", "csv", "text", "avro")


class Fence(Protocol):
    """Tells whether this run still holds its checkpoint."""

    @property
    def token(self) -> str:
        """No other run has it."""
        ...

    def check(self) -> None:
        """CheckpointInUse if another run has taken over."""
        ...


def folder_of(output: Output, batch: int) -> str:
    """The directory of a batch."""
    return f"{str(output.path).rstrip('/')}/batch={batch}"


def draft_of(folder: str, batch: int, fence: Fence) -> str:
    """The directory below `folder` that a run fills for a batch."""
    return f"{folder.rstrip('/')}/.batch={batch}-{fence.token}"


def has_drafts(spark: SparkSession, output: Output) -> bool:
    """Whether the files of an output can be shown by a rename."""
    if output.path is None or (output.format or "").lower() not in _FILES or spark._jvm is None:
        return False
    return _system(spark, output.path).getUri().getScheme() not in OBJECT_STORES


def show(spark: SparkSession, draft: str, folder: str, fence: Fence) -> None:
    """Make a finished draft the directory of its batch, in place of what a first attempt left."""
    jvm: Any = spark._jvm
    system = _system(spark, draft)
    source, target = jvm.org.apache.hadoop.fs.Path(draft), jvm.org.apache.hadoop.fs.Path(folder)
    fence.check()
    # A rename into a directory that exists would move the draft into it.
    system.delete(target, True)
    if not system.rename(source, target):
        raise OSError(f"{draft} could not be renamed to {folder}")


def clear(spark: SparkSession, outputs: Sequence[Output]) -> None:
    """Delete the drafts of runs that ended within a write; only while this run holds the checkpoint."""
    for output in outputs:
        if has_drafts(spark, output):
            jvm: Any = spark._jvm
            pattern = jvm.org.apache.hadoop.fs.Path(f"{str(output.path).rstrip('/')}/.batch=*")
            system = _system(spark, str(output.path))
            for status in system.globStatus(pattern) or ():
                system.delete(status.getPath(), True)


def _system(spark: SparkSession, path: str) -> Any:
    jvm: Any = spark._jvm
    return jvm.org.apache.hadoop.fs.Path(path).getFileSystem(
        spark._jsparkSession.sessionState().newHadoopConf()
    )
