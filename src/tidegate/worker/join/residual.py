"""The second step of a join with a residual condition: evaluated pairs return, unmatched rows are settled."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidegate.model.pieces import Piece
from tidegate.model.reports import reports_in
from tidegate.state.segments import SegmentWriter
from tidegate.state.store.paths import segment_path
from tidegate.state.store.store import open_store
from tidegate.worker.join.joined_rows import Assembler
from tidegate.worker.join.settle import Settling
from tidegate.worker.join.task import JoinInstance
from tidegate.worker.join.work import JoinWork
from tidegate.worker.runtime.layout import LEFT_ROW, LEFT_RUN, OK, REPORT, RIGHT_ROW, RIGHT_RUN
from tidegate.worker.runtime.owned_state import OwnedState
from tidegate.worker.runtime.runs import NewRun, StoredRun
from tidegate.worker.runtime.stage_file import report_batch
from tidegate.worker.runtime.state_order import for_instance
from tidegate.worker.runtime.task_errors import ArrowFunction, guarded
from tidegate.worker.runtime.task_runner import (
    Context,
    SparkTask,
    attempt,
    instance_in,
    partition_of,
)
from tidegate.worker.runtime.worker_cache import worker_cache


def find_candidates(work: JoinWork, finding: JoinWork, context: Context) -> ArrowFunction:
    """The first step: candidate pairs go to Spark, the report goes to the second step through a file."""

    def find(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        received = list(batches)
        task = context()
        number = instance_in(received, partition_of(task))
        handover = Handover(work, _attempt(task))
        handover.tell("instance", str(number))
        order = for_instance(finding, number)
        for result in JoinInstance(order, number, attempt()).run(iter(received)):
            texts = result.column(REPORT)
            if texts.null_count:
                yield result
            else:
                handover.tell("report", texts[0].as_py())

    return guarded(work.layout.operator, find)


def settle_judged(work: JoinWork, context: Context) -> ArrowFunction:
    """The second step: pairs that pass set matched bits and are emitted; then rows are settled."""

    def settle(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        handover = Handover(work, _attempt(context()))
        # Once the first batch or the end is read, the first step has written its instance number.
        rows = chain(list(islice(batches, 1)), batches)
        instance = int(handover.heard("instance"))
        settling = SettleInstance(for_instance(work, instance), instance, attempt())
        yield from settling.run(rows, lambda: handover.heard("report"))

    return guarded(work.layout.operator, settle)


def _attempt(task: SparkTask | None) -> int:
    """A name that both steps of this attempt share and no other attempt has."""
    return 0 if task is None else task.taskAttemptId()


class Handover:
    """Messages from the first step of a task to the second; each is read once and deleted."""

    def __init__(self, work: JoinWork, attempt: int):
        self._store = open_store(work.state.store_url)
        self._path = f"segments/{work.layout.operator}/{work.state.batch:010d}-{work.state.run}-{attempt}"

    def tell(self, word: str, text: str) -> None:
        self._store.write(f"{self._path}.{word}", [text.encode()])

    def heard(self, word: str) -> str:
        text = self._store.read(f"{self._path}.{word}").decode()
        self._store.delete(f"{self._path}.{word}")
        return text


class SettleInstance:
    """The second step: receives evaluated pairs, sets bits, emits, settles."""

    def __init__(self, work: JoinWork, instance: int, attempt: str):
        self.work, self.layout, self.instance = work, work.layout, instance
        self.cache = worker_cache(self.layout.operator, work.state)
        path = segment_path(self.layout.operator, work.state.batch, instance, attempt)
        self.writer: SegmentWriter = SegmentWriter(open_store(work.state.store_url), path)
        self.assembler: Assembler = Assembler(self.layout)
        self.keeps_state = True
        self.held: OwnedState = OwnedState(work, instance, self.cache)
        self.stored: list[StoredRun] = self.held.stored
        self.new: list[StoredRun] = []
        #: The pieces of these.
        self.written: Sequence[Piece] = ()
        #: Rows have no copies in joins with a residual condition, so there are no marks.
        self.borrowed: list[NewRun] = []
        #: Per side and new run: positions that matched, until the report names the piece of the run.
        self._waiting: dict[tuple[int, int], list[NDArray[np.int64]]] = {}

    def run(self, batches: Iterator[pa.RecordBatch], report: Callable[[], str]) -> Iterator[pa.RecordBatch]:
        """All result batches, the report last; `report` is called after all pairs are read."""
        settling = Settling(self)
        emitted, cpu_seconds = 0, 0.0
        for batch in batches:
            started = time.thread_time()
            good = batch.filter(batch.column(OK))
            self._mark(settling, good)
            cpu_seconds += time.thread_time() - started
            if self.layout.emits_pairs and good.num_rows:
                emitted += good.num_rows
                yield good.select(self.assembler.schema.names).cast(self.assembler.schema)
        started = time.thread_time()
        ((first,), _) = reports_in([report()])
        self._open_new(first.state.added, settling)
        for run, rows in settling.leaving():
            emitted += len(rows)
            yield self.assembler.unmatched(run, rows)
        settling.write()
        written = self.writer.close()
        cpu_seconds += time.thread_time() - started
        seconds = replace(
            first.seconds,
            cpu=first.seconds.cpu + cpu_seconds,
            recut=first.seconds.recut + self.held.recut_seconds,
        )
        state = replace(
            first.state,
            bytes_written=first.state.bytes_written + written,
            added=tuple(settling.added()),
            merged=tuple(settling.merged),
            matched=settling.matched,
        )
        whole = replace(first, emitted=emitted, seconds=seconds, state=state)
        yield report_batch(whole, self.assembler.schema)

    def _mark(self, settling: Settling, good: pa.RecordBatch) -> None:
        for side, (run_name, row_name) in enumerate(((LEFT_RUN, LEFT_ROW), (RIGHT_RUN, RIGHT_ROW))):
            if not self.layout.tracked[side] or not good.num_rows:
                continue
            runs = good.column(run_name).to_numpy(zero_copy_only=False)
            rows = good.column(row_name).to_numpy(zero_copy_only=False)
            for number in np.unique(runs):
                positions = np.ascontiguousarray(rows[runs == number], dtype=np.int64)
                if number >= 0:
                    settling.set(self.held.by_number[int(number)], positions)
                else:
                    self._waiting.setdefault((side, int(number)), []).append(positions)

    def _open_new(self, added: Sequence[Piece], settling: Settling) -> None:
        self.written = added
        self.new = [StoredRun(piece, [(0, piece.rows)], self.cache) for piece in added]
        for (_, number), positions in self._waiting.items():
            settling.set(self.new[-number - 1], np.concatenate(positions))
