"""Costs that were learnt wrongly, on purpose: shedding that does not shorten batches is taken back."""

from __future__ import annotations

import numpy as np
import pytest

from tidegate.control.goal.cost_model import Effort
from tidegate.control.goal.goal_values import BatchSeen, GoalSettings, warnings
from tidegate.control.goal.level_controller import LevelController
from tidegate.control.goal.load_model import SOURCES, Took
from tidegate.control.goal.shed_options import rate_option

BUDGET = 1.0
ROWS, PAIRS = 1e4, 1e6
JOIN = [rate_option("join", {"pairs": 1.0}, 0.7)]
AHEAD = {"join": Effort(ROWS, PAIRS, ROWS), SOURCES: Effort(ROWS)}


class Machine:
    """Batches with a fixed cost and a cost of all pairs, in seconds; `measured`: tasks report the latter."""

    def __init__(self, measured: bool) -> None:
        self.goal = LevelController(GoalSettings(BUDGET, 2.0, trigger_seconds=1.0))
        self.measured, self.random = measured, np.random.default_rng(7)
        self.level, self.levels, self.seconds = 1.0, [1.0], [0.0]

    def run(self, fixed: float, pairs: float, batches: int, rows: float = 1.0, cold: bool = False) -> None:
        for _ in range(batches):
            noise = 1 + 0.03 * self.random.standard_normal(2)
            work = rows**2 * pairs * self.level * noise[0]
            busy = fixed * noise[1] + work
            did = {
                "join": Effort(rows * ROWS, rows**2 * self.level * PAIRS, rows * self.level * ROWS),
                SOURCES: Effort(rows * ROWS),
            }
            took = {"join": Took(work)} if self.measured else {}
            seen = BatchSeen(busy, did, took, teaches=not cold, cold=cold)
            ahead = {
                "join": Effort(rows * ROWS, rows**2 * PAIRS, rows * ROWS),
                SOURCES: Effort(rows * ROWS),
            }
            self.decided = self.goal.adapt(seen, ahead, JOIN)
            self.level = self.decided.levels["join"]
            self.levels.append(self.level)
            self.seconds.append(busy)


@pytest.mark.parametrize("measured", [True, False])
def test_a_fixed_cost_that_was_overestimated_ends_shedding_within_a_few_batches(measured: bool) -> None:
    # An earlier run, or a slow phase, had batches of 1.8 s; now they take half of their time in full.
    machine = Machine(measured)
    machine.run(1.3, 0.5, 20)
    machine.run(0.3, 0.2, 8)
    assert machine.levels[-1] == 1
    assert max(machine.seconds[-7:]) < 0.6


@pytest.mark.parametrize("measured", [True, False])
def test_pairs_that_cost_next_to_nothing_are_not_skipped_however_long_batches_are(measured: bool) -> None:
    machine = Machine(measured)
    machine.run(1.3, 0.02, 40)
    assert min(machine.levels[20:]) == 1
    # Said with the number, after the first batch already: as fixed, or as what no shedding shortens.
    assert machine.decided.deepest == pytest.approx(1.3, rel=0.05)
    said = warnings(machine.goal.settings, machine.decided)
    assert said[0]["code"] in ("GOAL_BELOW_OVERHEAD", "GOAL_UNREACHABLE")
    first = Machine(measured)
    first.run(1.3, 0.02, 1 if measured else 6)
    assert warnings(first.goal.settings, first.decided)


@pytest.mark.parametrize("measured", [True, False])
def test_four_times_the_rows_are_shed_as_far_as_that_helps_and_no_further(measured: bool) -> None:
    # With four times the rows there are sixteen times the pairs, of which a few hundredths suffice.
    machine = Machine(measured)
    machine.run(0.4, 0.02, 20)
    assert set(machine.levels) == {1.0}
    machine.run(0.4, 0.02, 40, rows=4.0)
    assert min(machine.levels) == 1, "0.7 s of 1 s"
    machine.run(0.4, 0.06, 40, rows=4.0)
    settled = machine.seconds[-20:]
    assert 0.8 < np.median(settled) <= 1
    assert min(machine.levels[-20:]) > 0.4


def test_a_cold_process_sheds_nothing_because_it_is_cold() -> None:
    machine = Machine(measured=True)
    for fixed in (6.0, 4.0, 2.5, 1.8, 1.4, 1.2):
        machine.run(fixed, 0.2, 1, cold=True)
    machine.run(0.5, 0.2, 20)
    assert set(machine.levels) == {1.0}


@pytest.mark.parametrize("measured", [True, False])
def test_a_cold_process_with_far_too_much_work_sheds_from_the_third_batch_on(measured: bool) -> None:
    machine = Machine(measured)
    machine.run(4.0, 0.5, 1, rows=0.1, cold=True)
    machine.run(3.0, 0.5, 2, rows=6.0, cold=True)
    assert machine.seconds[2] > 20
    assert machine.seconds[3] < 6
