"""One instance of count windows in one batch: rows in, complete windows out, state written.

    rows ─▶ a new run ─▶ store
    all runs ─▶ groups of which the watermark has passed a row ─▶ complete windows ─▶ out
                                                              └─▶ rows that no window needs: consumed

A row is stored as its partials (`by_row`), with its time and the hash that orders rows of equal time. Once no
window needs it, its bit is set beside the piece; a piece with half of its rows consumed is rewritten without
them. A row waits for other rows, not for a time, so nothing expires by itself.

Cost of a batch: its new rows; for each group with newly passed rows, a search in every piece; the rows of
emitted windows; and a bit per row of the pieces that contain these rows. Rewriting touches in total no more
rows than windows have consumed, and merging in tiers touches a row as often as in joins
(`control/merging.py`). At most half of the state is consumed rows; each group has fewer than `size` other
rows below the watermark. Nothing here imports Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidegate.join.probe.matched_bits import count_between, set_bits, unset_positions
from tidegate.join.probe.order import sort_by_code_time
from tidegate.model.times import BEGINNING_US, END_US, LEFT
from tidegate.window.aggregate.closing import Stretches
from tidegate.window.aggregate.merge_runs import Merged, merge_runs
from tidegate.window.aggregate.merge_runs import PartialRun as KeyRun
from tidegate.window.count.count_windows import count_windows
from tidegate.window.count.waiting_rows import groups_with_rows, waiting_rows
from tidegate.window.spec import RowsSpec
from tidegate.worker.runtime.layout import BATCH, CHECK, CODE, ROW, SEEN
from tidegate.worker.runtime.runs import NewRun, RowRun, StoredRun, as_numpy, one_array
from tidegate.worker.window.merged_rows import MergedRows
from tidegate.worker.window.received import ReceivedPartials
from tidegate.worker.window.task import WindowInstance, words

#: One slot covers all time.
_SLOT = 0


class CountWindowInstance(WindowInstance):
    """One instance in one batch; see the module docstring."""

    @cached_property
    def rows_spec(self) -> RowsSpec:
        assert isinstance(self.layout.spec, RowsSpec)
        return self.layout.spec

    @property
    def _needed_from_us(self) -> int:
        """Rows wait for other rows, so all are needed."""
        return BEGINNING_US

    @property
    def _names(self) -> list[str]:
        """The columns of a stored row besides code, time and batch."""
        return [CHECK, ROW, *self.layout.by, *self.layout.partials]

    # -- new rows ------------------------------------------------------------------------------------

    def _accept_on_time(self, received: ReceivedPartials, mine: NDArray[np.int64]) -> None:
        code, check = (received.words(name)[mine] for name in (CODE, CHECK))
        times, ties = (received.numbers(name)[mine] for name in (SEEN, ROW))
        order = _order(code, check, times, ties)
        code, times = code[order], times[order]
        rows = received.taken([CHECK, ROW, *self.layout.by], mine[order])
        if self.layout.makes_states:
            rows = self._with_states(code, times, rows)
        self.new = [_run(code, times, rows)]

    def _with_states(self, code: NDArray[np.uint64], times: NDArray[np.int64], rows: pa.Table) -> pa.Table:
        """Sorted rows with the states of user-defined aggregates: one state per row."""
        every = np.arange(len(code))
        merged = merge_runs([KeyRun(code, times, words(rows.column(CHECK)), rows.column(ROW).to_numpy())])
        cut = MergedRows(rows, merged, Stretches(times, every, every + 1), single=True)
        partials = self.columns.partials(cut, fresh=True)
        keys = rows.select([CHECK, ROW, *self.layout.by])
        return pa.Table.from_arrays(
            [*keys.columns, *partials.values()], names=[*keys.column_names, *partials]
        )

    # -- windows -------------------------------------------------------------------------------------

    @property
    def _portion_bytes(self) -> int | None:
        """Windows of rows count in the order of time, so all rows are handled at once."""
        return None

    def _closed(self) -> Iterator[pa.RecordBatch]:
        yield self._completed()

    def _completed(self) -> pa.RecordBatch:
        """Every window completed by rows that the watermark has passed since the last batch."""
        held: list[RowRun] = [*self.held.stored, *self.new]
        since, below = (
            self.work.state.settled_us,
            END_US if self.work.state.flush else self.work.state.settle_us,
        )
        runs = [run for run in held if run.first_us < below]
        moved = [run for run in runs if run.last_us >= since] if since < below else []
        groups = groups_with_rows([key for run in moved for key in _keys(run)], since, below)
        if not groups.code.size:
            return self.columns.nothing()
        found = [waiting_rows(_key(run), run.own, _consumed(run), groups, below) for run in runs]
        counts = sum((one.end - one.begin for one in found), np.zeros(groups.code.size, np.int64))
        full = counts >= self.rows_spec.size
        if not full.any():
            return self.columns.nothing()
        rows = [one.rows(full) for one in found]
        table, merged = self._together_at(runs, rows, self._names)
        complete, kept = count_windows(merged, self.rows_spec, below)
        if not self.work.state.flush:
            _consume(runs, rows, merged.order[~kept])
        if self.work.kept is not None:
            complete = complete.only(self.work.kept.contain(complete.at))
        # A window starts and ends with its first and its last row.
        ends = merged.at[complete.end - 1]
        return self.columns.closed(MergedRows(table, merged, complete, single=True), complete.at, ends)

    def _together_at(
        self, runs: Sequence[RowRun], rows: Sequence[NDArray[np.int64]], names: Sequence[str]
    ) -> tuple[pa.Table, Merged]:
        """These rows of runs concatenated, with these columns; and the order of all of them."""
        parts = [run.rows.select(names).take(pa.array(some)) for run, some in zip(runs, rows, strict=True)]
        keys = [_key(run, some) for run, some in zip(runs, rows, strict=True)]
        return pa.Table.from_batches(parts), merge_runs(keys)

    # -- what stays ----------------------------------------------------------------------------------

    def _merge(self) -> None:
        """Merge as the plan says, rewrite half-consumed pieces, and record other consumed rows."""
        if self.work.state.flush:
            return
        stored = {run.piece.name: run for run in self.held.stored if run.own}
        wanted = dict(self.work.state.merges).get(str(self.instance), ())
        groups = [[stored.pop(name) for name in names if name in stored] for names in wanted]
        for group in filter(None, groups):
            self._rewrite(group, 1 + max(run.piece.level for run in group))
        self._note_consumed_new()
        spent = []
        for name, run in stored.items():
            if run.touched and _is_spent(run):
                spent.append(run)
            elif run.touched:
                self.matched[name] = self.writer.add_bytes(run.bits.tobytes())
        if spent:
            self._rewrite(spent, max(run.piece.level for run in spent))

    def _note_consumed_new(self) -> None:
        """Record rows of this batch that the watermark has passed and no window needs."""
        for run in self.new:
            if run.touched and run.piece is not None:
                self.matched[run.piece.name] = self.writer.add_bytes(run.bits.tobytes())

    def _rewrite(self, group: Sequence[StoredRun], level: int) -> None:
        """Write several pieces as one, with the rows that are still needed."""
        self.merged += [run.piece.name for run in group]
        rows = [_needed(run) for run in group]
        table, merged = self._together_at(group, rows, [CODE, BATCH, *self._names])
        if not len(merged.order):
            return
        table = table.take(pa.array(merged.order))
        run = _run(words(table.column(CODE)), merged.at, table.select(self._names))
        self.added.append(self._written(run, as_numpy(one_array(table.column(BATCH))), level))


def _run(codes: NDArray[np.uint64], times: NDArray[np.int64], rows: pa.Table) -> NewRun:
    run = NewRun(LEFT, False, _SLOT, int(times.min()), int(times.max()), [(0, len(codes))])
    run.codes, run.times = codes, times
    columns = [one_array(column) for column in rows.columns]
    run.rows = pa.RecordBatch.from_arrays(columns, names=rows.column_names)
    return run


def _key(run: RowRun, rows: NDArray[np.int64] | slice = slice(None)) -> KeyRun:
    """The sort key of these rows of a run."""
    check, tie = words(run.column(CHECK))[rows], as_numpy(run.column(ROW))[rows]
    return KeyRun(run.codes[rows], run.times[rows], check, tie)


def _keys(run: RowRun) -> list[KeyRun]:
    return [_key(run, slice(start, stop)) for start, stop in run.own]


def _consumed(run: RowRun) -> NDArray[np.uint8]:
    """Bits of the rows that no window needs; read only."""
    return run.stored_bits if isinstance(run, StoredRun) and not run.touched else run.bits


def _consume(runs: Sequence[RowRun], rows: Sequence[NDArray[np.int64]], consumed: NDArray[np.int64]) -> None:
    """Set the bits of rows, given by their positions among all rows of these runs."""
    edges = np.cumsum([0, *map(len, rows)])
    consumed = np.sort(consumed)
    parts = np.split(consumed, np.searchsorted(consumed, edges[1:-1]))
    for run, some, first, part in zip(runs, rows, edges[:-1], parts, strict=True):
        if len(part):
            set_bits(run.bits, some[part - first])


def _needed(run: StoredRun) -> NDArray[np.int64]:
    bits = _consumed(run)
    return np.concatenate([unset_positions(bits, *part) for part in run.own])


def _is_spent(run: StoredRun) -> bool:
    """Whether at least half of this instance's rows of a run are consumed."""
    consumed = sum(count_between(run.bits, *part) for part in run.own)
    return 2 * consumed >= sum(stop - start for start, stop in run.own)


def _order(
    code: NDArray[np.uint64], check: NDArray[np.uint64], times: NDArray[np.int64], ties: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Order by group, time and hash of the row. Columns that cannot affect the order are skipped."""
    order, codes, sorted_times = sort_by_code_time(code, times)
    same, checks = codes[1:] == codes[:-1], check[order]
    if (same & (checks[1:] != checks[:-1])).any():
        return np.lexsort((ties, times, check, code))
    if (same & (sorted_times[1:] == sorted_times[:-1])).any():
        first = np.argsort(ties)
        return first[sort_by_code_time(code[first], times[first]).order]
    return order
