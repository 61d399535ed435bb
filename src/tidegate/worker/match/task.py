"""One task of a match in one batch: rows in, a row out for every query that a row satisfies, then one report.

Nothing is stored, so there is no shuffle and no instance: each task processes the rows it receives. Results
that only wait for sinks are staged as rows with lists of queries, which sinks read as a row for every pair
(`driver/io/staging.py`). Late rows are dropped here, as in joins, because in Spark a changing watermark
would mean a new compilation every batch. Nothing here imports Spark: the class runs on any iterator of Arrow
batches, which is how it is tested.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tidegate.model.reports import MatchReport
from tidegate.model.samples import Sampled
from tidegate.model.times import BEGINNING_US, END_US
from tidegate.sift.filter.decision import keep_by_hash
from tidegate.sift.filter.lookup import Lookup
from tidegate.sift.filter.sifter import Sifter
from tidegate.sift.index.query_index import Matches, QueryIndex
from tidegate.sift.queries.axes import Axis, places
from tidegate.state.store.paths import stage_path
from tidegate.worker.runtime.layout import HASH, QUERY_NAME, REPORT, SAMPLE, TIME, MatchLayout
from tidegate.worker.runtime.memory import keep_freed_memory
from tidegate.worker.runtime.stage_file import Kept, StageWriter, report_batch

#: Samples reported per Arrow batch; the controller keeps a thousand in total.
SAMPLES_REPORTED = 2000
#: Rows per lookup. With more rows, more of them share cells of the index; fewer if rows are large.
BLOCK_ROWS, BLOCK_BYTES = 262_144, 256 << 20


@dataclass(frozen=True)
class Queries:
    """The queries as a worker needs them; sent to it once."""

    index: QueryIndex
    #: Their names, as an Arrow array.
    names: pa.Array


class Sent(Protocol):
    """A value sent to the worker: a Spark broadcast, or in tests anything with a `value`."""

    @property
    def value(self) -> Queries: ...


@dataclass(frozen=True)
class MatchWork:
    """The work order of one batch for the tasks of a match."""

    layout: MatchLayout
    queries: Sent
    batch: int
    #: Rows below are late, rows above too far ahead; only used if a stream feeds the match.
    late_before_us: int = BEGINNING_US
    newest_us: int = END_US
    #: The sifter in front of the tasks; None: nothing was dropped.
    sifter: Sifter | None = None
    seed: int = 0
    #: Where results are staged for the sinks; None: they return through Spark.
    stage_root: str | None = None
    kept_as: Kept | None = None

    @property
    def lists_queries(self) -> bool:
        """Whether results are staged as rows with lists of queries, which readers unfold."""
        return self.stage_root is not None and self.kept_as is None


@dataclass
class _Counts:
    received: int = 0
    late: int = 0
    rejected: int = 0
    seen_us: int | None = None
    matched: int = 0
    emitted: int = 0
    sampled: int = 0
    tried: int = 0
    kept: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    samples: list[Sampled] = field(default_factory=list)


class MatchTask:
    """One task of a match; see the module docstring."""

    def __init__(self, work: MatchWork, staged: str):
        self.work, self.layout = work, work.layout
        self._queries = work.queries.value
        self._schema = pa.ipc.read_schema(pa.py_buffer(work.layout.schema))
        self._staged = staged
        self._counts = _Counts()
        self._lookup = None if work.sifter is None else Lookup.of(work.sifter.regions)
        if work.sifter is not None:
            self._counts.kept = np.zeros(work.sifter.regions.count, np.int64)

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """All result batches, the report last."""
        keep_freed_memory()
        started, cpu = time.thread_time(), 0.0
        stage = None
        if self.work.stage_root is not None:
            stage = StageWriter(f"{self.work.stage_root}/{self._staged}", self.work.kept_as)
        for result in chain.from_iterable(map(self._matched, in_blocks(batches))):
            if stage is not None:
                stage.write(result)
                continue
            cpu += time.thread_time() - started
            yield result
            started = time.thread_time()
        staged = self._staged if stage is not None and stage.close() else None
        cpu += time.thread_time() - started
        yield self._report(cpu, staged)

    def _matched(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The results of one batch, in bounded pieces: a row may satisfy every query."""
        rows = self._accepted(batch)
        if self._lookup is not None and HASH in rows.schema.names:
            rows = self._sifted(rows, self._lookup)
        columns = [coordinates_of(rows.column(axis.column), axis) for axis in self.layout.axes]
        placed = np.stack([places(*column) for column in columns])
        hits = np.zeros(rows.num_rows, np.int32)
        for piece in self._queries.index.pieces(placed):
            hits[piece.first : piece.first + len(piece.hits)] = piece.hits
            self._counts.tried += len(piece.hits)
            if len(piece.query):
                yield self._listed(rows, piece) if self.work.lists_queries else self._paired(rows, piece)
        self._counts.emitted += int(hits.sum())
        self._counts.matched += int(np.count_nonzero(hits))
        if self._lookup is not None:
            self._note(rows, [_with_nan(*column) for column in columns], hits, self._lookup)

    def _sifted(self, rows: pa.RecordBatch, lookup: Lookup) -> pa.RecordBatch:
        """The rows that pass the sifter, if the tasks and not Spark apply it."""
        assert self.work.sifter is not None
        columns = [coordinates_of(rows.column(axis.column), axis) for axis in self.layout.axes]
        regions = lookup.regions([_with_nan(*column) for column in columns])
        passes = keep_by_hash(regions, rows.column(HASH).to_numpy(), scaled(self.work.sifter))
        # Counted as if a sifter in front of the task had dropped them.
        self._counts.received -= int(np.count_nonzero(~passes))
        return rows.filter(pa.array(passes))

    def _accepted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that are not late; all rows are counted."""
        self._counts.received += batch.num_rows
        if self.layout.stream is None or not batch.num_rows:
            return batch
        times = batch.column(TIME).to_numpy()
        rejected = (times > self.work.newest_us) | (times == BEGINNING_US)
        late = ~rejected & (times < self.work.late_before_us)
        self._counts.rejected += int(rejected.sum())
        self._counts.late += int(late.sum())
        if not rejected.all():
            newest, before = int(times[~rejected].max()), self._counts.seen_us
            self._counts.seen_us = newest if before is None else max(before, newest)
        if rejected.any() or late.any():
            batch = batch.filter(pa.array(~(rejected | late)))
        return batch

    def _note(
        self,
        rows: pa.RecordBatch,
        coordinates: list[NDArray[np.float64]],
        hits: NDArray[np.int32],
        lookup: Lookup,
    ) -> None:
        """Record for the controller: rows by region, and samples with their hits."""
        sampled = rows.column(SAMPLE).to_numpy(zero_copy_only=False)
        regions = lookup.regions(coordinates)
        self._counts.kept += np.bincount(regions[~sampled], minlength=len(self._counts.kept))
        chosen = np.flatnonzero(sampled)
        self._counts.sampled += len(chosen)
        # If there are too many, take samples evenly over the batch.
        reported = chosen[:: max(1, -(-len(chosen) // SAMPLES_REPORTED))]
        points = np.stack([axis[reported] for axis in coordinates], axis=1)
        self._counts.samples.append(Sampled(points, hits[reported]))

    def _paired(self, rows: pa.RecordBatch, piece: Matches) -> pa.RecordBatch:
        """A row for every pair."""
        named = self._named(piece.query)
        # Files that stay are dictionary-encoded; Spark needs the plain names.
        queries = named if self.work.stage_root is not None else named.dictionary_decode()
        return self._assembled(rows, pa.array(piece.row), queries)

    def _listed(self, rows: pa.RecordBatch, piece: Matches) -> pa.RecordBatch:
        """Every row with matches once, with all names of its queries: far fewer bytes than all pairs."""
        holds = piece.hits > 0
        first = np.append(piece.offsets[:-1][holds], piece.offsets[-1:])
        queries = pa.ListArray.from_arrays(pa.array(first), self._named(piece.query))
        return self._assembled(rows, pa.array(piece.first + np.flatnonzero(holds)), queries)

    def _named(self, query: NDArray[np.int32]) -> pa.DictionaryArray:
        """The names of queries, dictionary-encoded: each name is written once for many pairs."""
        names = self._queries.names
        if len(query) >= len(names):
            return pa.DictionaryArray.from_arrays(pa.array(query), names)
        # The dictionary goes into every piece; for few pairs include only the names in use.
        used, number = np.unique(query, return_inverse=True)
        return pa.DictionaryArray.from_arrays(pa.array(number, pa.int32()), names.take(pa.array(used)))

    def _assembled(self, rows: pa.RecordBatch, taken: pa.Array, queries: pa.Array) -> pa.RecordBatch:
        """These rows with the columns of the output, and their queries."""
        columns = [
            queries
            if field.name == QUERY_NAME
            else pa.nulls(len(taken), field.type)
            if field.name == REPORT
            else rows.column(self._travels_as(field.name)).take(taken).cast(field.type)
            for field in self._schema
        ]
        return pa.RecordBatch.from_arrays(columns, names=self._schema.names)

    def _travels_as(self, column: str) -> str:
        return TIME if column == self.layout.time else column

    def _report(self, cpu_seconds: float, staged: str | None) -> pa.RecordBatch:
        counts, axes = self._counts, len(self.layout.axes)
        report = MatchReport(
            operator=self.layout.operator,
            received=counts.received,
            late=counts.late,
            rejected=counts.rejected,
            seen_us=counts.seen_us,
            matched=counts.matched,
            emitted=counts.emitted,
            cpu_seconds=cpu_seconds,
            kept=tuple(counts.kept.tolist()),
            sampled=counts.sampled,
            tried=counts.tried,
            sample=Sampled.joined([Sampled.empty(axes), *counts.samples]),
            staged=staged,
        )
        return report_batch(report, self._schema if self.work.stage_root is None else None)


def in_blocks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows, in fewer and larger batches."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= BLOCK_ROWS or size >= BLOCK_BYTES:
            yield pa.concat_batches(waiting)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield pa.concat_batches(waiting)


def scaled(sifter: Sifter) -> NDArray[np.float64]:
    """Thresholds for the number that also marks samples: samples lie above 1 − σ, other rows below."""
    return sifter.thresholds * (1 - sifter.sample_share)


def _with_nan(numbers: NDArray[np.float64], null: NDArray[np.bool_] | None) -> NDArray[np.float64]:
    """Coordinates for regions, which do not distinguish null from NaN."""
    return numbers if null is None else np.where(null, np.nan, numbers)


def match_task(work: MatchWork, task: int, attempt: str) -> MatchTask:
    """The task of one Spark partition, with a path for its staged results."""
    return MatchTask(work, stage_path(work.layout.operator, work.batch, task, attempt))


def coordinates_of(column: pa.Array, axis: Axis) -> tuple[NDArray[np.float64], NDArray[np.bool_] | None]:
    """The coordinates of a column, and a mask of its nulls (None: no nulls)."""
    null = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    if axis.kind == "category":
        texts = pc.if_else(column, "true", "false") if pa.types.is_boolean(column.type) else column
        cells = pc.index_in(texts, value_set=pa.array(axis.categories, texts.type))
        numbers = pc.fill_null(cells, axis.other).cast(pa.float64())
    else:
        # Integers beyond 2^53 are rounded; queries contain no such numbers, so comparisons are unaffected.
        numbers = pc.fill_null(pc.cast(column, pa.float64(), safe=False), 0.0)
    return numbers.to_numpy(zero_copy_only=False), null
