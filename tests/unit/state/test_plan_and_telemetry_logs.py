from __future__ import annotations

import numpy as np
import pytest
from tests.unit.state.samples import a_plan, alter, flipped

from tidegate.errors import StateError
from tidegate.state.plan_log import PlanLog
from tidegate.state.store.store import Store
from tidegate.state.telemetry_log import TelemetryLog

PATH = "plans/0000000012.json"


def test_a_plan_reads_back_equal(store: Store) -> None:
    PlanLog(store).write(a_plan(12))
    assert PlanLog(store).read(12) == a_plan(12)
    assert store.list() == [PATH]


def test_a_batch_that_was_never_tried_has_no_plan(store: Store) -> None:
    assert PlanLog(store).read(12) is None


def test_the_same_plan_may_be_written_again_and_another_may_not(store: Store) -> None:
    log = PlanLog(store)
    log.write(a_plan(12))
    log.write(a_plan(12))
    with pytest.raises(StateError, match=r"CHECKPOINT_PLAN_CONFLICT.*Batch 12 .*plans/0000000012\.json"):
        log.write(a_plan(12, now_us=100))
    assert log.read(12) == a_plan(12)


@pytest.mark.parametrize("damage", ["flip", "truncate"])
def test_a_damaged_plan_is_neither_read_nor_replaced(store: Store, damage: str) -> None:
    log = PlanLog(store)
    log.write(a_plan(12))
    data = store.read(PATH)
    alter(store, PATH, flipped(data, 60) if damage == "flip" else data[:-1])
    with pytest.raises(StateError, match=PATH):
        log.read(12)
    with pytest.raises(StateError, match=PATH):
        log.write(a_plan(12))


def test_plans_of_done_batches_are_purged(store: Store) -> None:
    log = PlanLog(store)
    for batch in (8, 9, 10, 11):
        log.write(a_plan(batch))
    log.purge(before=10)
    assert [log.read(b) is not None for b in (8, 9, 10, 11)] == [False, False, True, True]


def test_telemetry_reads_back_and_a_replay_replaces_it(store: Store) -> None:
    log = TelemetryLog(store)
    log.write(3, {"rows": 1})
    log.write(3, [{"rows": 2, "per_side": (1, 1)}, {"rows": 0}])
    assert log.read(3) == [{"rows": 2, "per_side": [1, 1]}, {"rows": 0}]
    assert log.read(4) is None


def test_numpy_numbers_become_plain_and_what_is_not_finite_becomes_null(store: Store) -> None:
    log = TelemetryLog(store)
    log.write(1, {"n": np.int64(3), "x": np.float64("nan"), "y": float("inf"), "a": np.array([1.5, np.nan])})
    assert log.read(1) == {"n": 3, "x": None, "y": None, "a": [1.5, None]}


def test_damaged_telemetry_is_found(store: Store) -> None:
    log = TelemetryLog(store)
    log.write(1, {"rows": 1})
    alter(store, "telemetry/0000000001.json", b"{}")
    with pytest.raises(StateError, match=r"CHECKPOINT_FILE_DAMAGED.*telemetry/0000000001\.json"):
        log.read(1)


@pytest.mark.parametrize(("keep", "left"), [(2, [3, 10]), (0, []), (9, [1, 2, 3, 10])])
def test_only_the_newest_telemetry_is_kept(store: Store, keep: int, left: list[int]) -> None:
    log = TelemetryLog(store)
    for batch in (1, 2, 3, 10):
        log.write(batch, {"b": batch})
    log.purge(keep)
    assert log.batches() == left
