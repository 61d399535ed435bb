"""What ends a batch becomes one error with a code, the batch, the place and what to do."""

from __future__ import annotations

import errno
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from py4j.protocol import Py4JError
from pyspark import SparkContext

from tidegate.driver.failures import failure_of, log_failure, writing
from tidegate.errors import BatchFailed, StateError, TidegateError
from tidegate.worker.runtime.stage_file import StageWriter
from tidegate.worker.runtime.task_errors import guarded

UDF_TEXT = """
  An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "/opt/venv/lib/python3.11/site-packages/pyspark/worker.py", line 12, in main
  File "/home/me/jobs.py", line 22, in bad
    def bad(x): return x // 0
                       ~~^^~~
ZeroDivisionError: integer division or modulo by zero
"""
READ_TEXT = """An error occurred while calling o279.collectToPython.
: org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file \
file:///data/a/1.parquet.  SQLSTATE: KD001
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.cannotReadFilesError(QueryExecutionErrors.scala:920)
Caused by: java.lang.RuntimeException: file:/data/a/1.parquet is not a Parquet file.
"""


def of_spark(text: str, **given: Any) -> TidegateError:
    return failure_of(Py4JError(text), 7, **given)


def carried(error: Exception) -> str:
    """The text of Spark's error after a task of operator `near` raised this one."""

    def task(batches: Any) -> Any:
        raise error
        yield

    with pytest.raises(Exception, match="kind") as raised:
        list(guarded("near", task)(iter(())))
    text = f"tidegate.worker.runtime.task_errors.CarriedError: {raised.value}"
    return f"Job aborted\nTraceback (most recent call last):\n  …\n{text}\n\n\tat org.apache.spark.x\n"


def test_an_error_of_a_task_keeps_its_class_code_and_details() -> None:
    error = StateError("Stored rows are damaged", got="checksum a", do="Restore them", code="SEGMENT_DAMAGED")
    cause = Py4JError(carried(error))
    found = failure_of(cause, 7)
    assert type(found) is StateError
    assert found.code == "SEGMENT_DAMAGED"
    assert str(found) == (
        "[SEGMENT_DAMAGED] Batch 7 failed in operator 'near'. Stored rows are damaged. "
        "Got: checksum a. Restore them."
    )
    assert found.details == {
        "problem": "Stored rows are damaged",
        "got": "checksum a",
        "remedy": "Restore them",
        "operator": "near",
        "batch_id": 7,
    }
    assert found.__cause__ is cause


def test_a_message_of_several_lines_comes_out_whole() -> None:
    found = of_spark(carried(BatchFailed("Expected\n  a\nnot b", code="A_CODE")))
    assert str(found) == "[A_CODE] Batch 7 failed in operator 'near'. Expected\n  a\nnot b."


def test_a_task_that_fails_for_a_reason_of_ours_says_so() -> None:
    found = of_spark(carried(KeyError("lane")))
    assert (found.code, found.details["operator"]) == ("INTERNAL_ERROR", "near")
    assert "KeyError: 'lane'" in str(found)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "DISK_FULL"),
        (OSError(errno.EIO, "i/o"), "STATE_UNREACHABLE"),
        (MemoryError(), "MEMORY_FULL"),
    ],
)
def test_a_task_that_its_machine_fails_says_what_is_missing(error: Exception, code: str) -> None:
    assert of_spark(carried(error)).code == code


def test_an_error_of_the_driver_stays_itself_and_gets_the_batch() -> None:
    error = BatchFailed("No report", code="INTERNAL_REPORTS_MISSING")
    assert failure_of(error, 7) is error
    assert error.details["batch_id"] == 7


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "An error occurred while calling o5.save.\n: java.sql.SQLException: No suitable driver\n\tat x",
            "SQLException: No suitable driver",
        ),
        (
            "[STREAM_FAILED] Query [id = 46b7] terminated with exception: [CAST_INVALID_INPUT] The value 'x' "
            "cannot be cast. SQLSTATE: 22018",
            "[CAST_INVALID_INPUT] The value 'x' cannot be cast.",
        ),
    ],
)
def test_the_reason_is_what_spark_says_and_not_what_wraps_it(text: str, said: str) -> None:
    assert of_spark(text, output="near").details["got"] == said


