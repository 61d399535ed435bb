"""The log of a query, through Python's `logging` under the name `tidegate.query`.

    DEBUG      every batch
    INFO       every change of what is shed or moved; one summary a minute
    WARNING    what a person should look at: lost rows, a goal that cannot be kept

`LogEvents` computes the lines from the telemetry of batches, `QueryLog` writes them. A level is logged when
it leaves or returns to its normal value, or differs by `STEP` from the value logged last, so a controller
that moves a little in every batch logs nothing. Nothing is printed unless the user configures logging: the
package's logger has a `NullHandler`. Records carry `query_name` and `batch_id` as attributes.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tidegate.observe import units
from tidegate.observe.shed_summary import levels, moved_parts, shedding
from tidegate.observe.tally import percentile, rows_out
from tidegate.redaction import without_secrets

Telemetry = Mapping[str, Any]
#: The difference of a ratio that is worth another line.
STEP = 0.1
#: Seconds between two summaries.
SUMMARY_SECONDS = 60.0


class LogLine(NamedTuple):
    """A level of `logging`, and the text."""

    level: int
    text: str


@dataclass
class Summed:
    """Sums since the last summary."""

    since: float
    batches: int = 0
    rows_in: int = 0
    rows_out: int = 0
    late: int = 0
    rejected: int = 0
    latencies: list[float] = field(default_factory=list)


class LogEvents:
    """The log lines of one run; `now` is the time at which a batch was finished, in seconds."""

    def __init__(self, now: float, goal_seconds: float | None = None) -> None:
        self._sums = Summed(now)
        self.goal_seconds = goal_seconds
        #: By kind and operator: the ratio that was logged last.
        self._logged: dict[tuple[str, str, bool], float] = {}
        self._instances: dict[str, int] = {}
        self._warned: set[str] = set()
        self._in_debt = False

    def of(self, telemetry: Telemetry, now: float) -> list[LogLine]:
        """The lines of one batch, in order."""
        lines = [LogLine(logging.DEBUG, _batch(telemetry))]
        lines += self._levels(telemetry)
        lines += self._placement(telemetry)
        lines += self._debts(telemetry)
        lines += self._warnings(telemetry)
        lines += self._summary(telemetry, now)
        return lines

    def _levels(self, telemetry: Telemetry) -> Iterator[LogLine]:
        for one in levels(telemetry):
            key, ratio = (one.kind, one.operator, one.would), one.ratio
            before = self._logged.get(key, 1.0)
            if ratio == before or (abs(ratio - before) < STEP and 1.0 not in (ratio, before)):
                continue
            self._logged[key] = ratio
            was = "" if before == 1.0 else f", before {units.percent(before)}"
            over = "" if ratio < 1.0 else " again"
            level = logging.WARNING if one.kind == "fresh" and ratio < 1.0 else logging.INFO
            yield LogLine(level, f"{one.operator} {one.text}{over}{was}")

    def _placement(self, telemetry: Telemetry) -> Iterator[LogLine]:
        for name, one in (telemetry.get("balance") or {}).items():
            count = int(one.get("instances", 0))
            before = self._instances.setdefault(name, count)
            if count != before:
                self._instances[name] = count
                yield LogLine(logging.INFO, f"{name}: runs on {count} instances, before {before}")
            move = one.get("moved")
            if move and move["rows"]:
                what, rows = moved_parts(move) or "state", units.count(move["rows"])
                yield LogLine(logging.INFO, f"{name}: moved {what} with {rows} rows to another instance")

    def _debts(self, telemetry: Telemetry) -> Iterator[LogLine]:
        debts = telemetry.get("debts") or {}
        skipped = int(debts.get("comparisons", 0))
        if bool(skipped) != self._in_debt:
            self._in_debt = bool(skipped)
            text = (
                f"{units.count(skipped)} skipped pairs wait for repair"
                if skipped
                else "no pair waits for repair"
            )
            yield LogLine(logging.INFO, text)

    def _warnings(self, telemetry: Telemetry) -> Iterator[LogLine]:
        """Every condition once, when it begins."""
        now: dict[str, str] = {}
        for one in telemetry.get("warnings", ()):
            # The numbers of a warning change from batch to batch.
            now[re.sub(r"[\d.,]+", "#", one["message"])] = f"{one['message']} [{one['code']}]"
        for name, rows in telemetry["rejected"].items():
            if rows:
                share = f"{units.count(rows)} of {units.count(telemetry['offered'][name])} rows"
                now[f"rejected {name}"] = f"{name}: rejected {share}, whose time is null or too far ahead"
        yield from (LogLine(logging.WARNING, now[key]) for key in sorted(now.keys() - self._warned))
        self._warned = set(now)

    def _summary(self, telemetry: Telemetry, now: float) -> Iterator[LogLine]:
        sums = self._sums
        sums.batches += 1
        sums.rows_in += telemetry["input_rows"]
        sums.rows_out += rows_out(telemetry)
        sums.late += sum(telemetry["late"].values())
        sums.rejected += sum(telemetry["rejected"].values())
        if telemetry["input_rows"]:
            sums.latencies.append(_latency(telemetry))
        if now - sums.since < SUMMARY_SECONDS:
            return
        goal = f" (goal {units.seconds(self.goal_seconds)})" if self.goal_seconds is not None else ""
        yield LogLine(
            logging.INFO,
            f"{units.count(sums.rows_in)} rows in, {units.count(sums.rows_out)} out "
            f"in {sums.batches} batches; "
            f"p95 {units.seconds(percentile(sums.latencies, 0.95))}{goal}; "
            f"state {units.count(telemetry['state_rows'])} rows, {units.size(telemetry['state_bytes'])}; "
            f"late {units.count(sums.late)}, rejected {units.count(sums.rejected)}; "
            f"{', '.join(shedding(telemetry)) or 'nothing shed'}",
        )
        self._sums = Summed(now)


def _batch(telemetry: Telemetry) -> str:
    return (
        f"batch {telemetry['batch']}: {units.count(telemetry['input_rows'])} rows in, "
        f"{units.count(rows_out(telemetry))} out in {units.seconds(telemetry['duration_seconds'])}"
    )


def _latency(telemetry: Telemetry) -> float:
    """The 95th percentile of the latency, where it was measured; else the duration of the batch."""
    measured = (telemetry.get("latency") or {}).get("p95_seconds")
    return float(telemetry["duration_seconds"] if measured is None else measured)


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
