"""Whether all machines of a cluster can reach a checkpoint."""

from __future__ import annotations

import os

from pyspark.sql import SparkSession

from tidegate.errors import FlowError
from tidegate.state.store.local import local_path

#: The user's setting: folders that all machines mount, separated by commas.
SHARED_PATHS = "spark.tidegate.sharedPaths"
#: Schemes that name other files on each machine.
_OF_ONE_MACHINE = ("file", "local", "memory")


def check_shared(spark: SparkSession, checkpoint: str) -> None:
    """FlowError for a checkpoint on this machine's disk if tasks run on others."""
    refuse_unshared(checkpoint, str(spark.sparkContext.master), str(spark.conf.get(SHARED_PATHS, "")))


def refuse_unshared(checkpoint: str, master: str, shared: str) -> None:
    """The same, by the master's address and the folders that are said to be shared.

    The workers of `local-cluster[…]` run on this machine.
    """
    scheme, separator, _ = checkpoint.partition(":")
    if master.partition("[")[0] in ("local", "local-cluster"):
        return
    if separator and "/" not in scheme and scheme not in _OF_ONE_MACHINE:
        return
    path = os.path.abspath(local_path(checkpoint))
    folders = [os.path.abspath(local_path(one.strip())) for one in shared.split(",") if one.strip()]
    if not any(path == one or path.startswith(f"{one.rstrip('/')}/") for one in folders):
        raise FlowError(
            "The checkpoint is on a disk of this machine, but tasks run on others",
            code="CHECKPOINT_NOT_SHARED",
            got=f"{checkpoint!r} with master {master}",
            why="Each machine would keep a part of the state on its own disk, where no other could read it",
            do="Put it on a store that all machines reach, such as hdfs:// or s3://. If all of them mount "
            f"this folder under the same path, say so: {SHARED_PATHS}=/the/mount",
        )
