"""One instance of a window aggregate in one batch: pane partials in, closed windows out, state written.

    partials ─▶ new runs ─▶ store
                   │
    stored runs ───┴─▶ merge by (group, pane) ─▶ windows that the watermark closes ─▶ out

A window closes when the watermark reaches its end, and is emitted once: in the batch whose settling watermark
first reaches that end. Partials are stored as they arrive; a merge combines those of equal group and pane.
Nothing here imports Spark.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidegate.join.probe.order import sort_by_code_time
from tidegate.model.pieces import ByteRange, Piece
from tidegate.model.reports import (
    PartitionLoad,
    SideRows,
    StateChange,
    TaskReport,
    TaskSeconds,
    WorkCounts,
)
from tidegate.model.times import LEFT
from tidegate.route.hash_routing import partition_bounds
from tidegate.route.places import stored_in
from tidegate.state.segments import SegmentCache, SegmentWriter
from tidegate.state.store.paths import segment_path, stage_path
from tidegate.state.store.store import open_store
from tidegate.window.aggregate.closing import cells, closing_windows, panes_needed
from tidegate.window.aggregate.merge_runs import Merged, merge_runs
from tidegate.window.aggregate.merge_runs import PartialRun as KeyRun
from tidegate.window.estimate.strata import rows_by_stratum, stratum_of
from tidegate.window.lifetime import Lifetime
from tidegate.window.panes import Panes
from tidegate.window.spec import WindowSpec
from tidegate.worker.runtime.layout import BATCH, CHECK, CODE, SEEN, TIME
from tidegate.worker.runtime.memory import MemoryMeter, give_back_memory, keep_freed_memory, room_bytes
from tidegate.worker.runtime.owned_state import OwnedState
from tidegate.worker.runtime.portions import portions
from tidegate.worker.runtime.runs import NewRun, RowRun, StoredRun, as_numpy, by_slot, one_array, write_run
from tidegate.worker.runtime.stage_file import StageWriter, report_batch
from tidegate.worker.runtime.worker_cache import worker_cache
from tidegate.worker.window.merged_rows import MergedRows
from tidegate.worker.window.received import ReceivedPartials
from tidegate.worker.window.window_columns import WindowColumns
from tidegate.worker.window.work import DROPPED, LATE, ON_TIME, REJECTED, WindowWork

#: Rows from which windows are made at once. Larger: fewer passes over runs; smaller: less memory.
ROWS_AT_ONCE = 1 << 22


class WindowInstance:
    """One instance in one batch; see the module docstring."""

    def __init__(self, work: WindowWork, instance: int, attempt: str, cache: SegmentCache | None = None):
        self.work, self.layout, self.instance = work, work.layout, instance
        name = self.layout.operator
        self.cache: SegmentCache = cache or worker_cache(name, work.state)
        self._attempt, self._portions, self._bytes_written = attempt, 0, 0
        self.writer: SegmentWriter = self._writer()
        self._staged = stage_path(name, work.state.batch, instance, attempt)
        self.held: OwnedState = OwnedState(work, instance, self.cache)
        self.columns: WindowColumns = WindowColumns(self.layout)
        #: New rows of the present portion, and those of earlier ones, read from their file.
        self.new: list[NewRun] = []
        self._put_away: list[StoredRun] = []
        #: The pieces of new rows, and those of merged ones.
        self._pieces: list[Piece] = []
        self.added: list[Piece] = []
        self.merged: list[str] = []
        #: Piece name → bits of its consumed rows; count windows only.
        self.matched: dict[str, ByteRange] = {}
        self._rows = dict.fromkeys((ON_TIME, LATE, REJECTED, DROPPED), 0)
        self._seen_us: int | None = None
        self._stored = np.zeros(self.layout.partitions, np.int64)
        self._strata: tuple[int, ...] = ()
        self._read_before = self.cache.bytes_read
        self._meter = MemoryMeter()

    @cached_property
    def spec(self) -> WindowSpec:
        assert isinstance(self.layout.spec, WindowSpec)
        return self.layout.spec

    @cached_property
    def panes(self) -> Panes:
        return Panes(self.spec)

    @cached_property
    def lifetime(self) -> Lifetime:
        return Lifetime(self.spec)

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The closed windows, then the report."""
        keep_freed_memory()
        stage = None
        if self.work.stage_root is not None:
            stage = StageWriter(f"{self.work.stage_root}/{self._staged}", self.work.kept_as)
        emitted, cpu_seconds = 0, 0.0
        results = self._results(batch for batch in batches if batch.num_rows)
        while True:
            started = time.thread_time()
            closed = next(results, None)
            if closed is not None and stage is not None:
                stage.write(closed)
            cpu_seconds += time.thread_time() - started
            if closed is None:
                break
            emitted += closed.num_rows
            if stage is None:
                yield closed
        give_back_memory()
        staged = self._staged if stage is not None and stage.close() else None
        report = self._report(emitted, cpu_seconds, staged)
        yield report_batch(report, self.columns.schema if stage is None else None)

    def _results(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The closed windows; then state is written."""
        for received, last in portions(batches, self._meter, self._portion_bytes):
            if received:
                self._accept(ReceivedPartials(received, self.layout))
            self._store(last)
            self._meter.sample()
            if not last:
                # Nothing may refer to the rows of this portion while the next one is read.
                del received
                self._put_portion_away()
        for closed in self._closed():
            self._meter.sample()
            if closed.num_rows:
                yield closed
        self._merge()

    @property
    def _portion_bytes(self) -> int | None:
        """How much of the received rows is handled at a time; None: all."""
        return room_bytes()

    def _writer(self) -> SegmentWriter:
        """Writes the segment file of a portion."""
        state, attempt = self.work.state, self._attempt
        attempt = f"{attempt}-{self._portions}" if self._portions else attempt
        path = segment_path(self.layout.operator, state.batch, self.instance, attempt)
        return SegmentWriter(open_store(state.store_url), path)

    def _put_portion_away(self) -> None:
        """Write the new rows to their file and read them from there: mapped, so they can leave memory."""
        self.new.clear()
        self._portions += 1
        self._bytes_written += self.writer.close()
        self.writer = self._writer()
        pieces = self._pieces[len(self._put_away) :]
        self._put_away += [StoredRun(piece, [(0, piece.rows)], self.cache) for piece in pieces]

    # -- new partials --------------------------------------------------------------------------------

    def _accept(self, received: ReceivedPartials) -> None:
        for fate in self._rows:
            self._rows[fate] += received.rows(fate)
        fates = received.fates
        timed = (fates == ON_TIME) | (fates == LATE) | (fates == DROPPED)
        if timed.any():
            newest = int(received.numbers(SEEN)[timed].max())
            self._seen_us = newest if self._seen_us is None else max(newest, self._seen_us)
        mine = np.flatnonzero(fates == ON_TIME)
        if len(mine):
            self._accept_on_time(received, mine)

    def _accept_on_time(self, received: ReceivedPartials, mine: NDArray[np.int64]) -> None:
        code, check = (received.words(name)[mine] for name in (CODE, CHECK))
        if self.layout.approximate:
            strata = rows_by_stratum(code, received.counts()[mine])
            self._strata = tuple(map(sum, zip(strata, self._strata or (0,) * len(strata), strict=True)))
        starts = received.starts(self.panes)[mine]
        order = _order(code, check, starts)
        chosen = received.taken([CHECK, *self.layout.by], mine[order])
        code, starts = code[order], starts[order]
        # Partials may come from several partitions of Spark.
        fresh = received.single or self.layout.makes_states
        code, starts, chosen = self._added_up(code, starts, chosen, fresh)
        sorted_rows = pa.RecordBatch.from_arrays(
            [one_array(column) for column in chosen.columns], names=chosen.column_names
        )
        self.new = list(self._by_slot(code, starts, sorted_rows))

    def _added_up(
        self, code: NDArray[np.uint64], starts: NDArray[np.int64], rows: pa.Table, fresh: bool
    ) -> tuple[NDArray[np.uint64], NDArray[np.int64], pa.Table]:
        """Sorted rows aggregated into one partial per group and pane."""
        merged = merge_runs([KeyRun(code, self.panes.of(starts), words(rows.column(CHECK)))])
        stretches = cells(merged)
        if stretches.count == len(code) and not self.layout.makes_states:
            return code, starts, rows
        first, cut = merged.order[stretches.begin], MergedRows(rows, merged, stretches)
        keys = cut.keys([CHECK, *self.layout.by])
        partials = self.columns.partials(cut, fresh=fresh)
        columns = [*keys.columns, *partials.values()]
        added = pa.Table.from_arrays(columns, names=[*keys.column_names, *partials])
        return code[first], starts[first], added

    def _by_slot(
        self, codes: NDArray[np.uint64], times: NDArray[np.int64], rows: pa.RecordBatch
    ) -> Iterator[NewRun]:
        for slot, part in by_slot(times, self.lifetime.slot_us(LEFT)):
            run = NewRun(LEFT, False, slot, 0, 0, ())
            run.codes, run.times = codes[part], times[part]
            run.slices = [(0, len(run.codes))]
            run.first_us, run.last_us = int(run.times.min()), int(run.times.max())
            run.rows = rows if isinstance(part, slice) else rows.take(pa.array(part))
            yield run

    def _store(self, last: bool) -> None:
        """Store new rows; `last`: no portion follows, which would have to find them in their file."""
        for run in self.new:
            owned, bounds = partition_bounds(run.codes, self.layout.partitions)
            self._stored[owned] += np.diff(bounds)
            needed = not self.work.state.flush and run.last_us >= self._needed_from_us
            if needed or not last:
                batches = np.full(len(run.codes), self.work.state.batch, np.int32)
                run.piece = self._written(run, batches, 0)
                self._pieces.append(run.piece)

    @property
    def _needed_from_us(self) -> int:
        """Partials below this are in windows that all close with this batch."""
        return self.lifetime.dead_before(LEFT, self.work.state.settle_us)

    def _written(self, run: RowRun, batches: NDArray[np.int32], level: int) -> Piece:
        placement = self.work.state.routing.sides[LEFT]
        labelled = stored_in(run.codes, placement, self.layout.partitions, self.instance, False)
        return write_run(run, self.writer, self.layout.operator, batches, level, labelled)

    # -- merging stored runs -------------------------------------------------------------------------

    def _merge(self) -> None:
        by_name = {run.piece.name: run for run in self.held.stored if run.own}
        wanted = dict(self.work.state.merges).get(str(self.instance), ())
        for names in wanted:
            group = [by_name[name] for name in names if name in by_name]
            self.merged += [run.piece.name for run in group]
            if group:
                self._merge_group(group)

    def _merge_group(self, group: Sequence[StoredRun]) -> None:
        alive_us = self.lifetime.dead_before(LEFT, self.work.state.settle_us)
        low = int(self.panes.of(np.array([alive_us]))[0]) if alive_us > -(2**62) else -(2**62)
        table, merged = self._together(group, low, 2**62)
        if not len(merged.order):
            return
        stretches = cells(merged)
        first, cut = merged.order[stretches.begin], MergedRows(table, merged, stretches)
        partials = self.columns.partials(cut)
        keys = cut.keys([CHECK, *self.layout.by])
        run = NewRun(LEFT, False, group[0].slot, 0, 0, ())
        run.codes = words(table.column(CODE))[first]
        run.times = self.panes.start(stretches.at)
        run.first_us, run.last_us = int(run.times.min()), int(run.times.max())
        run.rows = pa.RecordBatch.from_arrays(
            [*(one_array(column) for column in keys.columns), *partials.values()],
            names=[CHECK, *self.layout.by, *partials],
        )
        batches = as_numpy(one_array(table.column(BATCH)))[first]
        self.added.append(self._written(run, batches, 1 + max(one.piece.level for one in group)))

    # -- windows -------------------------------------------------------------------------------------

    def _closed(self) -> Iterator[pa.RecordBatch]:
        """Every window that closes with this batch, for every group with a row in it, by groups."""
        runs: list[RowRun] = [*self.held.stored, *self._put_away, *self.new]
        bounds = self._closing(runs)
        if bounds is None:
            return
        edges = self.panes.start(np.array(panes_needed(self.panes, *bounds)))
        near = [run for run in runs if run.last_us >= edges[0] and run.first_us < edges[1]]
        for codes in code_ranges([run.codes for run in near], ROWS_AT_ONCE):
            yield self._closed_in(near, bounds, codes)

    def _closed_in(
        self, runs: Sequence[RowRun], bounds: tuple[int, int], codes: CodeRange | None
    ) -> pa.RecordBatch:
        """The windows within these bounds of groups in a range of codes; None: of all groups."""
        table, merged = self._together(runs, *panes_needed(self.panes, *bounds), codes)
        stretches = closing_windows(merged, self.panes, *bounds)
        if self.work.kept is not None:
            times = self.spec.start(stretches.at)
            if self.work.cohorts is not None:
                codes_of = words(table.column(CODE))[merged.order[stretches.begin]]
                times = self.work.cohorts.of(codes_of, times)
            stretches = stretches.only(self.work.kept.contain(times))
        starts, ends = self.spec.start(stretches.at), self.spec.end(stretches.at)
        sampled = None
        if self.layout.approximate and stretches.count:
            strata = stratum_of(words(table.column(CODE))[merged.order[stretches.begin]])
            sampled = self.work.left_out.touches(starts, ends, strata)
        return self.columns.closed(MergedRows(table, merged, stretches), starts, ends, sampled)

    def _closing(self, runs: Sequence[RowRun]) -> tuple[int, int] | None:
        """The first window that closes, and the first that does not; None if none closes."""
        if not runs:
            return None
        held = np.array([min(run.first_us for run in runs), max(run.last_us for run in runs)])
        first, last = self.spec.holding(held)
        closed = self.lifetime.closed(self.work.state.settled_us)
        lower = max(int(first[0]), closed, self.spec.begun(self.work.begins_us))
        upper = int(last[1]) + 1
        if not self.work.state.flush:
            upper = min(upper, self.lifetime.closed(self.work.state.settle_us))
        return (lower, upper) if lower < upper else None

    def _together(
        self, runs: Sequence[RowRun], low: int, high: int, codes: CodeRange | None = None
    ) -> tuple[pa.Table, Merged]:
        """The concatenated rows of runs, and the order of those whose pane lies in the range.

        `codes`: only groups with these codes; None: all.
        """
        parts = [self._own_rows(run, codes) for run in runs]
        if not parts:
            return pa.table({}), merge_runs([])
        keys = []
        for part in parts:
            panes = self.panes.of(part.column(TIME).to_numpy())
            keys.append(KeyRun(words(part.column(CODE)), panes, words(part.column(CHECK))))
        return pa.concat_tables(parts), merge_runs(keys, low, high)

    def _own_rows(self, run: RowRun, codes: CodeRange | None) -> pa.Table:
        names = [CHECK, *self.layout.by, *self.layout.partials]
        batches = (
            run.rows.column(BATCH) if isinstance(run, StoredRun) else pa.nulls(len(run.codes), pa.int32())
        )
        columns = [pa.array(run.codes), pa.array(run.times), batches, *(run.column(name) for name in names)]
        whole = pa.Table.from_arrays(columns, names=[CODE, TIME, BATCH, *names])
        first, behind = (0, len(run.codes)) if codes is None else codes.rows(run.codes)
        own = [(max(start, first), min(stop, behind)) for start, stop in run.own]
        slices = [(start, stop) for start, stop in own if stop > start]
        if slices == [(0, len(run.codes))]:
            return whole
        parts = [whole.slice(start, stop - start) for start, stop in slices]
        return pa.concat_tables(parts) if parts else whole.slice(0, 0)

    # -- the report ----------------------------------------------------------------------------------

    def _report(self, emitted: int, cpu_seconds: float, staged: str | None) -> TaskReport:
        rows = self._rows
        written = self._bytes_written + self.writer.close()
        busy = np.flatnonzero(self._stored)
        return TaskReport(
            operator=self.layout.operator,
            instance=self.instance,
            rows=SideRows(
                offered=(sum(rows.values()), 0),
                late=(rows[LATE], 0),
                rejected=(rows[REJECTED], 0),
                dropped=(rows[DROPPED], 0),
                seen_us=(self._seen_us, None),
            ),
            work=WorkCounts(stored=int(self._stored.sum())),
            seconds=TaskSeconds(cpu_seconds),
            state=StateChange(
                self.cache.bytes_read - self._read_before,
                written,
                (*(() if self.work.state.flush else self._pieces), *self.added),
                tuple(self.merged),
                self.matched,
                self.held.recut,
            ),
            emitted=emitted,
            staged=staged,
            partitions=tuple(PartitionLoad(int(p), (int(self._stored[p]), 0)) for p in busy),
            strata=self._strata,
            memory=self._meter.measured,
        )


def _order(
    code: NDArray[np.uint64], check: NDArray[np.uint64], starts: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Order by group, then pane. Check codes matter only if different groups have the same code."""
    ordered = sort_by_code_time(code, starts)
    checks = check[ordered.order]
    if ((ordered.codes[1:] == ordered.codes[:-1]) & (checks[1:] != checks[:-1])).any():
        return np.lexsort((starts, check, code))
    return ordered.order


@dataclass(frozen=True)
class CodeRange:
    """Groups by their codes: `first <= code < behind`; None: no bound."""

    first: int | None
    behind: int | None

    def rows(self, codes: NDArray[np.uint64]) -> tuple[int, int]:
        """Where they lie among sorted codes."""
        first = 0 if self.first is None else int(np.searchsorted(codes, np.uint64(self.first)))
        behind = len(codes) if self.behind is None else int(np.searchsorted(codes, np.uint64(self.behind)))
        return first, behind


def code_ranges(codes: Sequence[NDArray[np.uint64]], rows: int) -> list[CodeRange | None]:
    """Ranges that cover all codes, with about so many rows of these sorted runs each; None: all at once."""
    parts = -(-sum(map(len, codes)) // rows)
    if parts < 2:
        return [None]
    largest = max(codes, key=len)
    cuts = np.unique(largest[np.linspace(0, len(largest), parts, endpoint=False).astype(np.int64)[1:]])
    edges = [None, *cuts.tolist(), None]
    return [CodeRange(first, behind) for first, behind in pairwise(edges)]


def words(column: pa.ChunkedArray | pa.Array) -> NDArray[np.uint64]:
    """A column of codes, unsigned."""
    array: NDArray[np.uint64] = column.to_numpy().view(np.uint64)
    return array
