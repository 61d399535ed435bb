"""Finds the error of ours inside what Spark makes of it.

Segments are opened in worker processes. What a worker raises reaches the driver as text, inside a
`PythonException` with two stack traces around it. The user shall get the error itself: same class, same
message, and the batch that could not be completed.
"""

from __future__ import annotations

import re

from tidegate import errors
from tidegate.errors import TidegateError

#: The end of a Python stack trace: class and message, which goes on where a user's error has several lines.
_RAISED = re.compile(r"^tidegate\.errors\.(\w+): (.+?)(?=\n\s*\n|\n\s+at |\s*\Z)", re.MULTILINE | re.DOTALL)


def worker_error_in(error: BaseException, batch: int) -> BaseException:
    """The error that a worker raised on purpose in this batch; `error` itself where there is none."""
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
