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
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
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
    #: Outputs: windows that would have been written and were dropped.
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
    #: Runs of missing windows: start of the first and the last one, and how far apart they begin, in
    #: microseconds.
    missing_windows: tuple[tuple[int, int, int], ...] = ()
    #: One batch: the recall by the time between the rows of a pair.
    recall_by_lag: tuple[Metrics, ...] = ()
    #: One batch, a stream that several operators read: the ledger of each.
    readers: tuple[Metrics, ...] = ()
    #: Streams: `{code, message}`; over several batches those of the last batch that has some.
    warnings: tuple[Metrics, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Receipt(ReceiptDetails, ReceiptLatency, ReceiptLosses, ReceiptRows, ReceiptBatches):
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
        return found if self.complete else [*found, "not complete"]
