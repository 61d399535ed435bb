"""Carries an error of a task to the driver: class, message, code and details.

Spark returns an exception of a worker as the text of a stack trace. A task therefore ends with one line of
JSON behind the trace of the original error, and the driver reads this line back (`carried_in`).
"""

from __future__ import annotations

import errno
import json
import re
import sysconfig
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePath
from typing import Any

import pyarrow as pa

from tidegate import errors
from tidegate.errors import BatchFailed, TidegateError

ArrowFunction = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
#: The last carried error of a text: Spark may repeat a trace, and retried tasks have several.
_CARRIED = re.compile(r"CarriedError: (\{.*\})[ \t]*$", re.MULTILINE)
#: Where the code of Tidegate and of Python lies.
_LIBRARIES = (PurePath(errors.__file__).parent, PurePath(sysconfig.get_paths()["stdlib"]))
#: An error's own text is cut to this length: it may contain whole arrays.
_TEXT_MAX = 300


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


def in_one_line(error: BaseException) -> str:
    """An error and its place in the user's code: `ValueError: no such table (jobs.py, line 12)`."""
    place = own_place(error)
    return f"{shortened(f'{type(error).__name__}: {error}')}{f' ({place})' if place else ''}"


def own_place(error: BaseException) -> str | None:
    """File and line in the user's code where an error arose; None if no code of the user ran."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not _is_library(frame.filename)]
    return f"{PurePath(own[-1].filename).name}, line {own[-1].lineno}" if own else None


def shortened(text: str) -> str:
    """One line of bounded length."""
    line = " ".join(text.split())
    return line if len(line) <= _TEXT_MAX else f"{line[:_TEXT_MAX]} …"


def _is_library(filename: str) -> bool:
    """Whether a file belongs to Tidegate, to another package or to Python itself."""
    if filename.startswith("<"):
        return True
    path = PurePath(filename)
    return "site-packages" in path.parts or any(path.is_relative_to(root) for root in _LIBRARIES)


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
