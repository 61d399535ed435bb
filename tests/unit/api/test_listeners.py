from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.messages.expecting import expect

from tidegate.api import listeners
from tidegate.api.listeners import Listener, add_listener, await_any, notify, remove_listener
from tidegate.errors import BatchFailed


@pytest.fixture(autouse=True)
def no_listeners(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listeners, "_listeners", [])


class Noted(Listener):
    def __init__(self) -> None:
        self.events: list[tuple[Any, ...]] = []

    def on_start(self, query: Any) -> None:
        self.events.append(("start", query))

    def on_progress(self, query: Any, progress: Any) -> None:
        self.events.append(("progress", query, progress))

    def on_stop(self, query: Any, error: BaseException | None) -> None:
        self.events.append(("stop", query, error))


def test_a_listener_hears_of_every_event() -> None:
    heard = Noted()
    add_listener(heard)
    notify("start", "q")
    notify("progress", "q", "p")
    notify("stop", "q", None)
    assert heard.events == [("start", "q"), ("progress", "q", "p"), ("stop", "q", None)]


def test_a_listener_is_called_once_however_often_it_is_added() -> None:
    heard = Noted()
    add_listener(heard)
    add_listener(heard)
    notify("start", "q")
    assert len(heard.events) == 1


def test_a_removed_listener_is_called_no_more_and_may_be_removed_again() -> None:
    heard = Noted()
    add_listener(heard)
    remove_listener(heard)
    remove_listener(heard)
    notify("start", "q")
    assert heard.events == []


def test_a_listener_that_overrides_nothing_does_no_harm() -> None:
    add_listener(Listener())
    for event, arguments in {"start": ("q",), "progress": ("q", "p"), "stop": ("q", None)}.items():
        notify(event, *arguments)


def test_a_listener_that_fails_is_logged_and_the_others_are_called(caplog: pytest.LogCaptureFixture) -> None:
    class Failing(Listener):
        def on_start(self, query: Any) -> None:
            raise RuntimeError("no room")

    heard = Noted()
    add_listener(Failing())
    add_listener(heard)
    notify("start", "q")
    assert heard.events == [("start", "q")]
    assert "A listener failed in on_start" in caplog.text
    assert "no room" in caplog.text


@pytest.mark.parametrize("listener", [print, None, Noted])
def test_a_listener_is_an_instance(listener: Any) -> None:
    expect("LISTENER_TYPE", lambda: add_listener(listener))


# -- await_any -----------------------------------------------------------------------------------------------


class Query:
    """As much of a query as waiting needs."""

    def __init__(self, failure: BaseException | None = None) -> None:
        self.is_active = True
        self._failure = failure
        self._at_end: list[Callable[[], object]] = []

    def exception(self) -> BaseException | None:
        return self._failure

    def _on_end(self, call: Callable[[], object]) -> None:
        if self.is_active:
            self._at_end.append(call)
        else:
            call()

    def end(self) -> None:
        self.is_active = False
        for call in self._at_end:
            call()


def first_of(*queries: Query, timeout: float | None = None) -> Any:
    return await_any(*queries, timeout=timeout)  # type: ignore[arg-type]


def test_the_query_that_ended_already_is_the_first() -> None:
    running, ended = Query(), Query()
    ended.end()
    assert first_of(running, ended, timeout=10) is ended


def test_waiting_ends_with_the_first_query_that_ends() -> None:
    running, ending = Query(), Query()
    timer = threading.Timer(0.05, ending.end)
    timer.start()
    assert first_of(running, ending, timeout=10) is ending
    timer.join()


def test_waiting_has_an_end_of_its_own() -> None:
    assert first_of(Query(), Query(), timeout=0.01) is None


@pytest.mark.parametrize("failure", [BatchFailed("It broke", code="SINK_FAILED"), OSError("disk full")])
def test_the_error_of_a_failed_query_is_raised(failure: Exception) -> None:
    failed = Query(failure)
    failed.end()
    with pytest.raises(type(failure)) as caught:
        first_of(Query(), failed)
    assert caught.value is failure


def test_there_must_be_a_query_to_wait_for() -> None:
    expect("AWAIT_ANY_EMPTY", lambda: await_any(timeout=1))
