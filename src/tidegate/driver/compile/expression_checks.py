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
from pyspark.logger import PySparkLogger

from tidegate.api.streams import HIDDEN
from tidegate.errors import FlowError, shortened


def check_serialisable(what: str, function: Callable[..., Any]) -> None:
    """Raise FlowError if the function cannot be pickled; `what` names it."""
    try:
        cloudpickle.dumps(function)  # type: ignore[no-untyped-call]
    except Exception as error:
        raise FlowError(
            f"{what} cannot be sent to the workers",
            code="FUNCTION_NOT_SERIALISABLE",
            got=shortened(f"{type(error).__name__}: {error}"),
            why="It is pickled together with everything it refers to",
            do="Create sessions, locks, open files and connections inside the function",
        ) from error


#: Loggers of PySpark that print the errors of expressions.
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
#: Spark's number of an error, and the place in its line.
_STATE = re.compile(r"\.? SQLSTATE: \w+.*$")
#: Stands before the SQL text in a message of Spark's parser.
_SQL = "== SQL =="
#: Hidden columns in Spark's list of suggested column names.
_OURS = re.compile(rf", `{HIDDEN}\w+`|`{HIDDEN}\w+`, ")


@contextmanager
def spark_errors_as(wrong: str, do: str = "", *, code: str = "EXPRESSION_INVALID") -> Iterator[None]:
    """Turn errors that Spark raises inside the block into a FlowError with these parts."""
    try:
        with silent_loggers():
            yield
    except PySparkException as error:
        raise FlowError(wrong, code=code, got=first_line(error), do=do) from error


def first_line(error: PySparkException) -> str:
    """The first line of the message, without the plan that follows it and without hidden columns.

    A syntax error is followed by the SQL text that has it.
    """
    lines = str(error).strip().splitlines() or [type(error).__name__]
    said = _STATE.sub("", _OURS.sub("", lines[0])).rstrip("; .")
    sql = lines[lines.index(_SQL) + 1 :] if _SQL in lines else []
    return f"{said} in: {sql[0].strip()}" if sql else said


@contextmanager
def silent_loggers() -> Iterator[None]:
    """PySpark prints some errors as JSON with a Java stack before it raises them; not those that we raise."""
    loggers = [PySparkLogger.getLogger(name) for name in _LOGGERS]
    before = [logger.disabled for logger in loggers]
    try:
        for logger in loggers:
            logger.disabled = True
        yield
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled
