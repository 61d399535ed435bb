"""Lines of the receipt log, and which of them are asked for.

A line is the receipt of one batch, as `control/receipts/receipts.receipt_of` makes it, or the receipts of
several batches added up, as `control/receipts/roll_up.combined` makes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from tidegate.model.json_values import Json

#: A line of the receipt log: the receipts of one batch, or those of several added up.
ReceiptLine = Mapping[str, Any]


def batches_of(line: ReceiptLine) -> tuple[int, int]:
    """The first and the last batch of a line."""
    first = int(line["first_batch_id"] if "first_batch_id" in line else line["batch_id"])
    return first, int(line.get("last_batch_id", first))


def began(line: ReceiptLine) -> str:
    """When the first batch of a line began; ISO 8601, UTC."""
    return str(line.get("first_started_at", line["started_at"]))


def minute_of(line: ReceiptLine) -> str:
    """The minute in which the first batch of a line began: its start."""
    return f"{began(line)[:16]}:00.000000+00:00"


def hour_of(line: ReceiptLine) -> str:
    """The hour in which the first batch of a line began: its start."""
    return f"{began(line)[:13]}:00:00.000000+00:00"


@dataclass(frozen=True)
class ReceiptRange:
    """Which batches are asked for: all that meet every condition."""

    #: Each batch for itself; else they will be added up, and lines that are added up already may be given.
    by_batch: bool = True
    first_batch: int = 0
    #: When a batch must have begun at the earliest.
    since: datetime | None = None
    #: The newest batches: so many of them, or those that began so long before the newest one.
    last_batches: int | None = None
    last: timedelta | None = None

    def resolved(self, newest: ReceiptLine | None) -> ReceiptRange:
        """The same without the last two conditions, given the newest line."""
        if newest is None:
            return replace(self, last_batches=None, last=None)
        first, since = self.first_batch, self.since
        if self.last_batches is not None:
            first = max(first, batches_of(newest)[1] + 1 - self.last_batches)
        if self.last is not None:
            last = datetime.fromisoformat(began(newest)) - self.last
            since = last if since is None else max(since, last)
        return replace(self, first_batch=first, since=since, last_batches=None, last=None)

    def takes(self, line: ReceiptLine) -> bool:
        """Whether all batches of a line are wanted; for a range that is resolved."""
        if batches_of(line)[0] < self.first_batch:
            return False
        return self.since is None or datetime.fromisoformat(began(line)) >= self.since


def kept_lines(lines: Sequence[Json]) -> Callable[[ReceiptRange], list[Json]]:
    """Reads from these lines, those of batches in order, as from a receipt log."""

    def read(wanted: ReceiptRange) -> list[Json]:
        resolved = wanted.resolved(lines[-1] if lines else None)
        return [line for line in lines if resolved.takes(line)]

    return read
