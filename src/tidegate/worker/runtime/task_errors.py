"""Carries an error of a task to the driver: class, message, code and details.

Spark returns an exception of a worker as the text of a stack trace. A task therefore ends with one line of
JSON behind the trace of the original error, and the driver reads this line back (`carried_in`).
"""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from tidegate import errors
from tidegate.errors import BatchFailed, TidegateError, in_one_line

ArrowFunction = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
#: The last carried error of a text: Spark may repeat a trace, and retried tasks have several.
_CARRIED = re.compile(r"CarriedError: (\{.*\})[ \t]*$", re.MULTILINE)


class CarriedError(Exception):
    """An error on its way to the driver, as one line of JSON."""


def guarded(operator: str, function: ArrowFunction) -> ArrowFunction:
    """The same function; an exception leaves it with the name of the operator, as a `CarriedError`."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            yield from function(batches)
        except Exception as error:
            raise CarriedError(_packed(_ours(error, operator))) from error

    return run


def carried_in(text: str) -> TidegateError | None:
    """The error that a task raised, from the text of Spark's error; None if no task of ours raised one."""
    found = _CARRIED.findall(text)
    if not found:
        return None
    packed = json.loads(found[-1])
    kind = getattr(errors, packed["kind"], TidegateError)
    ours: TidegateError = kind(packed["problem"], code=packed["code"], details=packed["details"])
    ours.args = (packed["message"],)
    return ours


def _ours(error: Exception, operator: str) -> TidegateError:
    if isinstance(error, TidegateError):
        error.details.setdefault("operator", operator)
        return error
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        do = "Free space, then start the query again"
        return _failed(operator, "found no space on its disk", error, do, code="DISK_FULL")
    if isinstance(error, OSError):
        do = "Check that every worker can reach the checkpoint, then start the query again"
        return _failed(operator, "could not read or write its state", error, do, code="STATE_UNREACHABLE")
    if isinstance(error, MemoryError):
        do = (
            "Give workers more memory, use more instances, or let sources give less to a batch "
            "(maxBytesPerTrigger, maxOffsetsPerTrigger)"
        )
        return _failed(operator, "ran out of memory", error, do, code="MEMORY_FULL")
    do = "Report it with the traceback in `__cause__`: this is a fault of Tidegate"
    problem = "failed for a reason that Tidegate does not know"
    return _failed(operator, problem, error, do, code="INTERNAL_ERROR")


def _failed(operator: str, problem: str, error: Exception, do: str, *, code: str) -> BatchFailed:
    return BatchFailed(
        f"A task of operator {operator!r} {problem}",
        got=in_one_line(error),
        why="Nothing of the batch was committed",
        do=do,
        code=code,
        details={"operator": operator},
    )


def _packed(error: TidegateError) -> str:
    details: Mapping[str, Any] = error.details
    return json.dumps(
        {
            "kind": type(error).__name__,
            "code": error.code,
            "message": str(error),
            "problem": str(details.get("problem", "")),
            "details": {name: _plain(value) for name, value in details.items()},
        }
    )


def _plain(value: Any) -> Any:
    return value if isinstance(value, bool | int | float | str | None) else str(value)
