"""What a batch takes without a goal: as much as its largest task has room for, whatever the input is like."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.control.batch_size import CONTROL, LEAST, MOST, factor, learn
from tidegate.model.reports import TaskMemory

MB = 1 << 20
ROOM = 64 * MB


def task(received_mb: float, peak_mb: float = 300) -> TaskMemory:
    return TaskMemory(round(received_mb * MB), round(peak_mb * MB), ROOM)


def after(now: float, taken: float, *tasks: TaskMemory) -> float:
    return factor({CONTROL: learn({CONTROL: {"factor": now}}, taken, tasks)})


def test_a_new_query_begins_with_the_first_amount() -> None:
    assert factor({}) == 1.0


def test_the_largest_task_decides() -> None:
    assert after(1.0, 1.0, task(16), task(192), task(64)) == 0.5


def test_a_batch_that_left_room_is_followed_by_a_larger_one() -> None:
    assert after(1.0, 1.0, task(48)) == 2.0


def test_growth_is_bounded_from_batch_to_batch() -> None:
    assert after(1.0, 1.0, task(1)) == 4.0


def test_a_batch_that_took_a_part_of_its_limits_is_scaled_to_a_full_one() -> None:
    assert after(1.0, 0.25, task(24)) == 1.0
    assert after(1.0, 0.25, task(48)) == 0.5


def test_next_to_nothing_teaches_nothing() -> None:
    assert after(3.0, 0.01, task(0.001)) == 3.0


def test_a_worker_that_takes_much_more_memory_than_its_rows_gets_fewer_of_them() -> None:
    assert after(1.0, 1.0, task(48, peak_mb=384 + 20 * 64)) == 0.5


def test_stored_rows_that_fill_the_memory_do_not_stop_the_query() -> None:
    now = 1.0
    for _ in range(10):
        now = after(now, 1.0, task(24 * now, peak_mb=10_000))
    assert now == 0.25
    assert after(0.1, 1.0, task(96, peak_mb=10_000)) == 0.1


def test_flows_without_tasks_that_hold_rows_take_more_and_more_up_to_a_bound() -> None:
    now = 1.0
    for _ in range(10):
        now = after(now, 1.0)
    assert now == MOST


def test_tasks_that_do_not_know_their_room_do_not_count() -> None:
    assert after(1.0, 1.0, TaskMemory(), task(96)) == 1.0


@given(
    st.floats(LEAST, MOST),
    st.floats(0, 2),
    st.lists(st.builds(TaskMemory, *[st.integers(0, 1 << 40)] * 2, st.integers(0, 1 << 30))),
)
def test_whatever_is_measured_the_factor_stays_in_its_bounds_and_rises_slowly(
    now: float, taken: float, tasks: list[TaskMemory]
) -> None:
    learnt = learn({CONTROL: {"factor": now}}, taken, tasks)
    assert json.loads(json.dumps(learnt)) == learnt
    assert LEAST <= learnt["factor"] <= min(MOST, 4.0 * now) + 1e-12


@pytest.mark.parametrize("expansion", [0.5, 1.0, 3.0, 40.0])
def test_it_settles_where_the_largest_task_receives_one_and_a_half_rooms(expansion: float) -> None:
    now = 1.0
    for _ in range(6):
        # Half of 64 MiB of files for each of two tasks, this many times as large in memory.
        now = after(now, 1.0, *[task(32 * expansion * now)] * 2)
    received = 32 * expansion * now
    assert received == pytest.approx(96, rel=0.01) or now in (LEAST, MOST)