def test_a_session_that_was_stopped_under_a_query_is_named() -> None:
    found = of_spark("Job 7 cancelled because SparkContext was shut down")
    assert found.code == "SESSION_STOPPED"
    assert "query.stop()" in str(found)


@pytest.mark.parametrize("context", [None, SimpleNamespace(_jsc=None)])
def test_a_session_that_is_gone_before_a_batch_is_named(
    context: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SparkContext, "_active_spark_context", context)
    error = AttributeError("'NoneType' object has no attribute 'setLocalProperty'")
    assert failure_of(error, 7).code == "SESSION_STOPPED"


def test_a_function_of_the_user_is_named_with_its_line() -> None:
    found = of_spark(UDF_TEXT)
    assert found.code == "USER_FUNCTION_FAILED"
    assert "ZeroDivisionError: integer division or modulo by zero in bad (jobs.py, line 22)" in str(found)
    assert found.details["remedy"].startswith("Mend the function")


def test_a_damaged_source_file_is_named_with_its_stream() -> None:
    found = of_spark(READ_TEXT, stream_of={"file:///data/a/1.parquet": "orders"}.get)
    assert found.code == "SOURCE_FILE_DAMAGED"
    assert (found.details["file"], found.details["stream"]) == ("file:///data/a/1.parquet", "orders")
    assert "file:///data/a/1.parquet. " in str(found)
    assert "'orders'" in str(found)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("[FAILED_READ_FILE.FILE_NOT_EXIST] reading file file:///a/1.parquet. ", "SOURCE_FILE_MISSING"),
        ("[FAILED_READ_FILE.PARQUET_COLUMN_DATA_TYPE_MISMATCH] file:///a/1.parquet", "SOURCE_COLUMN_CHANGED"),
        ("java.io.IOException: No space left on device", "DISK_FULL"),
        ("java.net.ConnectException: Connection refused", "PATH_UNREACHABLE"),
        ("java.io.IOException: Mkdirs failed to create file:/out/batch=3", "PATH_REFUSED"),
        ("Python worker exited unexpectedly (crashed)", "WORKER_CRASHED"),
        ("ExecutorLostFailure (executor 1 exited): Container killed, exit code 137", "WORKER_CRASHED"),
        ("java.lang.OutOfMemoryError: Java heap space", "JAVA_MEMORY_FULL"),
        ("ModuleNotFoundError: No module named 'tidegate'", "WORKERS_WITHOUT_TIDEGATE"),
        ("[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012", "EXPRESSION_FAILED"),
    ],
)
def test_errors_of_spark_are_told_apart(text: str, code: str) -> None:
    found = of_spark(text)
    assert type(found) is BatchFailed
    assert found.code == code
    assert found.details["remedy"]
    assert found.details["batch_id"] == 7


@pytest.mark.parametrize(
    ("text", "file"),
    [
        (
            "An error occurred.\n: org.apache.hadoop.fs.ChecksumException: Checksum error: {}",
            "/metadata at 0",
        ),
        ("[STREAM_FAILED] Query [id = 1] terminated with exception: Checksum error: {}", "/commits/2 at 0"),
        ("java.io.FileNotFoundException: File {} does not exist", "/offsets/1"),
    ],
)
def test_a_file_of_sparks_own_log_is_named_as_such(text: str, file: str) -> None:
    error = Py4JError(text.format(f"file:/data/ck/spark{file}"))
    found = log_failure(error, "file:///data/ck/spark")
    assert isinstance(found, StateError)
    assert found.code == "CHECKPOINT_SPARK_LOG_DAMAGED"
    assert f"file:/data/ck/spark{file.partition(' ')[0]}" in str(found)
    assert log_failure(error, "file:///data/other/spark") is None
    assert (
        log_failure(Py4JError("No space left on device: file:/data/ck/spark/commits/2"), "/data/ck/spark")
        is None
    )
    assert log_failure(OSError("/data/ck/spark/commits/2"), "/data/ck/spark") is None


