"""Checks made when a query starts: expressions must be valid Spark, functions must be serialisable.

A mistake raises a FlowError that names the expression and quotes the first line of Spark's message.
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
    """Raise FlowError if the function cannot be pickled; `what` names it."""
    try:
        cloudpickle.dumps(function)  # type: ignore[no-untyped-call]
    except Exception as error:
        raise FlowError(
            f"{what} cannot be sent to the workers",
            got=f"{type(error).__name__}: {error}",
            why="It is pickled with all that it refers to",
            do="Let it not refer to sessions, locks, open files or connections",
        ) from error


#: Hidden columns in Spark's list of suggested column names.
_OURS = re.compile(rf", `{HIDDEN}\w+`|`{HIDDEN}\w+`, ")


@contextmanager
def spark_errors_as(wrong: str, do: str = "") -> Iterator[None]:
    """Turn errors that Spark raises inside the block into a FlowError with these parts."""
    try:
        yield
    except PySparkException as error:
        raise FlowError(wrong, got=first_line(error), do=do) from error


def first_line(error: PySparkException) -> str:
    """The first line of the message, without the plan that follows it and without hidden columns."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return _OURS.sub("", lines[0]).rstrip("; .")
