"""Writes the log of a query to Python's `logging`, under the name `tidegate.query`.

Nothing is printed unless the user configures logging: the package's logger has a `NullHandler`. Records carry
`query_name` and `batch_id` as attributes.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from tidegate.observe.logs.events import LogEvents, Telemetry
from tidegate.redaction import without_secrets

LOGGER = "tidegate.query"


class QueryLog:
    """The log of one run."""

    def __init__(
        self,
        name: str | None,
        goal_seconds: float | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._name, self._clock = name or "query", clock
        self._logger = logging.getLogger(LOGGER)
        self._events = LogEvents(clock(), goal_seconds)
        self._batch = -1

    def started(
        self, version: str, checkpoint: str, inputs: Sequence[str], outputs: Sequence[str], goal: str
    ) -> None:
        self._say(
            logging.INFO,
            f"started (tidegate {version}): checkpoint {checkpoint}, inputs {', '.join(inputs)}, "
            f"outputs {', '.join(outputs)}, latency goal {goal}",
        )

    def goal_changed(self, goal: str, goal_seconds: float | None) -> None:
        """The goal holds from the next batch on."""
        self._events.goal_seconds = goal_seconds
        self._say(logging.INFO, f"latency goal {goal} from the next batch on")

    def recovered(self, batch: int, *, replays: bool) -> None:
        """The run continues after this batch; `replays`: the next one was begun and runs again."""
        self._batch = batch
        again = f"; batch {batch + 1} was begun and runs again under its plan" if replays else ""
        self._say(logging.INFO, f"continues after batch {batch}{again}" if batch >= 0 else f"new{again}")

    def batch(self, telemetry: Telemetry) -> None:
        """What is worth a line about a batch."""
        self._batch = int(telemetry["batch"])
        for level, text in self._events.of(telemetry, self._clock()):
            self._say(level, text)

    def ended(self, failure: BaseException | None) -> None:
        if failure is None:
            self._say(logging.INFO, f"stopped after batch {self._batch}")
        else:
            self._say(logging.ERROR, f"failed after batch {self._batch}: {failure}")

    def _say(self, level: int, text: str) -> None:
        text = without_secrets(text)  # of checkpoints, and in errors of other libraries
        extra = {"query_name": self._name, "batch_id": self._batch}
        self._logger.log(level, "%s: %s", self._name, text, extra=extra)
