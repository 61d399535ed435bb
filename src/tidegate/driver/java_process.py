"""Spark's Java process, which the system may kill while a query runs: then every call into it fails."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext

#: A connection breaks, and none is made, a moment before the process has ended.
_DYING_SECONDS = 5.0
_CONNECT_SECONDS = 1.0


def is_lost(error: BaseException | None = None) -> bool:
    """Whether the process has ended; `error`: what a call into it has just raised."""
    gateway: Any = SparkContext._gateway
    if gateway is None:
        return False
    process = getattr(gateway, "proc", None)
    if process is not None:
        broken = isinstance(error, Py4JError | ConnectionError) and not isinstance(error, Py4JJavaError)
        try:
            process.wait(_DYING_SECONDS if broken else 0)
        except subprocess.TimeoutExpired:
            return False
        return True
    # Java has started Python, as `spark-submit` does.
    of = gateway.gateway_parameters
    try:
        socket.create_connection((of.address, of.port), _CONNECT_SECONDS).close()
    except OSError:
        return True
    return False


@contextmanager
def unless_lost() -> Iterator[None]:
    """Around clearing up in Java: where its process has ended, there is nothing left to clear up."""
    try:
        yield
    except Exception as error:
        if not is_lost(error):
            raise
