"""What users write for Spark, tried when a query starts: what Spark does not understand is an error of ours.

It says what it is about, and which line of Spark's long message matters.

Functions of users that run in workers: whether they can be sent there is known before anything starts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pyspark import cloudpickle
from pyspark.errors import PySparkException

from tidegate.api.streams import HIDDEN
from tidegate.errors import FlowError


def check_serialisable(what: str, function: Callable[..., Any]) -> None:
    """FlowError where it cannot be pickled; `what` says whose function it is."""
    try:
        cloudpickle.dumps(function)  # type: ignore[no-untyped-call]
    except Exception as error:
        raise FlowError(
            f"{what} cannot be sent to the workers",
            got=f"{type(error).__name__}: {error}",
            why="It is pickled with all that it refers to",
            do="Let it not refer to sessions, locks, open files or connections",
        ) from error


#: Columns of the engine's own, in a list of what Spark could have been meant to take.
_OURS = re.compile(rf", `{HIDDEN}\w+`|`{HIDDEN}\w+`, ")


@contextmanager
def spark_errors_as(wrong: str, do: str = "") -> Iterator[None]:
    """FlowError, with these parts, where Spark refuses what is done meanwhile."""
    try:
        yield
    except PySparkException as error:
        raise FlowError(wrong, got=first_line(error), do=do) from error


def first_line(error: PySparkException) -> str:
    """What is wrong, without the plan that it is wrong in."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return _OURS.sub("", lines[0]).rstrip("; .")