def test_a_file_that_is_missing_from_the_log_of_a_source_is_named_by_its_number() -> None:
    error = Py4JError(
        "[STREAM_FAILED] Query terminated with exception: batch 2 doesn't exist SQLSTATE: XXKST"
    )
    found = log_failure(error, "/data/ck/spark")
    assert found is not None
    assert found.code == "CHECKPOINT_SPARK_LOG_DAMAGED"
    assert "/data/ck/spark/sources/*/2: " in str(found)


def test_a_starved_worker_is_named_and_not_the_stream_that_it_ended() -> None:
    text = (
        ": org.apache.spark.SparkException: Job aborted due to stage failure: Task 1 in stage 3.0 failed:\n"
        "Python worker exited unexpectedly (crashed). Consider a fault handler.\n"
        "\tat org.apache.spark.api.python.BasePythonRunner.read(PythonRunner.scala:1)\n"
        "Caused by: java.io.EOFException"
    )
    found = of_spark(text)
    assert found.details["got"].startswith("Python worker exited unexpectedly (crashed)")
    assert "EOFException" not in str(found)
    assert "spark.executor.memoryOverhead" in found.details["remedy"]
    assert "maxBytesPerTrigger" in found.details["remedy"]


def test_a_full_heap_of_java_is_not_taken_for_a_worker() -> None:
    found = of_spark("java.lang.OutOfMemoryError: Java heap space\nExecutorLostFailure (executor 1)")
    assert found.code == "JAVA_MEMORY_FULL"
    assert found.details["got"] == "OutOfMemoryError: Java heap space"
    assert "spark.driver.memory" in found.details["remedy"]


def test_a_disk_that_fills_while_results_are_staged_is_named(tmp_path: Path) -> None:
    # Every write to this device fails as one to a full disk does.
    (tmp_path / "staged.parquet").symlink_to("/dev/full")

    writer = StageWriter(str(tmp_path / "staged.parquet"))
    with pytest.raises(OSError, match="No space left on device") as raised:
        writer.write(pa.record_batch({"x": np.random.default_rng(0).random(1 << 20)}))
    found = of_spark(carried(raised.value))
    assert found.code == "DISK_FULL"
    assert "operator 'near'" in str(found)
    assert "Free space" in found.details["remedy"]


def test_an_unknown_error_of_spark_says_what_spark_says() -> None:
    assert "Got: [DIVIDE_BY_ZERO] Division by zero." in str(of_spark("[DIVIDE_BY_ZERO] Division by zero."))


def test_a_sink_that_raises_is_named() -> None:
    with pytest.raises(BatchFailed) as raised, writing("near", 7):
        raise ValueError("no such table")
    found = raised.value
    assert found.code == "SINK_FAILED"
    assert (found.details["output"], found.details["batch_id"]) == ("near", 7)
    assert "ValueError: no such table (test_failures.py, line " in str(found)
    assert isinstance(found.__cause__, ValueError)


def test_a_source_file_that_fails_while_a_sink_reads_is_no_fault_of_the_sink() -> None:
    found = of_spark(READ_TEXT, output="near")
    assert found.code == "SOURCE_FILE_DAMAGED"
    assert found.details["output"] == "near"


def test_a_fault_of_ours_asks_for_a_report() -> None:
    # Raised without a frame of this test, which would count as the user's.
    found = failure_of(KeyError("lane"), 7)
    assert found.code == "INTERNAL_ERROR"
    assert "__cause__" in found.details["remedy"]


def test_a_function_of_the_user_in_the_driver_is_no_fault_of_ours() -> None:
    with pytest.raises(ValueError, match="invalid literal") as raised:
        int("x")
    assert failure_of(raised.value, 7).code == "USER_FUNCTION_FAILED"


def test_a_class_that_this_version_does_not_know_is_still_ours() -> None:
    class Unheard(TidegateError):
        pass

    assert type(of_spark(carried(Unheard("Of", code="A_CODE")))) is TidegateError
