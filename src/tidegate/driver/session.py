"""An embedded Spark for the demo, benchmarks and tests: bounded memory, no network, the same interpreter."""

from __future__ import annotations

import os
import sys

from pyspark.sql import SparkSession

#: Read by Spark when a streaming query starts.
STREAM_CONF = {
    # Otherwise Spark would take everything in one batch: the heartbeat does not support AvailableNow.
    "spark.sql.streaming.triggerAvailableNowWrapper.enabled": "true",
    # Spark switches it off for streaming queries anyway, with a warning.
    "spark.sql.adaptive.enabled": "false",
}
#: The same for a checkpoint on a local disk. Spark's default manager of offset logs starts a `readlink`
#: process several times per batch; this one renames files just as atomically without it.
LOCAL_CONF = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}


def embedded_session(app_name: str, cores: int = 2, memory: str = "4g", **conf: str) -> SparkSession:
    """A local Spark session. Further settings are given with underscores for dots."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = (
        SparkSession.builder.master(f"local[{cores}]")
        .appName(app_name)
        .config("spark.driver.memory", memory)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", str(cores))
        .config("spark.log.level", "ERROR")
        # A Unix domain socket to the Python workers avoids TCP's delayed acknowledgements, which cost small
        # batches 40 ms each.
        .config("spark.python.unix.domain.socket.enabled", "true")
    )
    for name, value in conf.items():
        builder = builder.config(name.replace("_", "."), value)
    return builder.getOrCreate()
