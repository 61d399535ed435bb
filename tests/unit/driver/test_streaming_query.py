"""The handle without Spark: what it is before and after a run, and what it cannot do yet."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.messages.expecting import expect

from tidegate.api.goal import Goal
from tidegate.driver.streaming_query import StreamingQuery
from tidegate.errors import BatchFailed


def test_a_query_before_its_first_batch() -> None:
    query = StreamingQuery("near")
    assert (query.name, query.id, query.run_id, query.spark_query) == ("near", None, None, None)
    assert query.is_active
    assert (query.last_progress, query.recent_progress, query.telemetry) == (None, [], [])
    assert query.exception() is None
    assert query.explain_shedding() == "No batch has run yet."
    assert repr(query) == "<tidegate.StreamingQuery near: running>"
    assert not query.await_termination(timeout=0.01)


@pytest.mark.parametrize(
    ("failure", "state", "message"),
    [
        (None, "ended", "Stopped"),
        (OSError("disk full"), "failed", "Terminated with exception: disk full"),
    ],
)
def test_a_query_that_ended(failure: Exception | None, state: str, message: str) -> None:
    query = StreamingQuery()
    query._end(failure)
    assert not query.is_active
    assert repr(query) == f"<tidegate.StreamingQuery unnamed: {state}>"
    assert query.status == {"message": message, "isDataAvailable": False, "isTriggerActive": False}
    assert query.exception() is failure


def test_whoever_waits_for_a_failed_query_gets_its_error() -> None:
    query = StreamingQuery()
    failure = BatchFailed("It broke", code="SINK_FAILED")
    query._end(failure)
    for wait in (query.await_termination, query.process_all_available):
        with pytest.raises(BatchFailed) as caught:
            wait()
        assert caught.value is failure


def test_the_end_is_told_to_those_who_asked_before_and_after() -> None:
    query, told = StreamingQuery(), [threading.Event(), threading.Event()]
    query._on_end(told[0].set)
    assert not told[0].is_set()
    query._end(None)
    query._on_end(told[1].set)
    assert all(one.is_set() for one in told)


def test_a_batch_run_has_nothing_to_stop_or_explain(capsys: pytest.CaptureFixture[str]) -> None:
    with StreamingQuery() as query:
        query.explain()
    assert capsys.readouterr().out == "A run over batch inputs has no streaming plan.\n"


def test_identity_and_plan_are_those_of_spark() -> None:
    explained: list[bool] = []
    query = StreamingQuery()
    inner: Any = SimpleNamespace(
        id="q-1",
        runId="r-1",
        status={"message": "Waiting"},
        explain=lambda extended: explained.append(extended),
    )
    query._inner = inner
    assert (query.id, query.run_id, query.runId) == ("q-1", "r-1", "r-1")
    assert query.status == {"message": "Waiting"}
    query.explain(extended=True)
    assert explained == [True]


@pytest.mark.parametrize(
    ("name", "as_in_spark"),
    [
        ("run_id", "runId"),
        ("is_active", "isActive"),
        ("last_progress", "lastProgress"),
        ("recent_progress", "recentProgress"),
        ("await_termination", "awaitTermination"),
        ("process_all_available", "processAllAvailable"),
    ],
)
def test_names_have_both_spellings(name: str, as_in_spark: str) -> None:
    assert getattr(StreamingQuery, name) is getattr(StreamingQuery, as_in_spark)


def test_what_is_not_built_yet_says_what_to_do_instead() -> None:
    query = StreamingQuery("near")
    expect("PAUSE_UNAVAILABLE", query.pause)
    expect("PAUSE_UNAVAILABLE", query.resume)
    error = expect("SET_GOAL_UNAVAILABLE", lambda: query.set_goal(Goal(latency="1 second")))
    assert "start it again" in error.details["remedy"]
