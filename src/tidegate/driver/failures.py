"""Turns what ends a batch into one `TidegateError`: batch, output or operator, cause, and what to do.

An error in a task reaches the driver as text inside an error of Spark. The user gets the task's own error
(`worker/runtime/task_errors.py`), or one whose code says what failed: a function of the user, a source file,
a sink, a disk. The original error is its `__cause__`. Nothing of a failed batch is committed, so a start with
the same checkpoint runs it again.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException

from tidegate.driver import java_process
from tidegate.errors import BatchFailed, StateError, TidegateError, in_one_line, own_place, shortened
from tidegate.worker.runtime.task_errors import carried_in

_AGAIN = "then start again with the same checkpoint"
#: A path in a message of Spark.
_FILE = re.compile(r"\b((?:file|hdfs|s3a?|gs|abfss?|dbfs):/[^\s,;'\"]+?)\.?(?=[\s,;'\"]|$)")
#: The end of a Python stack trace: class and message in one line, not indented.
_RAISED = re.compile(r"^(?!pyspark\.|py4j\.|org\.|java\.)([\w.]*[A-Z]\w*)(?:: (.*))?$")
_FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<name>\S+)$', re.MULTILINE)
#: A condition of Spark and the rest of its line, which may have another condition in it.
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]+)\] (?=([^\n]+))")
#: What a Java error says of itself, below the line about the call from Python.
_THROWN = re.compile(r"^: ([^\n]+)", re.MULTILINE)
#: In front of the class of a Java error.
_PACKAGE = re.compile(r"\b(?:[a-z]\w*\.){2,}(?=[A-Z]\w*(?:Exception|Error)\b)")
#: Conditions of Spark that only wrap another error.
_WRAPPERS = ("STREAM_FAILED", "FOREACH_BATCH_USER_FUNCTION_ERROR", "TASK_WRITE_FAILED")


@dataclass(frozen=True)
class Cause:
    """One kind of failure: how to know it by the text of an error, and what to say."""

    code: str
    pattern: re.Pattern[str]
    #: Follows "Batch 7 failed: ".
    problem: str
    do: str
    #: Whether the path in the text is that of a source.
    of_source: bool = False
    #: Whether a failing output explains it, so that the output is named as the subject.
    of_output: bool = False


def _cause(*, code: str, pattern: str, problem: str, do: str, **more: bool) -> Cause:
    return Cause(code, re.compile(pattern), problem, do, **more)


#: The first that fits counts.
CAUSES = (
    _cause(
        code="SESSION_STOPPED",
        pattern=r"SparkContext was shut down|stopped SparkContext|RpcEnv already stopped",
        problem="the Spark session was stopped while the query ran",
        do="Stop the query first: query.stop(), or with tg.start(…) as query",
    ),
    _cause(
        code="DISK_FULL",
        pattern=r"No space left on device|Disk quota exceeded|DiskOutOfSpace",
        problem="a disk is full",
        do=f"Free space (checkpoint, outputs, spark.local.dir), {_AGAIN}",
        of_output=True,
    ),
    _cause(
        code="SOURCE_FILE_MISSING",
        pattern=r"FAILED_READ_FILE\.FILE_NOT_EXIST|\[PATH_NOT_FOUND\]|FileNotFoundException",
        problem="a source file has vanished",
        do=f"Restore the file, or set spark.sql.files.ignoreMissingFiles=true, {_AGAIN}",
        of_source=True,
    ),
    _cause(
        code="SOURCE_COLUMN_CHANGED",
        pattern=r"PARQUET_COLUMN_DATA_TYPE_MISMATCH|UNSUPPORTED_FEATURE.*schema|FIELD_NOT_FOUND",
        problem="a column of a source file does not have the declared type",
        do=f"Replace the file by one with the stream's schema, {_AGAIN}",
        of_source=True,
    ),
    _cause(
        code="SOURCE_FILE_DAMAGED",
        pattern=r"\[FAILED_READ_FILE|CANNOT_READ_FILE_FOOTER|is not a Parquet file|MALFORMED_RECORD",
        problem="a source file cannot be read",
        do=f"Replace the file, or set spark.sql.files.ignoreCorruptFiles=true, {_AGAIN}",
        of_source=True,
    ),
    _cause(
        code="JAVA_MEMORY_FULL",
        pattern=r"OutOfMemoryError",
        problem="Spark's Java process ran out of memory",
        do="Give it more (spark.driver.memory, spark.executor.memory), or let sources give less to a batch "
        f"(maxBytesPerTrigger, maxOffsetsPerTrigger), {_AGAIN}",
    ),
    _cause(
        code="WORKER_CRASHED",
        pattern=r"Python worker exited unexpectedly|ExecutorLostFailure",
        problem="a worker process has died",
        do="If the system killed it because memory ran out (its log says so), give workers more "
        "(spark.executor.memoryOverhead, or fewer cores), use more instances, or let sources give less to a "
        f"batch (maxBytesPerTrigger, maxOffsetsPerTrigger), {_AGAIN}",
    ),
    _cause(
        code="WORKERS_WITHOUT_TIDEGATE",
        pattern=r"ModuleNotFoundError: No module named '(?:tidegate|numpy|pyarrow)",
        problem="the Python of the workers lacks a package",
        do="Set PYSPARK_PYTHON to a Python with tidegate on every worker, and start a new session",
    ),
    _cause(
        code="USER_FUNCTION_FAILED",
        pattern=r"thrown from the Python worker|PythonException",
        problem="a Python function of the flow raised an error",
        do=f"Mend the function, {_AGAIN}",
    ),
    _cause(
        code="PATH_REFUSED",
        pattern=r"Permission denied|AccessControlException|AccessDenied|Read-only file system|Mkdirs failed",
        problem="a path may not be written or read",
        do=f"Check the rights of the path, {_AGAIN}",
        of_output=True,
    ),
    _cause(
        code="PATH_UNREACHABLE",
        pattern=r"UnknownHostException|ConnectException|Connection refused|SocketTimeoutException"
        r"|NoRouteToHost",
        problem="a storage or service cannot be reached",
        do=f"Check the address and the network, {_AGAIN}",
        of_output=True,
    ),
)

#: The stream that reads a file.
StreamOf = Callable[[str], str | None]


#: What Spark says of data that an expression cannot handle: a cast, a division by zero.
_DATA_ERROR = re.compile(r"SQLSTATE: 22\d{3}")


@contextmanager
def writing(output: str, batch: int, runs_flow: bool = False) -> Iterator[None]:
    """Errors of this block belong to an output; `runs_flow`: or to the flow, which runs with it."""
    try:
        yield
    except Exception as error:
        of_flow = runs_flow and _DATA_ERROR.search(str(error))
        raise failure_of(error, batch, output=None if of_flow else output) from error


def failure_of(
    error: Exception, batch: int, *, output: str | None = None, stream_of: StreamOf = lambda file: None
) -> TidegateError:
    """The error that the user gets for an error in this batch; `output`: it was being written."""
    found = error if isinstance(error, TidegateError) else carried_in(str(error))
    if found is None:
        found = _classified(error, batch, output, stream_of)
    elif found is not error:
        found.args = (_in_batch(str(found), batch, found.details.get("operator")),)
    found.details.setdefault("batch_id", batch)
    if output is not None:
        found.details.setdefault("output", output)
    if found.details.get("file") and "stream" not in found.details:
        stream = stream_of(found.details["file"])
        if stream is not None:
            found.details["stream"] = stream
            found.args = (f"{found} Stream: {stream!r}.",)
    if found is not error and found.__cause__ is None:
        found.__cause__ = error
    return found


def log_failure(error: Exception, folder: str) -> StateError | None:
    """The error for a file of Spark's log, in this folder, that Spark cannot use; None for another error."""
    if not isinstance(error, Py4JError | PySparkException):
        return None
    text, place = str(error), urlsplit(folder)
    named = re.search(rf"\S*{re.escape(place.netloc + place.path)}/[^\s,;'\"]+", text)
    # Spark says only the number of a file that is missing from the log of a source.
    missing = re.search(r"batch (\d+) doesn't exist", text)
    file = named[0].rstrip(".") if named else f"{folder}/sources/*/{missing[1]}" if missing else None
    cause = next((one.code for one in CAUSES if one.pattern.search(text)), None)
    if file is None or cause not in (None, "SOURCE_FILE_MISSING"):
        return None
    found = StateError(
        "A file of Spark's own log cannot be used",
        code="CHECKPOINT_SPARK_LOG_DAMAGED",
        got=f"{file}: {reason(text)}",
        why="It says which rows were taken, so without it rows would be skipped or taken twice",
        do="Restore the file from a backup, or start with a new checkpoint and new output directories",
    )
    found.__cause__ = error
    return found


