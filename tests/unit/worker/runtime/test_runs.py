"""New rows as runs: sorted, cut by slot or made one, each with its own columns."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tidegate.route.targets import MEET, PROBE, STORE
from tidegate.worker.join.probing import Together
from tidegate.worker.runtime.layout import SideLayout
from tidegate.worker.runtime.runs import NewRun, in_slots, new_runs

TIMES = np.array([31, 5, 12, 5, 25, 12])
CODES = np.array([7, 9, 7, 2, 9, 9], np.uint64)
TABLE = pa.table({"l0": pa.array(np.arange(6)), "l1": pa.array([f"row {n}" for n in range(6)])})
LAYOUT = SideLayout(0, "a", ("n", "text"), ("l0", "l1"))


def runs(rows: list[int], slot_us: int, role: int = STORE | PROBE) -> list[NewRun]:
    return new_runs(TABLE, np.array(rows), (CODES, TIMES), 0, LAYOUT, slot_us, False, role)


def numbers(run: NewRun) -> list[int]:
    return [int(n) for n in run.column("n").to_pylist()]


def test_rows_are_sorted_by_code_and_time_and_cut_by_slot() -> None:
    (whole,) = runs([0, 1, 2, 3, 4, 5], 0)
    assert numbers(whole) == [3, 2, 0, 1, 5, 4]
    assert (whole.first_us, whole.last_us, list(whole.slices)) == (5, 31, [(0, 6)])
    parts = runs([0, 1, 2, 3, 4, 5], 10)
    assert [(part.slot, numbers(part)) for part in parts] == [(0, [3, 1]), (1, [2, 5]), (2, [4]), (3, [0])]
    assert parts[1].rows.column("text").to_pylist() == ["row 2", "row 5"]


def test_without_slots_all_rows_lie_in_one() -> None:
    (whole,) = runs([0, 4], 0)
    assert whole.slot == 0


def test_runs_made_one_are_stored_by_slot_as_if_they_had_never_been_apart() -> None:
    both = [*runs([0, 3, 5], 0), *runs([1, 2, 4], 0, PROBE | STORE | MEET)]
    parts = in_slots(both, 10)
    expected = runs([0, 1, 2, 3, 4, 5], 10)
    assert [numbers(part) for part in parts] == [numbers(part) for part in expected]
    assert [part.codes.tolist() for part in parts] == [part.codes.tolist() for part in expected]


@pytest.mark.parametrize("counted", [False, True])
def test_what_rows_made_one_were_compared_with_is_told_to_each_of_their_runs(counted: bool) -> None:
    first, second, other = *runs([0, 3, 5], 0), *runs([1, 2, 4], 0), *runs([1], 0)
    other.side = 1
    together = Together()
    looking = together.of_sides([first, second, other])
    assert looking[1] is other
    assert together.of_sides([first, second])[0] is looking[0]
    assert numbers(looking[0]) == [3, 2, 0, 1, 5, 4]
    looking[0].pairs[:] = 10 * np.array(numbers(looking[0])) * counted
    together.tell_pairs()
    for run in (first, second):
        assert run.pairs.tolist() == [10 * n * counted for n in numbers(run)]
