"""The handle without Spark: what it is before, during and after a run."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.messages.expecting import expect

from tidegate.api.goal import Goal
from tidegate.driver.streaming_query import StreamingQuery
from tidegate.errors import BatchFailed, FlowError


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
    engine: Any = None
    inner: Any = SimpleNamespace(
        id="q-1",
        runId="r-1",
        status={"message": "Waiting"},
        explain=lambda extended: explained.append(extended),
    )
    query._runs(engine, inner)
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


class Spark:
    """Stands in for Spark's handle: whether it is within a trigger."""

    isActive = True  # noqa: N815

    def __init__(self, active: bool = False):
        self.status = {"message": "Waiting", "isDataAvailable": False, "isTriggerActive": active}

    def stop(self) -> None:
        """Nothing runs."""


def running(active: bool = False) -> StreamingQuery:
    query = StreamingQuery("near")
    query._inner = Spark(active)  # type: ignore[assignment]
    return query


def batch(query: StreamingQuery, at_rest: bool) -> None:
    query._batch_began()
    query._batch_ended(at_rest)


@pytest.mark.parametrize(
    ("active", "then", "returns"),
    [
        # Between two triggers, sources are asked again before the next batch.
        (False, [True], True),
        (False, [False], False),
        (False, [False, False, True], True),
        # Within a trigger without a batch, they may have been asked already.
        (True, [True], False),
        (True, [True, True], True),
        (True, [True, False], False),
    ],
)
def test_all_is_processed_after_a_batch_that_asked_later_and_found_nothing(
    active: bool, then: list[bool], returns: bool
) -> None:
    query = running(active)
    batch(query, at_rest=True)
    done = threading.Thread(target=query.process_all_available, daemon=True)
    done.start()
    time.sleep(0.1)
    for at_rest in then:
        batch(query, at_rest)
    done.join(2 if returns else 0.3)
    assert done.is_alive() != returns
    query._end(None)
    done.join(2)


def test_a_batch_that_runs_asked_before() -> None:
    query = running(active=True)
    query._batch_began()
    done = threading.Thread(target=query.process_all_available, daemon=True)
    done.start()
    time.sleep(0.1)
    query._batch_ended(at_rest=True)
    done.join(0.3)
    assert done.is_alive()
    batch(query, at_rest=True)
    done.join(2)
    assert not done.is_alive()


def test_a_paused_query_begins_no_batch_and_says_so() -> None:
    query = running()
    assert query.status["message"] == "Waiting"
    query.pause()
    query.pause()
    assert query.status["message"] == "Paused"
    assert "paused" in repr(query)
    began = threading.Event()

    def take() -> None:
        with query._running(0):
            began.set()

    thread = threading.Thread(target=take, daemon=True)
    thread.start()
    assert not began.wait(0.3)
    query.resume()
    assert began.wait(2)
    assert query.status["message"] == "Waiting"
    thread.join(2)


def test_waiting_for_a_paused_query_is_an_error_at_once_and_later() -> None:
    query = running()
    failed: list[BaseException] = []

    def wait() -> None:
        try:
            query.process_all_available()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    time.sleep(0.1)
    query.pause()
    thread.join(2)
    assert isinstance(failed[0], FlowError)
    expect("QUERY_PAUSED", query.process_all_available)


def test_a_stop_ends_the_wait_of_a_paused_batch() -> None:
    query = running()
    query.pause()
    failed: list[BaseException] = []

    def take() -> None:
        try:
            with query._running(0):
                raise AssertionError("a batch began")
        except BatchFailed as error:
            failed.append(error)
        query._end(None)

    thread = threading.Thread(target=take, daemon=True)
    thread.start()
    time.sleep(0.1)
    query.stop(timeout=5)
    thread.join(2)
    assert failed[0].code == "STOPPING"  # type: ignore[attr-defined]
    expect("PAUSE_NOT_RUNNING", query.pause)


def test_only_a_running_query_gets_another_goal() -> None:
    query = StreamingQuery("near")
    error = expect("SET_GOAL_NOT_RUNNING", lambda: query.set_goal(Goal(latency="1 second")))
    assert "continues from its checkpoint" in error.details["remedy"]


def test_the_goal_that_was_set_last_is_wanted_and_a_wrong_one_changes_nothing() -> None:
    query = running()
    query._engine = engine = SimpleNamespace(wanted="first")  # type: ignore[assignment]

    def another(goal: Goal | None) -> Any:
        if goal is not None and goal.max_loss == 0:
            raise FlowError("Nothing may be shed", code="GOAL_MAX_LOSS_ZERO")
        return goal

    query._another = another
    query.set_goal(Goal("2 seconds"))
    query.set_goal(None)
    assert engine.wanted is None
    query.set_goal(Goal("1 second", observe=True))
    expect("GOAL_MAX_LOSS_ZERO", lambda: query.set_goal(Goal("1 second", max_loss=0.0)))
    assert engine.wanted == Goal("1 second", observe=True)
