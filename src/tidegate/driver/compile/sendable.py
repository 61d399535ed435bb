"""Functions of users that run in workers: whether they can be sent there is known before anything starts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark import cloudpickle

from tidegate.errors import FlowError, explain


def check_sendable(what: str, function: Callable[..., Any]) -> None:
    """FlowError where it cannot be pickled; `what` says whose function it is."""
    try:
        cloudpickle.dumps(function)  # type: ignore[no-untyped-call]
    except Exception as error:
        raise FlowError(
            explain(
                f"{what} cannot be sent to the workers",
                got=f"{type(error).__name__}: {error}",
                why="It is pickled with all that it refers to",
                do="Let it not refer to sessions, locks, open files or connections",
            )
        ) from error
