"""Repairs debts: finds the pairs that earlier batches skipped, among stored rows.

    debt of batch 7    left rows of batch 7  ──▶ right rows of batches … 7     (the left row finds its batch)
                       right rows of batch 7 ──▶ left rows of batches … 6

A skipped pair is found on the instance that stores its left row *now*. Each stored row is in one partition
and each partition belongs to one instance, so the pair is found once. The right rows of its key may be stored
elsewhere (split keys, the biclique, joins without a key); their files are read from here. So nothing is
shuffled, and it does not matter what was merged, moved or split since the batch with the debt.

Rows that arrived after that batch are not probed: they found these pairs, or recorded them in their own debt.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tidegate.join.selective import skipped_ranges
from tidegate.join.selective.planned import planned
from tidegate.join.selective.reach import NewRows, ProbeRange, ages_of, nonempty
from tidegate.join.selective.selection import REPAIR, purpose, unit_hashes
from tidegate.model.debts import Debt, DebtRepair, RepairCell
from tidegate.model.times import LEFT, RIGHT
from tidegate.state.segments import SegmentCache
from tidegate.worker.join import pair_finder
from tidegate.worker.join.joined_rows import PairReferences, Places
from tidegate.worker.join.matcher import Matcher, chunks
from tidegate.worker.join.work import JoinCounts, JoinWork
from tidegate.worker.runtime.layout import BATCH
from tidegate.worker.runtime.owned_state import OwnedState, partly_here
from tidegate.worker.runtime.runs import RowRun, StoredRun, as_numpy

#: The cell of a repaired result row: none of this batch.
NO_CELL = -1


class PickedRun(RowRun):
    """The rows of a stored run that arrived in one batch."""

    def __init__(self, stored: StoredRun, at: NDArray[np.int64]) -> None:
        times = stored.times[at]
        super().__init__(
            stored.side, stored.keyless, stored.slot, int(times.min()), int(times.max()), [(0, len(at))]
        )
        self.stored, self.at = stored, at
        self.codes, self.times = stored.codes[at], times
        self._columns: dict[str, pa.Array] = {}

    @property
    def names(self) -> list[str]:
        return self.stored.names

    def column(self, name: str) -> pa.Array:
        if name not in self._columns:
            self._columns[name] = pc.take(self.stored.column(name), pa.array(self.at), boundscheck=False)
        return self._columns[name]


class Payer:
    """The repair of one instance in one batch; see the module docstring."""

    def __init__(
        self, work: JoinWork, instance: int, held: OwnedState, cache: SegmentCache, counts: JoinCounts
    ) -> None:
        self._work, self._layout, self._counts = work, work.layout, counts
        self._left = [
            # Pairs of rows that are lent to this instance are repaired where the rows are stored.
            run if run.own == run.slices else StoredRun(run.piece, run.own, cache)
            for run in held.stored
            if run.side == LEFT and run.own and not run.keyless
        ]
        self._right: list[StoredRun] = []
        if self._left:
            seen = self._sees_right(instance, held, cache)
            self._right = [run for run in seen.stored if run.side == RIGHT and not run.keyless]
        self._by_time: dict[int, Places] = {}

    def _sees_right(self, instance: int, held: OwnedState, cache: SegmentCache) -> OwnedState:
        """The state with all right rows that may match left rows of this instance."""
        routing = self._work.state.routing
        right, nothing = routing.right, frozenset[int]()
        if self._layout.spread or routing.apart is not None:
            return OwnedState(self._work, instance, cache, (nothing, frozenset(range(len(right.table)))))
        if routing.scattered:
            return OwnedState(self._work, instance, cache, (nothing, partly_here(right, instance)))
        return held

    def chunks(self) -> Iterator[tuple[int, list[PairReferences]]]:
        """Pairs in bounded lists, each with the batch that skipped them."""
        for debt, payment in self._work.repairs:
            # What a predicate prepared for picked rows is dropped with them; rows by time serve all debts.
            meeting = Matcher(self._work, self._by_time)
            for parts in chunks(self._pairs(debt, payment, meeting), pair_finder.PAIRS_PER_CHUNK):
                yield debt.batch, parts

    def _pairs(self, debt: Debt, payment: DebtRepair, meeting: Matcher) -> Iterator[PairReferences]:
        for side, mine, others in ((LEFT, self._left, self._right), (RIGHT, self._right, self._left)):
            window = 1 - side
            cells = {cell.age: cell for cell in payment.cells if cell.window == window}
            # A pair within one batch is found by its left row.
            until = debt.batch if side == LEFT else debt.batch - 1
            partners = [run for run in others if _reaches(run, debt, until)]
            if not cells or not partners:
                continue
            runs = [picked for run in mine if (picked := _picked(run, debt.batch)) is not None]
            for run in runs:
                yield from self._debt(debt, cells, run, partners, until, meeting)

    def _debt(
        self,
        debt: Debt,
        cells: dict[int, RepairCell],
        run: PickedRun,
        partners: Sequence[StoredRun],
        until: int,
        meeting: Matcher,
    ) -> Iterator[PairReferences]:
        """Skipped pairs of the rows of one run that arrived in the batch with the debt."""
        window = 1 - run.side
        low, high = self._layout.within.partner_range(run.side, run.times)
        rows = NewRows(run.times, low, high, run.first_us, run.last_us)
        identity = run.identity(debt.batch)
        rows = planned(rows, lambda: identity, window, debt.skipping, debt.seed)
        drawn = unit_hashes(identity, purpose(debt.seed, REPAIR))
        ages, shares = ages_of(self._layout.within, window), debt.skipping.shares[window]
        earliest, latest = rows.extent
        for other in partners:
            if other.first_us > latest or other.last_us < earliest:
                continue
            stored = other.first_us, other.last_us
            for probe in skipped_ranges.unprobed_ranges(
                ages, shares, rows, stored, debt.skipping.filled_us[window]
            ):
                if probe.age not in cells:
                    continue
                cell = cells[probe.age]
                for part in skipped_ranges.chosen(probe, drawn, cell.since, cell.until):
                    # No row that had arrived by then is newer than this; most later rows are.
                    clipped = replace(part, high=np.minimum(part.high, debt.spans[window][1]))
                    for left in nonempty(clipped):
                        yield from self._met(run, left, other, until, meeting)

    def _met(
        self, run: PickedRun, probe: ProbeRange, other: StoredRun, until: int, meeting: Matcher
    ) -> Iterator[PairReferences]:
        counts = self._counts
        counts.repaired_comparisons += meeting.size(probe, other)
        for ranges in meeting.candidates(run, probe, other):
            if not len(ranges.rows):
                continue
            for found in meeting.pairs(run, other, ranges, pair_finder.PAIRS_PER_CHUNK):
                pairs = _in_stored_rows(found, run, other, until)
                counts.repaired_matches += len(pairs)
                if len(pairs):
                    yield pairs


def _reaches(run: StoredRun, debt: Debt, until: int) -> bool:
    """Whether a run may contain rows that the debt needs and that had arrived by batch `until`."""
    first, last = debt.spans[run.side]
    return run.piece.first_batch <= until and run.first_us <= last and run.last_us >= first


def _picked(run: StoredRun, batch: int) -> PickedRun | None:
    piece = run.piece
    if not piece.first_batch <= batch <= piece.last_batch:
        return None
    at = np.concatenate([np.arange(start, stop) for start, stop in run.slices])
    if piece.first_batch < piece.last_batch:
        at = at[_batches(run)[at] == batch]
    return PickedRun(run, at) if len(at) else None


def _batches(run: StoredRun) -> NDArray[np.int32]:
    return as_numpy(run.rows.column(BATCH))


def _in_stored_rows(found: PairReferences, run: PickedRun, other: StoredRun, until: int) -> PairReferences:
    """The pairs as positions of stored rows, without rows that arrived later than `until`."""
    if run.side == LEFT:
        pairs = PairReferences(run.stored, run.at[found.left], other, found.right, NO_CELL)
        partners = found.right
    else:
        pairs = PairReferences(other, found.left, run.stored, run.at[found.right], NO_CELL)
        partners = found.left
    return pairs if other.piece.last_batch <= until else pairs.only(_batches(other)[partners] <= until)
