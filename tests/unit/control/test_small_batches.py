"""A batch runs in one task if it is known to be small."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tidegate.control.balance.rerouting import first_routing
from tidegate.control.planning import first_manifest
from tidegate.control.small_batches import (
    CONTROL,
    INPUT_BYTES_MAX,
    INSTANCES_MAX,
    RUN_SECONDS_MAX,
    STATE_BYTES_MAX,
    in_one_task,
    learn,
)
from tidegate.model.manifest import Manifest
from tidegate.model.pieces import ByteRange, Piece
from tidegate.route.assignment import Assignment

ROUTING = {"join1": first_routing([Assignment(2, (0, 1) * 4)])}


def after(run_seconds: float | None) -> Manifest:
    manifest = first_manifest({}, ["a"], ROUTING, 0)
    small = learn(manifest, run_seconds)
    return manifest if small is None else replace(manifest, control={CONTROL: small})


def stored(manifest: Manifest, size: int) -> Manifest:
    data = ByteRange("join1/1-0-x.arrow", 0, size, "0")
    return replace(manifest, pieces=(Piece("join1", 0, 0, 0, 1, 0, 0, (0, 0), False, (0,), (0, 1), data),))


def test_a_small_batch_after_a_quick_one_runs_in_one_task() -> None:
    assert in_one_task(after(RUN_SECONDS_MAX), ROUTING, INPUT_BYTES_MAX)


def test_before_anything_was_measured_batches_are_shuffled() -> None:
    assert not in_one_task(after(None), ROUTING, 0)


@pytest.mark.parametrize("size", [None, INPUT_BYTES_MAX + 1])
def test_input_that_is_large_or_not_known_is_shuffled(size: int | None) -> None:
    assert not in_one_task(after(0.1), ROUTING, size)


def test_after_a_batch_that_ran_long_rows_are_shuffled_until_one_was_quick() -> None:
    slow = after(RUN_SECONDS_MAX * 1.01)
    assert not in_one_task(slow, ROUTING, 0)
    without_rows = learn(slow, None)
    assert without_rows == slow.control[CONTROL]
    assert in_one_task(replace(slow, control={CONTROL: learn(slow, 0.1)}), ROUTING, 0)


def test_much_state_is_read_by_several_tasks() -> None:
    assert in_one_task(stored(after(0.1), STATE_BYTES_MAX), ROUTING, 0)
    assert not in_one_task(stored(after(0.1), STATE_BYTES_MAX + 1), ROUTING, 0)


def test_many_instances_are_run_by_several_tasks() -> None:
    many = {"join1": first_routing([Assignment(INSTANCES_MAX + 1, tuple(range(INSTANCES_MAX + 1)))])}
    assert not in_one_task(after(0.1), many, 0)
