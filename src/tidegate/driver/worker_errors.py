"""Extracts the Tidegate error of a worker from the error that Spark raises in the driver.

An exception in a worker reaches the driver as text inside a `PythonException` with two stack traces. The user
gets the original error: same class, same message, and the number of the batch.
"""

from __future__ import annotations

import re

from tidegate import errors
from tidegate.errors import TidegateError

#: The end of a Python stack trace: class and message, which may have several lines.
_RAISED = re.compile(r"^tidegate\.errors\.(\w+): (.+?)(?=\n\s*\n|\n\s+at |\s*\Z)", re.MULTILINE | re.DOTALL)


def worker_error_in(error: BaseException, batch: int) -> BaseException:
    """The Tidegate error that a worker raised in this batch; `error` itself if there is none."""
    if isinstance(error, TidegateError):
        return error
    raised = _RAISED.findall(str(error))
    if not raised:
        return error
    name, message = raised[-1]
    kind = getattr(errors, name, TidegateError)
    ours: TidegateError = kind(f"Batch {batch} cannot be completed. {message.strip()}")
    ours.__cause__ = error
    return ours
