"""`Receipt`: what became of the rows of one stream, or of the results of one output, over a period.

    query.receipts()                  a pandas data frame with a row per batch, kind and name
    query.receipts(by="hour")         by hour, in UTC, of the start of a batch
    query.receipts(by="total")        over all batches

A row of these tables is a `Receipt`; the names are those of `model/progress.Progress`. None means that a
value is not known or does not apply. `rows_offered = rows_processed + rows_shed + rows_late + rows_rejected`
holds in every receipt; `rows_unexplained` is the difference, and 0.

Over several batches rows, windows and pairs are summed, `debt_pairs` is that of the last batch, the worst
mode counts (ESTIMATED, then SUBSET), and `complete` means all of them. Recall is pooled: estimates and their
variances add up, so the interval is that of the whole period; batches without exploring rows are left out.

Latency is measured for a batch as a whole, because its outputs are published together: every output of a
batch has the same, and a stream has none. It ends with the last sink: a receipt is written before the
commit, which the latency of the progress includes. Over several batches `max_seconds` and `overdue_ratio` are
exact. The percentiles are interpolated from those of the batches, each weighted by its rows.

A line of the receipt log is the receipt of one batch, as `control/receipts/receipts.receipt_of` makes it, or
the receipts of several batches added up, as `control/receipts/roll_up.combined` makes them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Literal

from tidegate.model.codec import to_json_values
from tidegate.model.json_values import Json, Metrics
from tidegate.model.progress import ResultMode

#: One row for each batch, for each hour of their starts, or for all of them.
ReceiptPeriod = Literal["batch", "hour", "total"]
ReceiptKind = Literal["stream", "output"]


@dataclass(frozen=True, kw_only=True)
class ReceiptBatches:
    """The batches that a receipt covers."""

    #: The same as the last for the receipt of one batch.
    first_batch_id: int
    #: Inclusive.
    last_batch_id: int
    #: The start of the first batch; of an hour: its beginning. ISO 8601, UTC.
    started_at: str


@dataclass(frozen=True, kw_only=True)
class ReceiptRows:
    """What became of rows: those of a stream, or those that the operator of an output was offered."""

    #: The sum of the next four.
    rows_offered: int
    #: Joined, matched or aggregated.
    rows_processed: int
    #: Left out to keep the goal.
    rows_shed: int
    #: Behind the watermark.
    rows_late: int
    #: Their time is null or too far ahead.
    rows_rejected: int
    #: Outputs: rows written; None where only the sink knows.
    rows_written: int | None = None
    #: Of the processed rows: those that a filter or another stateless step removed, as asked.
    rows_filtered: int = 0
    #: Streams: stored rows of earlier batches that window reduction removed before their window was over.
    rows_evicted: int = 0
    #: Rows that the ledger does not explain: 0, or there is a defect.
    rows_unexplained: int = 0
    #: `rows_shed` by reason.
    shed_reasons: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ReceiptLosses:
    """What results lack."""

    #: Outputs: the share of the true results that was found; None without a sound estimate.
    recall: float | None = None
    #: The lower end of its 95 % interval.
    recall_low: float | None = None
    #: The upper end.
    recall_high: float | None = None
    #: Streams: the share of rows that were shed. Outputs: that of results, as measured.
    loss_ratio: float | None = None
    #: Outputs: windows that would have been written and were dropped. Where they are dropped by groups, here
    #: and in `windows_closed` each counts 64 times, once for every cohort of groups.
    windows_missing: int | None = None
    #: Outputs whose windows may be dropped: all windows that closed; None where it is not known.
    windows_closed: int | None = None
    #: Joins with repair: skipped pairs that are not repaired yet, after the last batch.
    debt_pairs: int | None = None
    #: Skipped pairs that were repaired.
    repaired_pairs: int | None = None
    #: Skipped pairs that were given up.
    written_off_pairs: int | None = None


@dataclass(frozen=True, kw_only=True)
class ReceiptWould:
    """Under a goal that only observes: what would have been left out. Nothing was. None without such a goal;
    over several batches: of those under such a goal.
    """

    #: Rows that would have been shed; without those in front of dropped windows.
    would_rows_shed: int | None = None
    #: Outputs of joins: candidate pairs that would not have been probed.
    would_pairs_skipped: int | None = None
    #: Outputs: windows that would have been dropped.
    would_windows_missing: int | None = None
    #: Outputs: the share of results that would have been lost, as estimated.
    would_loss_ratio: float | None = None
    #: Outputs of joins and matches: the share of results that would have been found.
    would_recall: float | None = None


@dataclass(frozen=True, kw_only=True)
class ReceiptLatency:
    """Outputs: from the availability of rows to the publishing of results. None without rows."""

    #: Half of the rows took at most this long.
    p50_seconds: float | None = None
    #: 95 % of the rows took at most this long.
    p95_seconds: float | None = None
    #: The slowest row.
    max_seconds: float | None = None
    #: The share of rows beyond the goal; None without a goal.
    overdue_ratio: float | None = None


@dataclass(frozen=True, kw_only=True)
class ReceiptDetails:
    """Lists behind the numbers."""

    #: Outputs: why results may be missing or estimated.
    loss_reasons: tuple[str, ...] = ()
    #: Runs of missing windows (of some groups): start of the first and the last one, and how far apart they
    #: begin, in microseconds.
    missing_windows: tuple[tuple[int, int, int], ...] = ()
    #: One batch: the recall by the time between the rows of a pair.
    recall_by_lag: tuple[Metrics, ...] = ()
    #: One batch, a stream that several operators read: the ledger of each.
    readers: tuple[Metrics, ...] = ()
    #: `{code, message}`; over several batches those of the last batch that has some.
    warnings: tuple[Metrics, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Receipt(ReceiptDetails, ReceiptWould, ReceiptLatency, ReceiptLosses, ReceiptRows, ReceiptBatches):
    """The receipt of one stream or output: see the module docstring."""

    #: Whether it is that of a stream or of an output.
    kind: ReceiptKind
    #: The name of the stream or output.
    name: str
    #: EXACT, SUBSET or ESTIMATED, as in `model/progress.OutputProgress`; a stream that was shed is a SUBSET.
    mode: ResultMode
    #: Exact, and no row was late or rejected: of a stream, or of any input of an output.
    complete: bool

    def to_dict(self) -> Json:
        """The same as plain dictionaries, lists, numbers and texts."""
        plain: Json = to_json_values(self)
        return plain

    @property
    def json(self) -> str:
        """The same as one line of JSON."""
        return json.dumps(self.to_dict())

    def __str__(self) -> str:
        """One line for people."""
        return f"{self.kind} {self.name}: {self.mode}, " + ", ".join(self._facts())

    def _facts(self) -> list[str]:
        found = [f"{self.rows_offered:,} rows offered", f"{self.rows_processed:,} processed"]
        for of in ("shed", "late", "rejected", "written"):
            rows: Any = getattr(self, f"rows_{of}")
            if rows:
                found.append(f"{rows:,} {of}")
        if self.recall is not None and self.recall < 1:
            found.append(f"recall {self.recall:.1%} ({self.recall_low:.1%} to {self.recall_high:.1%})")
        if self.windows_missing:
            found.append(f"{self.windows_missing:,} windows missing")
        if self.debt_pairs:
            found.append(f"{self.debt_pairs:,} pairs in debt")
        if self.would_loss_ratio:
            found.append(f"the goal would have lost {self.would_loss_ratio:.1%}")
        return found if self.complete else [*found, "not complete"]


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
    #: The first batch that may be given.
    first_batch: int = 0
    #: When a batch must have begun at the earliest.
    since: datetime | None = None
    #: The newest batches: so many of them.
    last_batches: int | None = None
    #: Those that began so long before the newest batch.
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
