"""One instance of a join in one batch: rows in, pairs out, state written, one report at the end.

    rows ─▶ accept ─▶ new runs ─▶ store
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
from tidegate.join.selective.selection import KEEP, purpose, row_identity, within_share
from tidegate.model.pieces import Piece
from tidegate.model.reports import (
    PartitionLoad,
    Repaired,
    SideRows,
    StateChange,
    TaskReport,
    TaskSeconds,
    WorkCounts,
    report_text,
)
from tidegate.model.times import BEGINNING_US, LEFT, RIGHT
from tidegate.route.hash_routing import partition_bounds, partition_of
from tidegate.route.places import stored_in
from tidegate.route.targets import PROBE, STORE
from tidegate.state.segments import SegmentCache, SegmentWriter
from tidegate.state.store.paths import segment_path, stage_path
from tidegate.state.store.store import open_store
from tidegate.worker.join.joined_rows import Assembler, PairReferences, cells_of
from tidegate.worker.join.key_loads import key_loads
from tidegate.worker.join.pair_finder import Finder
from tidegate.worker.join.repair import Payer
from tidegate.worker.join.settle import Settling, completes
from tidegate.worker.join.work import KEEPING, PROBING, REPAIRING, JoinCounts, JoinWork
from tidegate.worker.runtime.layout import CODE, REPORT, ROLE, TAG, TIME
from tidegate.worker.runtime.memory import keep_freed_memory
from tidegate.worker.runtime.owned_state import OwnedState
from tidegate.worker.runtime.runs import NewRun, in_slots, new_runs, write_run
from tidegate.worker.runtime.stage_file import StageWriter
from tidegate.worker.runtime.worker_cache import worker_cache


class JoinInstance:
    """One instance of a join in one batch; see the module docstring."""

    def __init__(self, work: JoinWork, instance: int, attempt: str, cache: SegmentCache | None = None):
        self.work, self.layout, self.instance = work, work.layout, instance
        name = self.layout.operator
        self.cache: SegmentCache = cache or worker_cache(
            work.state.store_url, name, work.state.pieces, work.state.run
        )
        path = segment_path(name, work.state.batch, instance, attempt)
        self.writer: SegmentWriter = SegmentWriter(open_store(work.state.store_url), path)
        self._staged = stage_path(name, work.state.batch, instance, attempt)
        self.assembler: Assembler = Assembler(self.layout, staged=work.stage_root is not None)
        self.counts: JoinCounts = JoinCounts(self.layout)
        self.held: OwnedState = OwnedState(work, instance, self.cache)
        self.stored = self.held.stored
        self.new: list[NewRun] = []
        #: The pieces in which these were stored.
        self.written: list[Piece] = []
        #: New rows that another instance stores and that probe here.
        self.borrowed: list[NewRun] = []
        self._read_before = self.cache.bytes_read

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
        received = list(batches)
        self.counts.begin()
        self._accept(received)
        self._store()
        settling = Settling(self)
        if self.work.stage_root is not None:
            yield self._stage(self._direct(settling), settling)
            return
        step = self._candidates() if self.layout.residual else self._direct(settling)
        while True:
            result = next(step, None)
            self.counts.lap()
            if result is None:
                break
            yield result
            self.counts.begin()
        yield self.assembler.report(report_text(self.report(settling)))

    def _stage(self, results: Iterator[pa.RecordBatch], settling: Settling) -> pa.RecordBatch:
        """Write the results where sinks read them; only the report returns through Spark."""
        stage = StageWriter(f"{self.work.stage_root}/{self._staged}", self.work.kept_as)
        for result in results:
            stage.write(result)
        staged = self._staged if stage.close() else None
        self.counts.lap()
        report = replace(self.report(settling), staged=staged)
        return pa.RecordBatch.from_arrays([pa.array([report_text(report)])], names=[REPORT])

    def _finder(self) -> Finder:
        new = [*self.new, *self.borrowed]
        return Finder(self.work, self.stored, new, self.counts, self._probe_together)

    def _direct(self, settling: Settling) -> Iterator[pa.RecordBatch]:
        for parts in self._finder().chunks():
            self.counts.turn_to(PROBING)
            for part in parts:
                settling.mark(part)
            if self.layout.emits_pairs:
                self.counts.emitted += sum(map(len, parts))
                yield self.assembler.pairs(parts, [cells_of(parts)] if self.layout.cells else ())
            self.counts.turn_to(KEEPING)
        for run, rows in settling.leaving():
            self.counts.emitted += len(rows)
            yield self.assembler.unmatched(run, rows)
        if self.work.repairs:
            yield from self._repaired(settling)
        settling.write()

    def _repaired(self, settling: Settling) -> Iterator[pa.RecordBatch]:
        """Results that earlier batches skipped, with the batch that skipped them."""
        self.counts.turn_to(REPAIRING)
        read_before = self.cache.bytes_read
        payer = Payer(self.work, self.instance, self.held, self.cache, self.counts)
        for batch, parts in payer.chunks():
            if self.layout.emits_pairs:
                self.counts.emitted += sum(map(len, parts))
                yield self.assembler.pairs(parts, [cells_of(parts)] if self.layout.cells else (), batch)
                continue
            for part in parts:
                rows = settling.newly_matched(part)
                if len(rows):
                    self.counts.emitted += len(rows)
                    yield self.assembler.unmatched(part.left_run, rows, batch)
        self.counts.turn_to(KEEPING)
        # Reads for repair do not count as reads of the batch itself.
        self._read_before += self.cache.bytes_read - read_before

    def _candidates(self) -> Iterator[pa.RecordBatch]:
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
            (self.new if stores else self.borrowed).extend(runs)

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
            usable = self._kept(side, usable, codes, times, counts)
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
        codes: NDArray[np.uint64],
        times: NDArray[np.int64],
        counts: JoinCounts,
    ) -> NDArray[np.bool_]:
        """The rows without those that the plan drops.

        Stale rows are dropped here, not before the shuffle. Tasks count rows and find their newest time at no
        cost, so the watermark advances even if all rows are stale. And the load model attributes the saved
        time to rows: their cost before the task counts as overhead, which does not change with stale rows.
        """
        skipping, needed = self.work.skipping, self.work.needed[side]
        if skipping is not None and skipping.fresh_us[side] > BEGINNING_US:
            fresh = usable & (times >= skipping.fresh_us[side])
            counts.stale[side] += int(np.count_nonzero(usable) - np.count_nonzero(fresh))
            usable = fresh
        kept = usable if needed is None else usable & needed.contain(times)
        if skipping is not None and skipping.keep_share < 1:
            identity = row_identity(codes, times, self.work.state.batch)
            kept = kept & within_share(identity, skipping.keep_share, purpose(self.work.seed, KEEP))
        if kept is usable:
            return usable
        counts.dropped[side] += int(np.count_nonzero(usable) - np.count_nonzero(kept))
        return kept

    def _store(self) -> None:
        for run in self.new:
            owned, bounds = partition_bounds(run.codes, self.layout.partitions)
            self.counts.stored[run.side, owned] += np.diff(bounds)
        for run in self._to_store() if self.keeps_state else ():
            batches = np.full(len(run.codes), self.work.state.batch, np.int32)
            placement = self.work.state.routing.sides[run.side]
            labelled = stored_in(run.codes, placement, self.layout.partitions, self.instance, run.keyless)
            run.piece = write_run(run, self.writer, self.layout.operator, batches, 0, labelled)
            self.written.append(run.piece)

    def _to_store(self) -> list[NewRun]:
        """New rows by slot, whatever this batch does with them, without slots that no later row can match."""
        if not self._probe_together:
            return [run for run in self.new if run.last_us >= self._needed_from_us(run.side)]
        sides = [[run for run in self.new if run.side == side] for side in (LEFT, RIGHT)]
        return [
            part
            for side, runs in enumerate(sides)
            for part in in_slots(runs, self.layout.within.slot_us(side))
            if part.last_us >= self._needed_from_us(side)
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
        written = self.writer.close()
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
            keys=key_loads(self.work, self.instance, self.stored, [*self.new, *self.borrowed]),
            probes=() if self.work.skipping is None else tuple(one.counted() for one in counts.probes),
            repaired=Repaired(
                round(counts.repaired_comparisons), counts.repaired_matches, counts.seconds[REPAIRING]
            ),
        )


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