def _in_batch(message: str, batch: int, operator: str | None) -> str:
    """The message with the batch, and the operator unless it is in the message, behind its code."""
    code = re.match(r"\[[A-Z0-9_]+\] ", message)
    start = code.end() if code else 0
    place = "" if operator is None or repr(operator) in message else f" in operator {operator!r}"
    return f"{message[:start]}Batch {batch} failed{place}. {message[start:]}"


def _classified(error: Exception, batch: int, output: str | None, stream_of: StreamOf) -> TidegateError:
    if java_process.is_lost(error):
        # Whatever was running fails in its own way.
        return _made(batch, "Spark's Java process has ended", error, _NEW_JAVA, code="JAVA_PROCESS_LOST")
    if isinstance(error, Py4JError | PySparkException):
        return _of_spark(error, batch, output)
    if (
        isinstance(error, AttributeError)
        and getattr(SparkContext._active_spark_context, "_jsc", None) is None
    ):
        # What is left of a session whose Java objects are gone.
        stopped = CAUSES[0]
        return _made(batch, stopped.problem, error, stopped.do, code="SESSION_STOPPED")
    if output is not None:
        return _sink_failed(batch, output, in_one_line(error))
    if own_place(error):
        return _made(batch, "a function of the flow raised an error", error, code="USER_FUNCTION_FAILED")
    if isinstance(error, OSError):
        do = "Check the disk and the path of the checkpoint"
        if error.errno == errno.ENOSPC:
            return _made(batch, "a disk is full", error, do, code="DISK_FULL")
        return _made(batch, _UNREACHABLE, error, do, code="STATE_UNREACHABLE")
    return _made(batch, "Tidegate has a fault", error, _REPORT, code="INTERNAL_ERROR")


