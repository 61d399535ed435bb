from __future__ import annotations

from tidegate.driver.worker_errors import worker_error_in
from tidegate.errors import BatchFailed, StateError, TidegateError

SPARK_TEXT = """An error occurred while calling o512.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 1 in stage 14.0 failed 1 times
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "segment.py", line 141, in _verified
    raise _damaged(place)
tidegate.errors.StateError: Stored rows are damaged: segments/near/1.arrow. Got: checksum a.

\tat org.apache.spark.api.python.BasePythonRunner.handlePythonException(PythonRunner.scala:581)
"""


def test_an_error_that_a_worker_raised_on_purpose_comes_out_as_itself_with_the_batch() -> None:
    cause = RuntimeError(SPARK_TEXT)
    error = worker_error_in(cause, 7)
    assert type(error) is StateError
    assert str(error) == (
        "Batch 7 cannot be completed. Stored rows are damaged: segments/near/1.arrow. Got: checksum a."
    )
    assert error.__cause__ is cause


def test_a_message_of_several_lines_comes_out_whole() -> None:
    text = SPARK_TEXT.replace("checksum a.", "ValueError: expected\n  a\nnot b. Start again.")
    for given in (text, text.partition("\n\n")[0], text.replace("\n\n\tat", "\n\tat")):
        assert str(worker_error_in(RuntimeError(given), 7)).endswith(
            "Got: ValueError: expected\n  a\nnot b. Start again."
        )


def test_an_error_of_the_driver_is_left_as_it_is() -> None:
    error = BatchFailed("no report")
    assert worker_error_in(error, 7) is error


def test_any_other_error_is_left_as_it_is() -> None:
    error = RuntimeError("ValueError: a user's function failed")
    assert worker_error_in(error, 7) is error


def test_a_class_that_this_version_does_not_know_is_still_ours() -> None:
    assert type(worker_error_in(RuntimeError("tidegate.errors.Unheard: of"), 7)) is TidegateError
