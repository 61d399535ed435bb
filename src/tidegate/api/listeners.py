"""Functions over all running queries: waiting for the first to end, and listeners."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any

from tidegate.errors import FlowError
from tidegate.model.progress import Progress

if TYPE_CHECKING:
    from tidegate.driver.streaming_query import StreamingQuery

_log = logging.getLogger(__name__)


class Listener:
    """Called for every query of this process; override what you need.

    Calls come from the query's own thread, so they should be short. An exception in a listener is logged and
    does not harm the query.

    >>> class Printer(Listener):
    ...     def on_progress(self, query, progress):
    ...         print(progress.summary)
    """

    def on_start(self, query: StreamingQuery) -> None:
        """A query has started."""

    def on_progress(self, query: StreamingQuery, progress: Progress) -> None:
        """A batch was committed."""

    def on_stop(self, query: StreamingQuery, error: BaseException | None) -> None:
        """A query has ended; `error` says why, if it failed."""


_listeners: list[Listener] = []
_lock = threading.Lock()


def add_listener(listener: Listener) -> None:
    """Call the methods of a `tidegate.Listener` for every query of this process, until it is removed.

    >>> class Printer(Listener):
    ...     def on_stop(self, query, error):
    ...         print(f"{query.name} has ended")
    >>> printer = Printer()
    >>> add_listener(printer)
    >>> remove_listener(printer)
    """
    if not isinstance(listener, Listener):
        raise FlowError(
            "add_listener takes a listener",
            code="LISTENER_TYPE",
            got=type(listener).__name__,
            do="Subclass tg.Listener and pass an instance",
        )
    with _lock:
        if listener not in _listeners:
            _listeners.append(listener)


def remove_listener(listener: Listener) -> None:
    """Stop calling a listener; nothing happens if it was never added.

    >>> remove_listener(Listener())
    """
    with _lock:
        if listener in _listeners:
            _listeners.remove(listener)


def notify(event: str, *arguments: Any) -> None:
    """Call `on_<event>` of every listener; their exceptions are logged."""
    with _lock:
        listeners = list(_listeners)
    for listener in listeners:
        try:
            getattr(listener, f"on_{event}")(*arguments)
        except Exception:
            _log.exception("A listener failed in on_%s: %r", event, listener)


def await_any(*queries: StreamingQuery, timeout: float | None = None) -> StreamingQuery | None:
    """Wait until one of these queries ends, and return it; None if `timeout` seconds pass before.

    Raises the error of the query if it failed.

    >>> query = tg.start(orders.write_to("noop"))
    >>> tg.await_any(query, timeout=60) is query
    True
    """
    if not queries:
        raise FlowError(
            "await_any needs a query",
            code="AWAIT_ANY_EMPTY",
            do="Pass the handles that tg.start returned: tg.await_any(one, other)",
        )
    ended = threading.Event()
    for query in queries:
        query._on_end(ended.set)
    if not ended.wait(timeout):
        return None
    first = next(query for query in queries if not query.is_active)
    error = first.exception()
    if error is not None:
        raise error
    return first
