"""What users write for Spark, tried when a query starts: what Spark does not understand is an error of ours.

It says what it is about, and which line of Spark's long message matters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException

from tidegate.api.streams import HIDDEN
from tidegate.errors import FlowError, explain

#: Columns of the engine's own, in a list of what Spark could have been meant to take.
_OURS = re.compile(rf", `{HIDDEN}\w+`|`{HIDDEN}\w+`, ")


@contextmanager
def understood(wrong: str, do: str = "") -> Iterator[None]:
    """FlowError, with these parts, where Spark refuses what is done meanwhile."""
    try:
        yield
    except PySparkException as error:
        raise FlowError(explain(wrong, got=first_line(error), do=do)) from error


def first_line(error: PySparkException) -> str:
    """What is wrong, without the plan that it is wrong in."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return _OURS.sub("", lines[0]).rstrip("; .")
