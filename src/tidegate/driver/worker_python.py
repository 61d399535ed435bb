"""Which Python runs the tasks, and whether it can run ours.

Spark starts `python3` for its workers unless `PYSPARK_PYTHON` says otherwise. On a local master that is often
another Python than the one that runs the script, without Tidegate. There the script's own Python is used.

On a cluster every worker needs the same packages. A small job asks them once per session and Python, before
the first batch.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tidegate.driver.quiet_logs import QuietLogs
from tidegate.errors import FlowError, shortened

#: What driver and workers must share, with the part of the version that counts.
PACKAGES = {"python": 2, "tidegate": 3, "pyarrow": 1, "numpy": 1}
#: The most tasks that ask; more would cost more than they find.
_TASKS_MAX = 64
#: Contexts and Pythons that have been checked.
_checked: set[tuple[str, str]] = set()


def prepare_workers(spark: SparkSession) -> None:
    """Choose the Python of local workers; check the packages of those on other machines."""
    context = spark.sparkContext
    if is_local(str(context.master)):
        choose_python(spark)
        return
    asked = (str(context.applicationId), context.pythonExec)
    if asked not in _checked:
        _check(spark, found_on_workers(spark), context.pythonExec)
        _checked.add(asked)


def choose_python(spark: SparkSession) -> None:
    """Let the Python of the script run local tasks, unless the user chose one.

    Spark writes the Python into a user's function when the function is applied to columns, so this is also
    called when a stream is made.
    """
    context = spark.sparkContext
    if is_local(str(context.master)):
        chosen = python_of_local(os.environ, context.getConf().get("spark.pyspark.python"), sys.executable)
        if chosen is not None:
            context.pythonExec = chosen


def is_local(master: str) -> bool:
    """Whether tasks run on the driver's machine, as its child processes."""
    return master == "local" or master.startswith("local[")


def python_of_local(environment: Mapping[str, str], configured: str | None, own: str | None) -> str | None:
    """The Python for local workers; None: the user has chosen, or ours is not known."""
    if environment.get("PYSPARK_PYTHON"):
        return None
    return configured or own or None


def found_on_workers(spark: SparkSession) -> list[dict[str, str]]:
    """What tasks on the workers find: versions by package, `error` if an import fails, and the `host`."""
    context: SparkContext = spark.sparkContext
    tasks = max(1, min(_TASKS_MAX, context.defaultParallelism))
    context.setJobDescription("tidegate: check the packages of the workers")
    try:
        with QuietLogs(spark):
            found = context.parallelize(range(tasks), tasks).mapPartitions(_ask()).collect()
    except (Py4JError, PySparkException) as error:
        raise FlowError(
            "The workers cannot run Python",
            got=_reason(str(error)),
            why=f"Spark starts {context.pythonExec!r} on every worker",
            do="Set PYSPARK_PYTHON to a Python that exists on all workers, of the driver's version",
            code="WORKERS_WITHOUT_PYTHON",
        ) from error
    finally:
        context.setJobDescription(None)  # type: ignore[arg-type]
    return [json.loads(one) for one in found]


def _ask() -> Callable[[Iterable[Any]], Iterator[str]]:
    """The function of the job; nested, so that Spark sends its code and workers need no package for it."""

    def ask(_: Iterable[Any]) -> Iterator[str]:
        import json
        import platform
        import socket

        found = {"host": socket.gethostname(), "python": platform.python_version()}
        for name in ("numpy", "pyarrow", "tidegate"):
            try:
                found[name] = str(__import__(name).__version__)
            except Exception as error:
                found["error"] = f"{type(error).__name__}: {error}"
        try:
            __import__("tidegate.worker.runtime.task_runner")
        except Exception as error:
            found.setdefault("error", f"{type(error).__name__}: {error}")
        yield json.dumps(found)

    return ask


def _check(spark: SparkSession, found: list[dict[str, str]], python: str) -> None:
    own = {name: _version(name) for name in PACKAGES}
    for one in found:
        problem = difference(own, one)
        if problem is not None:
            raise FlowError(
                "The workers cannot run Tidegate's tasks",
                got=f"on {one['host']}, with {python!r}: {problem}",
                why="Tasks run in Python processes on the workers, which need the driver's packages",
                do="Install the same tidegate on every worker (or ship an environment with "
                "spark.archives), and set PYSPARK_PYTHON to its Python",
                code="WORKERS_WITHOUT_TIDEGATE",
            )


def difference(own: Mapping[str, str], found: Mapping[str, str]) -> str | None:
    """How the packages of a worker differ from the driver's; None if they fit."""
    if "error" in found:
        return found["error"]
    for name, parts in PACKAGES.items():
        if own[name].split(".")[:parts] != found[name].split(".")[:parts]:
            return f"{name} {found[name]}, but {own[name]} in the driver"
    return None


def _version(name: str) -> str:
    if name == "python":
        return ".".join(map(str, sys.version_info[:3]))
    if name == "tidegate":
        import tidegate

        return tidegate.__version__
    try:
        return version(name)
    except PackageNotFoundError:
        return str(__import__(name).__version__)


def _reason(text: str) -> str:
    """The line of a Java trace that says most."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    useful = [line for line in lines if "Cannot run program" in line or "Error: " in line or "[" in line[:1]]
    return shortened((useful or lines or ["no reason"])[0])