_NEW_JAVA = (
    "If the system killed it because memory ran out (its log says so), give it less to do or more memory "
    "(spark.driver.memory). Run the program anew"
)
_UNREACHABLE = "the checkpoint cannot be read or written"
_REPORT = "Report it with the traceback in `__cause__`; a start with the same checkpoint runs the batch again"


def _made(batch: int, problem: str, error: Exception, do: str = "Mend it", *, code: str) -> BatchFailed:
    return BatchFailed(
        f"Batch {batch} failed: {problem}",
        got=in_one_line(error),
        why="Nothing of the batch was committed",
        do=do if do == _REPORT else f"{do}, {_AGAIN}",
        code=code,
    )


def _of_spark(error: Exception, batch: int, output: str | None) -> BatchFailed:
    text = str(error)
    cause = next((one for one in CAUSES if one.pattern.search(text)), None)
    if cause is None:
        return _unknown_to_us(text, batch, output)
    got = _got(text, cause)
    subject = f"output {output!r} cannot be written: " if cause.of_output and output is not None else ""
    found = BatchFailed(
        f"Batch {batch} failed: {subject}{cause.problem}",
        got=got,
        why="Nothing of the batch was committed",
        do=cause.do,
        code=cause.code,
    )
    file = _FILE.search(text)
    if cause.of_source and file is not None:
        found.details["file"] = file[1]
    return found


def _unknown_to_us(text: str, batch: int, output: str | None) -> BatchFailed:
    """An error of Spark that is none of ours: of the sink, or of an expression of the flow."""
    if output is not None:
        return _sink_failed(batch, output, reason(text))
    return BatchFailed(
        f"Batch {batch} failed: Spark cannot evaluate the flow",
        got=reason(text),
        why="Nothing of the batch was committed",
        do=f"Mend the expression or the data that it names, {_AGAIN}",
        code="EXPRESSION_FAILED",
    )


def _sink_failed(batch: int, output: str, got: str) -> BatchFailed:
    return BatchFailed(
        f"Batch {batch} failed: output {output!r} cannot be written",
        got=got,
        why="Nothing of the batch was committed",
        do=f"Mend the sink, {_AGAIN}; the sink gets the same rows again",
        code="SINK_FAILED",
    )


def _got(text: str, cause: Cause) -> str:
    if cause.code == "USER_FUNCTION_FAILED":
        return _raised_in(text)
    if cause.code == "WORKERS_WITHOUT_TIDEGATE":
        return shortened(next(line for line in text.splitlines() if cause.pattern.search(line)))
    if cause.code in ("WORKER_CRASHED", "JAVA_MEMORY_FULL"):
        # The innermost error says only that a stream has ended.
        found = cause.pattern.search(text)
        assert found is not None
        return shortened(text[found.start() :].splitlines()[0])
    file = _FILE.search(text)
    return file[1] if cause.of_source and file is not None else reason(text)


def _raised_in(text: str) -> str:
    """The last line of a worker's traceback, with the function and line that raised."""
    lines = text.splitlines()
    traced = next((n for n, line in enumerate(lines) if "Traceback (most recent call last)" in line), 0)
    raised = ""
    for line in lines[traced + 1 :]:
        if _RAISED.match(line):
            raised = line
            break
    frames = [
        one
        for one in _FRAME.finditer(text)
        if "site-packages" not in one["file"] and "pyspark.zip" not in one["file"]
    ]
    place = (
        f" in {frames[-1]['name']} ({frames[-1]['file'].rpartition('/')[2]}, line {frames[-1]['line']})"
        if frames
        else ""
    )
    return f"{shortened(raised or text)}{place}"


def reason(text: str) -> str:
    """One line of an error of Spark: the condition that it names and no wrapper of it, or the first line."""
    named = [one for one in _CONDITION.finditer(text) if one[1] not in _WRAPPERS]
    if named:
        return shortened(f"[{named[-1][1]}] {named[-1][2]}".partition(" SQLSTATE")[0])
    caused = re.findall(r"^Caused by: (.+)$", text, re.MULTILINE)
    lines = [line for line in text.splitlines() if line.strip()]
    found = (caused or _THROWN.findall(text) or lines or [type(text).__name__])[-1 if caused else 0]
    return shortened(_PACKAGE.sub("", found))
