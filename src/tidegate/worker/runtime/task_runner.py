"""Where rows enter a worker: the function that Spark calls with the Arrow batches of one partition.

    driver ──▶ mapInArrow(by_instance(…)) ──▶ [worker] batches ──▶ Task.run ──▶ batches, the report last

The driver passes `TaskContext.get`, so that nothing here imports pyspark. Each attempt of a task has a unique
name, so retries and speculative attempts never write to the same file.
"""

from __future__ import annotations

import gc
import sys
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar, cast

import numpy as np
import pyarrow as pa

from tidegate.worker.runtime.layout import CODE, INSTANCE, MARKER, TAG
from tidegate.worker.runtime.portions import held
from tidegate.worker.runtime.stage_file import Kept
from tidegate.worker.runtime.state_order import StateOrder, for_instance
from tidegate.worker.runtime.task_errors import ArrowFunction, guarded


class WorkOrder(Protocol):
    """What one batch asks of the tasks of an operator: a picklable value sent to the workers."""

    @property
    def stage_root(self) -> str | None:
        """Local folder of the state, where results are staged; None: they return through Spark."""

    @property
    def kept_as(self) -> Kept | None:
        """How staged files that stay as an output are written; None: they are read once and deleted."""


class Task(Protocol):
    """One task of an operator in one batch."""

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """All result batches, the report last."""


class SparkTask(Protocol):
    """The part of Spark's TaskContext that tasks use."""

    def partitionId(self) -> int: ...  # noqa: N802

    def taskAttemptId(self) -> int: ...  # noqa: N802


class Named(Protocol):
    """The part of an operator's layout that every kind has."""

    @property
    def operator(self) -> str:
        """The name of the operator."""


class Laid(Protocol):
    """A work order by its layout."""

    @property
    def layout(self) -> Named: ...


class Placed(Laid, Protocol):
    """A work order of an operator with instances."""

    @property
    def state(self) -> StateOrder:
        """What the batch asks of its state."""


W = TypeVar("W", bound=Laid)
P = TypeVar("P", bound=Placed)
#: Gives the context of the running task; None outside of Spark.
Context = Callable[[], SparkTask | None]


def by_instance(make: Callable[[W, int, str], Task], work: W, context: Context) -> ArrowFunction:
    """Tasks of an operator with state, one per instance. `make`: from work order, instance and attempt."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        LOADED_OBJECTS.keep()
        received = deque(held(batches))
        instance = instance_in(received, partition_of(context()))
        task = make(for_instance(work, instance), instance, attempt())
        # Handed over one by one: what the task is done with can be freed.
        return task.run(received.popleft() for _ in range(len(received)))

    return guarded(work.layout.operator, run)


def in_one_task(make: Callable[[P, int, str], Task], work: P) -> ArrowFunction:
    """All instances of an operator, one after the other; INSTANCE says which row is whose."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        LOADED_OBJECTS.keep()
        received = held(batches)
        for instance in range(work.state.routing.instances):
            task = make(for_instance(work, instance), instance, attempt())
            yield from task.run(_rows_of(received, instance))

    return guarded(work.layout.operator, run)


def _rows_of(received: Iterable[pa.RecordBatch], instance: int) -> Iterator[pa.RecordBatch]:
    for batch in received:
        mine = batch.column(INSTANCE).to_numpy() == instance
        if mine.any():
            yield cast(pa.RecordBatch, batch.drop_columns([INSTANCE]).filter(pa.array(mine)))


def by_partition(make: Callable[[W, int, str], Task], work: W, context: Context) -> ArrowFunction:
    """Tasks of an operator without state, one per Spark partition. `make` as above, with its number."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        LOADED_OBJECTS.keep()
        return make(work, partition_of(context()), attempt()).run(batches)

    return guarded(work.layout.operator, run)


def partition_of(task: SparkTask | None) -> int:
    return 0 if task is None else task.partitionId()


def attempt() -> str:
    """A name that no other attempt has."""
    return uuid.uuid4().hex[:12]


def instance_in(received: Iterable[pa.RecordBatch], task: int) -> int:
    """The number of the instance whose rows these are.

    A marker row contains it. Without a marker the operator runs alone, and Spark's task number is used.
    """
    for batch in received:
        marked = np.flatnonzero(batch.column(TAG).to_numpy() == MARKER)
        if len(marked):
            return int(batch.column(CODE)[int(marked[0])].as_py())
    return task


#: Kernels are loaded in the first tasks of a worker, with many objects and no new module.
_FIRST_TASKS = 16


class LoadedObjects:
    """The objects of a worker process that the garbage collector leaves alone.

    Spark's workers run a full collection after every task, and the next task waits for it. The libraries of
    this package are hundreds of thousands of objects, and looking at all of them takes longer than most
    tasks: 50 to 90 ms. What is loaded stays loaded.
    """

    def __init__(self) -> None:
        self._tasks, self._modules = 0, 0

    def keep(self) -> None:
        """Call at the beginning of a task, right after a collection: all that exists is in use."""
        self._tasks += 1
        loaded = len(sys.modules)
        if self._tasks <= _FIRST_TASKS or loaded != self._modules:
            self._modules = loaded
            gc.freeze()


LOADED_OBJECTS = LoadedObjects()
