"""An embedded Spark for the demo, benchmarks and tests: memory set, nothing on the network, workers that
run the interpreter we run in."""

from __future__ import annotations

import os
import sys

from pyspark.sql import SparkSession


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
        # Rows cross to the Python workers over a socket of the machine, not of the network: small batches
        # do not wait for TCP's delayed acknowledgements, which cost 40 ms each.
        .config("spark.python.unix.domain.socket.enabled", "true")
    )
    for name, value in conf.items():
        builder = builder.config(name.replace("_", "."), value)
    return builder.getOrCreate()
