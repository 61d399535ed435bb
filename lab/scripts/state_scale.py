#!/usr/bin/env python3
"""Measures what a batch costs the driver for its state: by default 1,000 instances with 100,000 pieces.

    lab/scripts/state_scale.py [instances pieces]      (with the Python that has Tidegate)

No Spark, and no rows: tasks are made up, each with a piece per side and batch and the merges that the plan
asks for. Times are processor times of this process, medians over the batches; bytes are those of the files,
and of the closure that every task of the operator gets.
"""

from __future__ import annotations

import pickle
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from statistics import median
from time import process_time

from tidegate.control.outcome import manifest_after
from tidegate.control.planning import first_manifest, next_plan
from tidegate.control.watermarks import ClockSettings
from tidegate.driver.engine.piece_files import PieceFiles
from tidegate.driver.operators.protocol import state_order
from tidegate.join.within import Within
from tidegate.model.graph import OperatorTraits
from tidegate.model.manifest import Manifest
from tidegate.model.pieces import ByteRange, Piece
from tidegate.model.plan import Plan
from tidegate.model.reports import SideRows, StateChange, TaskReport
from tidegate.model.routing import together
from tidegate.state.checkpoint import Checkpoint

NAME, SECOND_US, SLOTS = "near", 1_000_000, 16
WITHIN = Within(-64 * SECOND_US, 64 * SECOND_US)
OPERATORS = {NAME: OperatorTraits(NAME, ("a", "b"), WITHIN, (False, False), (False, False))}
CLOCKS = {"a": ClockSettings(0, None), "b": ClockSettings(0, None)}
#: Partitions of an instance.
PARTITIONS = 4
ROUNDS = 9


class Measured:
    """Processor times and sizes by name."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, list[float]] = defaultdict(list)
        self.sizes: defaultdict[str, list[int]] = defaultdict(list)

    @contextmanager
    def timed(self, what: str) -> Iterator[None]:
        started = process_time()
        yield
        self.seconds[what].append(process_time() - started)

    def print(self) -> None:
        for what, values in self.seconds.items():
            print(f"  {what:26} {1e3 * median(values):9.2f} ms   (most {1e3 * max(values):.2f})")
        for what, counts in self.sizes.items():
            print(f"  {what:26} {median(counts) / 1e3:9.1f} kB   (most {max(counts) / 1e3:.1f})")


def main() -> None:
    instances, pieces = (int(one) for one in sys.argv[1:]) if sys.argv[1:] else (1_000, 100_000)
    table = tuple(p // PARTITIONS for p in range(instances * PARTITIONS))
    measured = Measured()
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Checkpoint(folder)
        checkpoint.open("benchmark")
        checkpoint.recover()
        first = first_manifest({}, list(CLOCKS), {NAME: together(0, instances, table)}, now_us=0)
        state = replace(first, batch=0, pieces=tuple(stored(instances, pieces)))
        checkpoint.commit(state)
        files = PieceFiles(checkpoint.store.url)
        for _ in range(ROUNDS):
            state = one_batch(state, checkpoint, files, measured)
        measured.sizes["snapshot"].append(checkpoint.store.size("manifests/0000000000.json"))
        files.close()
        checkpoint.close()
    print(f"{instances} instances, {len(state.pieces)} pieces")
    measured.print()


def one_batch(state: Manifest, checkpoint: Checkpoint, files: PieceFiles, measured: Measured) -> Manifest:
    """One batch of the driver; the manifest after it."""
    batch, timed = state.batch + 1, measured.timed
    with timed("plan: decide"):
        plan = next_plan(batch, state, OPERATORS, now_us=batch)
    with timed("plan: write"):
        checkpoint.plans.write(plan)
    with timed("order: make and write"):
        files.clear(batch)
        order = state_order(NAME, plan, state, checkpoint.store.url, "run")
        order = files.sent(NAME, order, state.pieces)
    with timed("order: pickle"):
        sent = pickle.dumps(order)
    with timed("one task: its order"):
        pickle.loads(sent).of(0)
    reports = [report(plan, instance) for instance in range(plan.routing[NAME].instances)]
    seen = dict.fromkeys(CLOCKS, batch * SECOND_US)
    with timed("manifest: decide"):
        after = manifest_after(state, plan, reports, seen, CLOCKS, OPERATORS)
    with timed("manifest: commit"):
        checkpoint.commit(after)
    measured.sizes["plan"].append(checkpoint.store.size(f"plans/{batch:010d}.json"))
    measured.sizes["manifest"].append(checkpoint.store.size(f"manifests/{batch:010d}.json"))
    measured.sizes["closure"].append(len(sent))
    return after


def stored(instances: int, count: int) -> list[Piece]:
    """Pieces of both sides in the slots of the window, as a run with merges leaves them."""
    return [
        piece(
            number % instances, number // instances % 2, number // instances // 2 % SLOTS, level=1, at=number
        )
        for number in range(count)
    ]


def piece(instance: int, side: int, slot: int, level: int, at: int, batch: int = 0) -> Piece:
    slot_us = WITHIN.slot_us(side)
    first = instance * PARTITIONS
    return Piece(
        operator=NAME,
        side=side,
        slot=slot,
        level=level,
        rows=400,
        first_us=slot * slot_us,
        last_us=(slot + 1) * slot_us - 1,
        batches=(batch, batch),
        keyless=False,
        partitions=tuple(range(first, first + PARTITIONS)),
        bounds=(0, 100, 100, 200, 200, 300, 300, 400),
        data=ByteRange(
            f"segments/{NAME}/{batch:010d}-{instance}-{at:012x}.arrow", side << 16, 40_000, f"{at:016x}"
        ),
    )


def report(plan: Plan, instance: int) -> TaskReport:
    """What a task of this instance reports: a piece of each side, and the groups that it merged."""
    groups = plan.rewrites.merges.get(NAME, {}).get(str(instance), ())
    new = [piece(instance, side, SLOTS, 0, plan.batch, plan.batch) for side in (0, 1)]
    new += [piece(instance, 0, 0, 2, plan.batch * 1_000 + i, plan.batch) for i, _ in enumerate(groups)]
    merged = tuple(name for group in groups for name in group)
    return TaskReport(
        NAME,
        instance,
        SideRows(seen_us=(plan.batch, plan.batch)),
        state=StateChange(added=tuple(new), merged=merged),
    )


if __name__ == "__main__":
    main()
