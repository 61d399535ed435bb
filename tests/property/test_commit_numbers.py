"""Whatever happens to a run, each batch of Spark that is not idle is in one commit, and commits have no gaps.

Two logs that know nothing of each other: Spark writes what a batch reads, asks for the batch and commits it;
the engine writes a plan, does the work and commits a manifest. Either may die between any two of these.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.state.samples import a_manifest, a_plan

from tidegate.errors import StateError
from tidegate.model.manifest import Manifest, SparkBatch
from tidegate.model.plan import Plan
from tidegate.state.checkpoint import Checkpoint
from tidegate.state.spark_log import commit_of, reads_nothing_new, refuse_other, unfinished_settling

NAMES = itertools.count()
#: Where a run dies; None: nowhere.
DEATHS = (None, "offsets", "plan", "sinks", "manifest")


class Death(Exception):
    """The process is gone."""


@dataclass
class World:
    """A checkpoint, what was published, and Spark's own commits."""

    checkpoint: Checkpoint = field(default_factory=lambda: Checkpoint(f"memory://commits-{next(NAMES)}"))
    #: By commit: the content that its sinks hold; a replay replaces it.
    published: dict[int, bytes] = field(default_factory=dict)
    #: The newest batch that Spark has committed, and how many contents it has made up.
    spark_commit: int = -1
    made: int = 0
    #: Whether the next new batches of Spark have rows, in turn.
    rows: Iterator[bool] = field(default_factory=lambda: itertools.repeat(True))

    def start(self) -> Manifest:
        """A start of the process: the state, and first the commit without rows that was begun."""
        self.checkpoint.open("test")
        try:
            newest = self.checkpoint.recover() or a_manifest(-1)
        finally:
            self.checkpoint.close()
        return newest

    def run(self, batches: int, death: str | None, settles: bool) -> None:
        """A run that takes so many new batches, dies in the last one if it is told to, or settles."""
        newest = self.start()
        plan = unfinished_settling(newest, self.checkpoint.plans)
        if plan is not None:
            newest = self.commit(newest, None, b"settled", None if batches else death)
        # Spark asks again for what it has not committed, then for new batches.
        pending = self.checkpoint.spark_log.store.exists(f"offsets/{self.spark_commit + 1}")
        batches = max(batches, int(pending))
        for number in range(batches):
            last = number == batches - 1
            newest = self.take(newest, death if last and not settles else None)
        if settles:
            newest = self.commit(newest, None, b"settled", death)

    def take(self, newest: Manifest, death: str | None) -> Manifest:
        """One batch of Spark."""
        number = self.spark_commit + 1
        offsets = self.checkpoint.spark_log.store
        if not offsets.exists(f"offsets/{number}"):
            self.made += next(self.rows)
            offsets.write_atomic(f"offsets/{number}", f"v1\n{{}}\ncontent {self.made}\n{number}".encode())
        self.die("offsets", death)
        log, last = self.checkpoint.spark_log, newest.spark_batch
        wanted = log.batch(number)
        before = log.batch(number - 1) if number > last.number + 1 else None
        begun = self.checkpoint.plans.read(newest.batch + 1) is not None
        idle = newest.batch >= 0 and reads_nothing_new(wanted, last) and not begun
        if commit_of(wanted, newest, before) is not None and not idle:
            newest = self.commit(newest, wanted, offsets.read(f"offsets/{number}"), death)
        self.spark_commit = number
        return newest

    def commit(
        self, newest: Manifest, taken: SparkBatch | None, content: bytes, death: str | None
    ) -> Manifest:
        number = newest.batch + 1
        plan = self.planned(number, taken)
        self.die("plan", death)
        self.published[number] = content
        self.die("sinks", death)
        after = replace(a_manifest(number), spark_batch=plan.spark_batch or newest.spark_batch)
        self.checkpoint.open("test")
        try:
            self.checkpoint.commit(after)
        finally:
            self.checkpoint.close()
        self.die("manifest", death)
        return after

    def planned(self, number: int, taken: SparkBatch | None) -> Plan:
        known = self.checkpoint.plans.read(number)
        if known is not None:
            refuse_other(known.spark_batch, taken)
            return known
        plan = replace(a_plan(number), spark_batch=taken)
        self.checkpoint.plans.write(plan)
        return plan

    def die(self, here: str, death: str | None) -> None:
        if here == death:
            raise Death


runs = st.lists(st.tuples(st.integers(0, 3), st.sampled_from(DEATHS), st.booleans()), min_size=1, max_size=8)


@given(runs, st.lists(st.booleans(), min_size=1))
def test_idle_batches_leave_gaps_and_no_row_is_lost_or_taken_twice(
    steps: list[tuple[int, str | None, bool]], rows: list[bool]
) -> None:
    world = World(rows=itertools.cycle(rows))
    for batches, death, settles in [*steps, (1, None, False)]:
        try:
            world.run(batches, death, settles)
        except Death:
            continue
    newest = world.start()
    offsets = world.checkpoint.spark_log.store
    inputs = [offsets.read(f"offsets/{n}").split(b"\n")[2] for n in range(world.spark_commit + 1)]
    taken = [
        content.split(b"\n")[2] for _, content in sorted(world.published.items()) if content != b"settled"
    ]
    assert list(dict.fromkeys(taken)) == list(dict.fromkeys(inputs))
    assert len(taken) <= world.made + 1
    assert sorted(world.published) == list(range(newest.batch + 1))


@given(runs)
def test_each_batch_of_spark_is_in_exactly_one_commit(steps: list[tuple[int, str | None, bool]]) -> None:
    world = World()
    for batches, death, settles in [*steps, (1, None, False)]:
        try:
            world.run(batches, death, settles)
        except Death:
            continue
    newest = world.start()
    offsets = world.checkpoint.spark_log.store
    taken = [content for _, content in sorted(world.published.items()) if content != b"settled"]
    assert taken == [offsets.read(f"offsets/{number}") for number in range(world.spark_commit + 1)]
    assert sorted(world.published) == list(range(newest.batch + 1))
    assert newest.spark_batch.number == world.spark_commit
    assert unfinished_settling(newest, world.checkpoint.plans) is None


@given(runs)
def test_a_log_of_spark_that_begins_again_is_always_refused(
    steps: list[tuple[int, str | None, bool]],
) -> None:
    world = World()
    for batches, death, settles in [*steps, (1, None, False)]:
        try:
            world.run(batches, death, settles)
        except Death:
            continue
    newest = world.start()
    offsets = world.checkpoint.spark_log.store
    for path in offsets.list():
        offsets.delete(path)
    world.spark_commit = -1
    with pytest.raises(StateError, match="CHECKPOINT_SPARK"):
        world.take(newest, None)
