"""One instance of a join in one batch: rows in, pairs out, state written, one report at the end.

    rows ─▶ accept ─▶ new runs ─▶ store               in portions, if they do not fit into the room of a task
                         │
                         ├─▶ probe stored runs of the other side ─▶ pairs ─▶ settle (settle.py) ─▶ out
                         └─▶ probe new runs of the other side    ─▶ pairs ─┘
    stored runs ─▶ pairs that earlier batches skipped (repair.py) ──────────────────────────────▶ out

`pair_finder.py` finds each pair exactly once. Nothing here imports Spark: the class runs on any iterator of
Arrow batches, which is how it is tested.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidegate.join.selective.planned import skips_nothing
from tidegate.model.pieces import Piece
from tidegate.model.reports import (
    KeyLoad,
    PartitionLoad,
    Repaired,
    SideRows,
    StateChange,
    TaskReport,
    TaskSeconds,
    WorkCounts,
)
from tidegate.model.times import BEGINNING_US, LEFT, RIGHT
from tidegate.route.hash_routing import partition_bounds, partition_of
from tidegate.route.places import stored_in
from tidegate.route.targets import PROBE, STORE
from tidegate.state.segments import SegmentCache, SegmentWriter
from tidegate.state.store.paths import segment_path, stage_path
from tidegate.state.store.store import open_store
from tidegate.worker.join.comparisons import shown_pairs
from tidegate.worker.join.joined_rows import Assembler, PairReferences, cells_of
from tidegate.worker.join.key_loads import combined, key_loads
from tidegate.worker.join.pair_finder import PAIRS_PER_CHUNK, Finder
from tidegate.worker.join.repair import Payer
from tidegate.worker.join.settle import Settling, completes
from tidegate.worker.join.work import KEEPING, PROBING, REPAIRING, JoinCounts, JoinWork
from tidegate.worker.runtime.layout import CODE, ROLE, TAG, TIME
from tidegate.worker.runtime.memory import MemoryMeter, give_back_memory, keep_freed_memory, room_bytes
from tidegate.worker.runtime.owned_state import OwnedState
from tidegate.worker.runtime.portions import portions
from tidegate.worker.runtime.runs import NewRun, StoredRun, in_slots, new_runs, write_run
from tidegate.worker.runtime.stage_file import StageWriter, report_batch
from tidegate.worker.runtime.worker_cache import worker_cache


class JoinInstance:
    """One instance of a join in one batch; see the module docstring."""

    def __init__(self, work: JoinWork, instance: int, attempt: str, cache: SegmentCache | None = None):
        self.work, self.layout, self.instance = work, work.layout, instance
        name = self.layout.operator
        self.cache: SegmentCache = cache or worker_cache(name, work.state)
        self._attempt = attempt
        self.writer: SegmentWriter = self._writer(0)
        self._staged = stage_path(name, work.state.batch, instance, attempt)
        self.assembler: Assembler = Assembler(self.layout, staged=work.stage_root is not None)
        self.counts: JoinCounts = JoinCounts(self.layout)
        self.held: OwnedState = OwnedState(work, instance, self.cache)
        self.stored = self.held.stored
        #: New rows of the present portion, and those of earlier ones, read from their file.
        self.arrived: list[NewRun] = []
        self._put_away: list[StoredRun] = []
        #: The pieces in which new rows were stored.
        self.written: list[Piece] = []
        #: New rows that another instance stores and that probe here.
        self.borrowed: list[NewRun] = []
        self._keys: list[tuple[KeyLoad, ...]] = []
        self._bytes_written = 0
        self._read_before = self.cache.bytes_read
        self._meter = MemoryMeter()

    @property
    def new(self) -> list[NewRun | StoredRun]:
        """All new rows that this instance stores."""
        return [*self._put_away, *self.arrived]

    @property
    def _portion_bytes(self) -> int | None:
        """How much of the received rows is handled at a time; None: all.

        Rows of a portion find pairs among themselves and in all that is stored, earlier portions included.
        That is not enough where rows probe that are stored elsewhere, and where probes are counted by age.
        """
        work, layout = self.work, self.layout
        whole = work.skipping is not None or layout.spread or layout.residual or work.state.routing.scattered
        return None if whole or layout.cells else room_bytes()

    @property
    def _probe_together(self) -> bool:
        """Whether all new rows of a side may probe as one run, whatever slots they lie in.

        Then each stored run is probed once, not once per slot. This is not possible if matched bits are
        tracked, because they are kept by piece, or if parts are skipped, because each slot skips its own.
        """
        skipping = self.work.skipping
        apart = any(self.layout.tracked) or self.layout.spread or self.layout.cells
        return not apart and (skipping is None or skips_nothing(skipping))

    # No later batch needs the rows of a flushed batch, but the residual step may have to read them.
    @property
    def keeps_state(self) -> bool:
        return not self.work.state.flush or self.layout.residual

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """All result batches, the report last."""
        keep_freed_memory()
        self.counts.begin()
        settling = Settling(self)
        if self.work.stage_root is not None:
            yield self._stage(self._direct(batches, settling), settling)
            return
        step = self._candidates(batches) if self.layout.residual else self._direct(batches, settling)
        while True:
            result = next(step, None)
            self.counts.lap()
            if result is None:
                break
            yield result
            self.counts.begin()
        yield self._reported(settling, None)

    def _stage(self, results: Iterator[pa.RecordBatch], settling: Settling) -> pa.RecordBatch:
        """Write the results where sinks read them; only the report returns through Spark."""
        stage = StageWriter(f"{self.work.stage_root}/{self._staged}", self.work.kept_as)
        for result in results:
            stage.write(result)
        staged = self._staged if stage.close() else None
        self.counts.lap()
        return self._reported(settling, staged)

    def _reported(self, settling: Settling, staged: str | None) -> pa.RecordBatch:
        report = replace(self.report(settling), staged=staged)
        give_back_memory()
        return report_batch(report, self.assembler.schema if self.work.stage_root is None else None)

    def _finder(self) -> Finder:
        new = [*self.arrived, *self.borrowed]
        stored = [*self.stored, *self._put_away]
        return Finder(self.work, stored, new, self.counts, self._probe_together)

    def _direct(self, batches: Iterator[pa.RecordBatch], settling: Settling) -> Iterator[pa.RecordBatch]:
        for received, last in portions(batches, self._meter, self._portion_bytes):
            self._accept(received)
            self._store(last)
            self._meter.sample()
            yield from self._found(settling)
            if not last:
                # Nothing may refer to the rows of this portion while the next one is read.
                del received
                self._put_portion_away()
        for run, rows in settling.leaving():
            self.counts.emitted += len(rows)
            for start in range(0, len(rows), PAIRS_PER_CHUNK):
                yield self.assembler.unmatched(run, rows[start : start + PAIRS_PER_CHUNK])
        if self.work.repairs:
            yield from self._repaired(settling)
        settling.write()

    def _found(self, settling: Settling) -> Iterator[pa.RecordBatch]:
        """The pairs of the new rows."""
        for parts in self._finder().chunks():
            self.counts.turn_to(PROBING)
            for part in parts:
                settling.mark(part)
            if self.layout.emits_pairs and (shown := shown_pairs(parts, self.layout)):
                self.counts.emitted += sum(map(len, shown))
                yield self.assembler.pairs(shown, [cells_of(shown)] if self.layout.cells else ())
            self.counts.turn_to(KEEPING)
        self._meter.sample()

    def _put_portion_away(self) -> None:
        """Write the new rows to their file and read them from there: mapped, so they can leave memory."""
        self._keys.append(key_loads(self.work, self.instance, (), self.arrived))
        bits = {run.piece.name: run.bits for run in self.arrived if run.piece is not None and run.touched}
        self.arrived.clear()
        self._bytes_written += self.writer.close()
        self.writer = self._writer(len(self._keys))
        for piece in self.written[len(self._put_away) :]:
            stored = StoredRun(piece, [(0, piece.rows)], self.cache)
            if piece.name in bits:
                stored.bits = bits[piece.name]
            self._put_away.append(stored)

    def _writer(self, portion: int) -> SegmentWriter:
        """Writes the segment file of a portion."""
        work, attempt = self.work, f"{self._attempt}-{portion}" if portion else self._attempt
        path = segment_path(self.layout.operator, work.state.batch, self.instance, attempt)
        return SegmentWriter(open_store(work.state.store_url), path)

    def _repaired(self, settling: Settling) -> Iterator[pa.RecordBatch]:
        """Results that earlier batches skipped, with the batch that skipped them."""
        self.counts.turn_to(REPAIRING)
        read_before = self.cache.bytes_read
        payer = Payer(self.work, self.instance, self.held, self.cache, self.counts)
        for batch, parts in payer.chunks():
            if self.layout.emits_pairs:
                if shown := shown_pairs(parts, self.layout):
                    self.counts.emitted += sum(map(len, shown))
                    yield self.assembler.pairs(shown, [cells_of(shown)] if self.layout.cells else (), batch)
                continue
            for part in parts:
                rows = settling.newly_matched(part)
                if len(rows):
                    self.counts.emitted += len(rows)
                    yield self.assembler.unmatched(part.left_run, rows, batch)
        self.counts.turn_to(KEEPING)
        # Reads for repair do not count as reads of the batch itself.
        self._read_before += self.cache.bytes_read - read_before

    def _candidates(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for received, _ in portions(batches, self._meter):
            self._accept(received)
        self._store(True)
        references = References(self)
        for parts in self._finder().chunks():
            self.counts.turn_to(PROBING)
            yield self.assembler.pairs(parts, references.columns(parts))
            self.counts.turn_to(KEEPING)

    def _accept(self, received: list[pa.RecordBatch]) -> None:
        """Count rows, drop those that are late or have no time, sort the rest into runs."""
        if not received or not sum(batch.num_rows for batch in received):
            return
        table = pa.Table.from_batches(received)
        tags, times, codes = (_column(table, name) for name in (TAG, TIME, CODE))
        codes = codes.view(np.uint64)
        roles = self._roles(table, codes)
        for role in np.unique(roles).tolist():
            # The instance that stores a row counts it, so every row is counted once.
            stores = role & STORE
            counts = self.counts if stores else JoinCounts(self.layout)
            runs = self._runs(table, tags, times, codes, roles == role, role, counts)
            (self.arrived if stores else self.borrowed).extend(runs)

    def _roles(self, table: pa.Table, codes: NDArray[np.uint64]) -> NDArray[np.int8]:
        """What this instance does with each row."""
        if ROLE in table.column_names:
            return _column(table, ROLE)
        if not self.layout.spread:
            return np.full(len(codes), STORE | PROBE, np.int8)
        own = np.isin(partition_of(codes, self.layout.partitions), list(self.held.owned[LEFT]))
        return np.where(own, np.int8(STORE | PROBE), np.int8(PROBE))

    def _runs(
        self,
        table: pa.Table,
        tags: NDArray[Any],
        times: NDArray[np.int64],
        codes: NDArray[np.uint64],
        among: NDArray[np.bool_],
        role: int,
        counts: JoinCounts,
    ) -> list[NewRun]:
        """The usable rows among these, sorted into runs."""
        runs: list[NewRun] = []
        for side in (LEFT, RIGHT):
            usable = self._usable(side, tags, times, among, counts)
            usable = self._kept(side, usable, times, counts)
            keyless = tags == self.layout.sides[side].tag + 1
            for without_key in (False, True):
                chosen = np.flatnonzero(usable & (keyless == without_key))
                if without_key:
                    counts.keyless[side] += len(chosen)
                    # A row with a null key never matches, so only a side that emits unmatched rows keeps it.
                    if not self.layout.preserved[side] or not role & STORE:
                        continue
                # Slots matter for storing only, so borrowed rows probe as one run.
                together = self._probe_together or not role & STORE
                slot_us = 0 if together else self.layout.within.slot_us(side)
                layout = self.layout.sides[side]
                runs += new_runs(table, chosen, (codes, times), side, layout, slot_us, without_key, role)
        return runs

    def _usable(
        self,
        side: int,
        tags: NDArray[Any],
        times: NDArray[np.int64],
        among: NDArray[np.bool_],
        counts: JoinCounts,
    ) -> NDArray[np.bool_]:
        tag = self.layout.sides[side].tag
        mine = among & ((tags == tag) | (tags == tag + 1))
        rejected = mine & ((times == BEGINNING_US) | (times > self.work.newest_us[side]))
        timed = mine & ~rejected
        late = timed & (times < self.work.late_before_us[side])
        counts.offered[side] += int(np.count_nonzero(mine))
        counts.rejected[side] += int(np.count_nonzero(rejected))
        counts.late[side] += int(np.count_nonzero(late))
        if timed.any():
            newest, before = int(times[timed].max()), counts.seen_us[side]
            counts.seen_us[side] = newest if before is None else max(before, newest)
        usable: NDArray[np.bool_] = timed & ~late
        return usable

    def _kept(
        self,
        side: int,
        usable: NDArray[np.bool_],
        times: NDArray[np.int64],
        counts: JoinCounts,
    ) -> NDArray[np.bool_]:
        """The rows without those that are stale, or that no kept window needs.

        Rows that are dropped at random do not come here. Stale rows are dropped here, not before the
        shuffle. Tasks count rows and find their newest time at no cost, so the watermark advances even if all
        rows are stale. And the load model attributes the saved time to rows: their cost before the task
        counts as overhead, which does not change with stale rows.
        """
        skipping, needed = self.work.skipping, self.work.needed[side]
        if skipping is not None and skipping.fresh_us[side] > BEGINNING_US:
            fresh = usable & (times >= skipping.fresh_us[side])
            counts.stale[side] += int(np.count_nonzero(usable) - np.count_nonzero(fresh))
            usable = fresh
        if needed is None:
            return usable
        kept: NDArray[np.bool_] = usable & needed.contain(times)
        counts.dropped[side] += int(np.count_nonzero(usable) - np.count_nonzero(kept))
        return kept

    def _store(self, last: bool) -> None:
        """Store new rows; `last`: no portion follows, which would have to find them in their file."""
        for run in self.arrived:
            owned, bounds = partition_bounds(run.codes, self.layout.partitions)
            self.counts.stored[run.side, owned] += np.diff(bounds)
        for run in self._to_store(last) if self.keeps_state or not last else ():
            batches = np.full(len(run.codes), self.work.state.batch, np.int32)
            placement = self.work.state.routing.sides[run.side]
            labelled = stored_in(run.codes, placement, self.layout.partitions, self.instance, run.keyless)
            run.piece = write_run(run, self.writer, self.layout.operator, batches, 0, labelled)
            self.written.append(run.piece)

    def _to_store(self, last: bool) -> list[NewRun]:
        """New rows by slot, whatever this batch does with them, without slots that no later row can match."""
        needed_us = [self._needed_from_us(side) if last else BEGINNING_US for side in (LEFT, RIGHT)]
        if not self._probe_together:
            return [run for run in self.arrived if run.last_us >= needed_us[run.side]]
        sides = [[run for run in self.arrived if run.side == side] for side in (LEFT, RIGHT)]
        return [
            part
            for side, runs in enumerate(sides)
            for part in in_slots(runs, self.layout.within.slot_us(side))
            if part.last_us >= needed_us[side]
        ]

    def _needed_from_us(self, side: int) -> int:
        """New rows of a side below this time need no later row, and need not be stored.

        Where work is skipped all rows are stored: repair may need them, and controllers learn from pieces. So
        does the second step of a residual condition.
        """
        if self.work.skipping is not None or self.layout.residual or self.work.state.flush:
            return BEGINNING_US
        within, settle_us = self.layout.within, self.work.state.settle_us
        if not completes(self.work):
            return within.dead_before(side, settle_us)
        return within.complete_before(side, settle_us)

    def report(self, settling: Settling) -> TaskReport:
        counts = self.counts
        written = self._bytes_written + self.writer.close()
        explored = sum(float(probes.seen[1].sum()) for probes in counts.probes)
        busy = np.flatnonzero(counts.stored.sum(axis=0) + counts.probed + counts.comparisons)
        return TaskReport(
            operator=self.layout.operator,
            instance=self.instance,
            rows=SideRows(
                offered=(counts.offered[0], counts.offered[1]),
                late=(counts.late[0], counts.late[1]),
                rejected=(counts.rejected[0], counts.rejected[1]),
                keyless=(counts.keyless[0], counts.keyless[1]),
                dropped=(counts.dropped[0], counts.dropped[1]),
                stale=(counts.stale[0], counts.stale[1]),
                seen_us=(counts.seen_us[0], counts.seen_us[1]),
            ),
            work=WorkCounts(
                stored=int(counts.stored.sum()),
                probed=int(counts.probed.sum()),
                comparisons=int(counts.comparisons.sum()),
                matches=int(counts.matches.sum()),
                charged=round(counts.charged + explored) if counts.charged else 0,
                spared=counts.spared,
            ),
            seconds=TaskSeconds(
                counts.seconds[KEEPING] + counts.seconds[PROBING],
                counts.seconds[PROBING],
                self.held.recut_seconds,
            ),
            state=StateChange(
                self.cache.bytes_read - self._read_before,
                written,
                tuple(settling.added()),
                tuple(settling.merged),
                settling.matched,
                self.held.recut,
            ),
            emitted=counts.emitted,
            partitions=tuple(
                PartitionLoad(
                    int(p),
                    (int(counts.stored[LEFT, p]), int(counts.stored[RIGHT, p])),
                    int(counts.probed[p]),
                    int(counts.comparisons[p]),
                    int(counts.matches[p]),
                )
                for p in busy
            ),
            keys=self._key_loads(),
            memory=self._meter.measured,
            probes=() if self.work.skipping is None else tuple(one.counted() for one in counts.probes),
            repaired=Repaired(
                round(counts.repaired_comparisons), counts.repaired_matches, counts.seconds[REPAIRING]
            ),
        )

    def _key_loads(self) -> tuple[KeyLoad, ...]:
        new = [*self.arrived, *self.borrowed]
        if not self._keys:
            return key_loads(self.work, self.instance, self.stored, new)
        loads = [*self._keys, key_loads(self.work, self.instance, (), new)]
        return combined(self.work, self.instance, loads, self.stored)


class References:
    """Numbers for runs: stored ones by their index in the manifest, new ones from -1 downwards."""

    def __init__(self, task: JoinInstance):
        self._numbers = {id(run): number for number, run in task.held.by_number.items()}
        self._numbers.update({id(run): -1 - i for i, run in enumerate(task.new)})

    def columns(self, parts: Sequence[PairReferences]) -> list[pa.Array]:
        left_runs = [np.full(len(p), self._numbers[id(p.left_run)], np.int64) for p in parts]
        right_runs = [np.full(len(p), self._numbers[id(p.right_run)], np.int64) for p in parts]
        return [
            pa.array(np.concatenate(left_runs)),
            pa.array(np.concatenate([p.left for p in parts])),
            pa.array(np.concatenate(right_runs)),
            pa.array(np.concatenate([p.right for p in parts])),
        ]


def _column(table: pa.Table, name: str) -> NDArray[Any]:
    column: NDArray[Any] = table.column(name).to_numpy()
    return column
