from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tidegate.control.goal.control_state import ControlState
from tidegate.control.goal.control_tuning import ControlTuning, EaseTuning
from tidegate.control.goal.cost_model import Effort
from tidegate.control.goal.goal_values import BatchSeen, Decided, GoalSettings, warnings
from tidegate.control.goal.hysteresis import Hysteresis
from tidegate.control.goal.level_controller import LevelController
from tidegate.control.goal.load_model import SOURCES, Took
from tidegate.control.goal.shed_options import (
    ShedOption,
    rate_option,
    sample_option,
    shut_option,
    windows_option,
)
from tidegate.errors import FlowError
from tidegate.model.codec import from_plain, to_plain

#: Seconds per row, comparison and output of each operator, and of a batch that does nothing.
COSTS = {"join": np.array([1e-5, 1e-6, 1e-5, 0]), "window": np.array([2e-5, 8e-5, 1e-5, 0])}
OVERHEAD = 0.2
OFFERS = [
    rate_option("join", {"pairs": 1.0}, 0.7),
    windows_option("window", ["counts"], 9, {"window": 0.8}, ["window"]),
]


class Machine:
    """Batches of a join and a window that take what they take."""

    def __init__(self, offers: list[ShedOption] = OFFERS, **settings: Any) -> None:
        self.settings = GoalSettings(1.0, **settings)
        self.goal, self.offers = LevelController(self.settings), offers
        self.levels = {offer.point: offer.nothing for offer in offers}
        self.keep_share = 1.0
        self.seconds: list[float] = []

    @staticmethod
    def ahead(rate: float) -> dict[str, Effort]:
        """At a rate of 1 the join takes 0.3 seconds, and so does the window."""
        return {
            "join": Effort(3e3 * rate, 2e5 * rate, 7e3 * rate),
            "window": Effort(3e3 * rate, 3e3 * rate, 10 * rate),
        }

    def seen(self, rate: float, overhead: float = OVERHEAD) -> BatchSeen:
        """One batch at the levels that were decided."""
        did = {
            name: Effort(*(self.keep_share * effort.parts).tolist())
            for name, effort in self.ahead(rate).items()
        }
        for offer in self.offers:
            for name, kept in offer.kept_at(self.levels[offer.point]).items():
                did[name] = Effort(*(did[name].parts * kept).tolist())
        took = {name: Took(float(COSTS[name] @ effort.parts)) for name, effort in did.items()}
        return BatchSeen(overhead + sum(one.seconds for one in took.values()), did, took)

    def run(self, rate: float, batches: int = 1, overhead: float = OVERHEAD, cold: bool = False) -> Decided:
        for _ in range(batches):
            batch = self.seen(rate, overhead)
            self.seconds.append(batch.busy_seconds)
            decided = self.goal.adapt(
                replace(batch, teaches=not cold, cold=cold), self.ahead(rate), self.offers
            )
            self.levels, self.keep_share = dict(decided.levels), decided.keep_share
        return decided


def test_nothing_is_left_out_while_there_is_time() -> None:
    decided = Machine().run(0.9, 20)
    assert decided.levels == {"join": 1.0, "window": 0.0}
    assert not any(decided.lost.values())


def test_the_batch_after_a_rush_begins_is_in_time_and_uses_its_time() -> None:
    machine = Machine()
    machine.run(0.9, 15)
    machine.run(2.5, 15)
    assert machine.seconds[15] > 1.4
    assert all(0.75 <= took <= 1.03 for took in machine.seconds[16:])


def test_what_was_predicted_is_what_it_took() -> None:
    machine = Machine()
    machine.run(0.9, 5)
    machine.run(1.5, 5)
    decided = machine.run(2.5, 15)
    assert decided.predicted == pytest.approx(decided.took, rel=0.03)


def test_everything_is_done_again_when_the_rush_is_over() -> None:
    machine = Machine()
    machine.run(2.5, 15)
    assert not any(machine.run(0.9, 6).lost.values())


def test_levels_rest_on_steady_input() -> None:
    machine = Machine()
    machine.run(2.5, 25)
    before = dict(machine.levels)
    machine.run(2.5, 20)
    assert machine.levels == before


def test_the_output_that_counts_more_loses_less() -> None:
    plain, joins, counts = (
        Machine(weights=weights).run(2.5, 30).lost for weights in ({}, {"pairs": 9.0}, {"counts": 9.0})
    )
    assert joins["pairs"] <= plain["pairs"] < counts["pairs"] or plain["pairs"] == joins["pairs"] == 0
    assert counts["counts"] <= plain["counts"] <= joins["counts"]
    assert joins["counts"] > counts["counts"]


def test_windows_are_estimated_as_far_as_that_is_missed_least() -> None:
    offers = [rate_option("join", {"pairs": 1.0}, 0.7), sample_option("window", {"counts": 1.0})]
    calm = Machine(offers).run(0.9, 20)
    assert calm.levels == {"join": 1.0, "window": 1.0}
    pairs, counts = (Machine(offers, weights={name: 9.0}) for name in ("pairs", "counts"))
    few, many = (machine.run(2.5, 30).levels["window"] for machine in (pairs, counts))
    assert few < 0.5 < many
    for machine in (pairs, counts):
        assert all(took <= 1 for took in machine.seconds[-20:])
    bounded = Machine(offers, weights={"pairs": 9.0}, max_loss={"counts": 0.1}).run(2.5, 30)
    assert bounded.levels["window"] == pytest.approx(0.9)
    assert bounded.levels["join"] < 1


def test_no_output_loses_more_than_it_may_and_what_is_missing_is_said() -> None:
    machine = Machine(max_loss={"pairs": 0.1, "counts": 0.2})
    decided = machine.run(2.5, 20)
    assert decided.lost["pairs"] <= 0.1 + 1e-9
    assert decided.lost["counts"] <= 0.2 + 1e-9
    assert decided.short > 0.2
    assert decided.keep_share == 1, "that would lose more than they may"
    said = " ".join(one["message"] for one in warnings(machine.settings, decided))
    assert "Shedding is not enough" in said
    assert "pairs: 10.0%" in said


def test_a_goal_below_the_fixed_cost_of_a_batch_is_said_and_some_work_is_still_done() -> None:
    machine = Machine()
    decided = machine.run(1.0, 20, overhead=1.3)
    assert decided.fixed > 1
    assert decided.keep_share == 1, "fewer rows would be late just the same"
    assert 0 < decided.levels["join"] < 1
    said = " ".join(one["message"] for one in warnings(machine.settings, decided))
    assert "the overhead alone exceeds" in said


def test_a_goal_far_below_overhead_leaves_out_what_it_can_whatever_noise_makes_of_its_time() -> None:
    goal, join = LevelController(GoalSettings(0.02)), OFFERS[:1]
    level, ahead = 1.0, {"join": Effort(600, 6e4, 6e3)}
    # The work of the join is a few milliseconds that have nothing to do with what is left out of it.
    for milliseconds in (3.2, 5.0, 4.1, 3.6, 4.4, 2.9, 5.2):
        did = {"join": Effort(600, level * 6e4, level * 6e3)}
        seen = BatchSeen(0.5 + milliseconds / 1e3, did, {"join": Took(milliseconds / 1e3)})
        level = goal.adapt(seen, ahead, join).levels["join"]
        assert level < 0.2


def test_what_is_predicted_before_anything_was_learnt_is_no_error() -> None:
    machine = Machine()
    assert machine.run(0.9, cold=True).predicted is None
    assert machine.run(0.9).predicted is None
    assert machine.run(0.9).predicted == pytest.approx(machine.seconds[-1], rel=0.1)


def test_a_batch_that_its_source_limits_is_expected_to_be_as_much_shorter() -> None:
    machine = Machine()
    decided = machine.run(0.9, 5)
    machine.goal.expect(decided, 0.5)
    assert machine.run(0.45).predicted == pytest.approx(machine.seconds[-1], rel=0.1)


def test_only_the_freshest_rows_are_let_in_when_everything_else_left_out_is_not_enough() -> None:
    machine = Machine()
    machine.run(0.9, 10)
    machine.run(15.0, 3)
    assert machine.keep_share < 1, "after the second batch that was too long whatever was left out"
    shares = []
    for _ in range(20):
        decided = machine.run(15.0)
        shares.append(decided.keep_share)
    assert all(took <= 1 for took in machine.seconds[-18:])
    assert decided.predicted == pytest.approx(machine.seconds[-1], rel=0.05)
    assert 0.2 < min(shares) <= max(shares) < 0.8
    assert np.ptp(shares[-10:]) < 0.05
    said = " ".join(one["message"] for one in warnings(machine.settings, decided))
    assert f"The oldest {1 - decided.keep_share:.0%} of its rows are dropped" in said
    cold = machine.run(15.0, cold=True)
    assert cold.keep_share == 1, "how long it took says nothing"
    assert machine.run(15.0).keep_share < 1
    assert machine.run(0.9).keep_share == 1, "it fits again"


def test_no_row_goes_in_ordinary_overload_whatever_happens_to_single_batches() -> None:
    machine = Machine(latency_seconds=2.0, trigger_seconds=1.0)
    for batch in range(40):
        # Now and then a batch takes three times as long, and the next one has all the rows that came.
        slow = batch % 9 == 8
        machine.run(2.5, overhead=3.0 if slow else OVERHEAD)
        assert machine.keep_share == 1
        if slow:
            machine.run(7.5)
            assert machine.keep_share == 1


def test_rows_go_only_where_they_may_and_where_that_helps() -> None:
    # The window alone is too much, and may not lose rows.
    assert Machine(freshest=frozenset({"join"})).run(15.0, 20).keep_share == 1
    assert Machine(freshest=frozenset()).run(15.0, 20).keep_share == 1
    both = Machine(freshest=frozenset({"join", "window"})).run(15.0, 20).keep_share
    assert both == pytest.approx(Machine().run(15.0, 20).keep_share)


def test_a_slow_sink_is_made_up_for() -> None:
    machine = Machine()
    machine.run(1.2, 10)
    machine.run(1.2, 15, overhead=0.6)
    assert all(took <= 1 for took in machine.seconds[-10:])


def test_batches_without_rows_tell_what_a_batch_takes_before_its_rows() -> None:
    efforts = {"join": Effort(3e3, 2e5, 7e3), SOURCES: Effort(3e3)}
    seen = BatchSeen(0.9, efforts, {"join": Took(0.1)})
    ahead = {name: Effort(*(2 * effort.parts).tolist()) for name, effort in efforts.items()}

    def planned(*empty: float) -> float:
        goal = LevelController(GoalSettings(1.0))
        for busy_seconds in empty:
            goal.adapt(BatchSeen(busy_seconds, {}, teaches=False, empty=True), {}, OFFERS[:1])
        return goal.adapt(seen, ahead, OFFERS[:1]).full

    # Without them, a tenth of the rest is attributed to rows.
    assert planned() == pytest.approx(1.08, abs=0.02)
    assert planned(0.7, 0.6, 5.0) == pytest.approx(1.0, abs=0.1)


def test_cold_batches_teach_nothing() -> None:
    machine = Machine()
    machine.run(0.9, 5)
    before = replace(machine.goal.state.model)
    decided = machine.run(0.9, 3, overhead=5.0, cold=True)
    assert replace(machine.goal.state.model) == before
    assert not any(decided.lost.values())


def test_an_output_is_shut_off_only_when_nothing_else_is_enough() -> None:
    offers = [
        windows_option("window", ["counts"], 3, {"window": 1.0}, ["window"]),
        shut_option("pairs", ["join"]),
    ]
    assert Machine(offers).run(1.3, 20).levels["pairs"] == 0
    rush = Machine(offers).run(3.0, 20)
    assert rush.levels["pairs"] == 1
    assert rush.lost["pairs"] == 1
    kept = Machine(offers, max_loss={"pairs": 0.5}).run(3.0, 20)
    assert kept.levels["pairs"] == 0
    assert kept.short > 0


def test_after_a_long_batch_the_next_is_shorter_if_that_saves_its_rows_and_only_then() -> None:
    for took, shorter in ((1.4, True), (1.8, False)):
        machine = Machine(latency_seconds=2.0, trigger_seconds=1.0)
        machine.run(1.5, 30)
        levels = dict(machine.levels)
        usual = machine.run(1.5).planned
        decided = machine.run(1.5, overhead=OVERHEAD + took - machine.seconds[-1])
        assert (decided.planned < 0.7 * usual) == shorter
        machine.run(1.5)
        assert machine.levels == levels, "that was for once"


def test_rows_that_may_come_once_are_prepared_for_and_change_nothing_that_lasts() -> None:
    machine = Machine(latency_seconds=2.0, trigger_seconds=1.0)
    machine.run(1.5, 30)
    resting = dict(machine.goal.state.lasting)
    batch, ahead = machine.seen(1.5), machine.ahead(1.8)
    once = machine.goal.adapt(replace(batch, lasting=1.5 / 1.8), ahead, machine.offers)
    assert machine.goal.state.lasting == resting
    assert once.planned <= 1
    assert once.levels != resting
    machine.goal.adapt(batch, ahead, machine.offers)
    assert machine.goal.state.lasting != resting


def test_a_restored_controller_decides_as_the_one_that_ran_on() -> None:
    machine = Machine()
    machine.run(0.9, 5)
    machine.run(2.5, 9)
    other = Machine()
    other.goal = LevelController(
        machine.settings, from_plain(ControlState, json.loads(json.dumps(to_plain(machine.goal.state))))
    )
    other.levels = dict(machine.levels)
    assert machine.run(1.7, 5) == other.run(1.7, 5)
    assert machine.goal.state == other.goal.state


def test_one_batch_that_uses_more_does_not_begin_the_wait_for_easing_anew() -> None:
    def wait(used: list[float]) -> int:
        hysteresis = Hysteresis()
        return next(number for number, one in enumerate(used) if hysteresis.eases(one))

    steady = [0.955] * 40
    assert wait([*steady[:3], 1.0, *steady]) == wait(steady) + 1
    # But where nothing is spared on the whole, nothing is eased.
    with pytest.raises(StopIteration):
        wait([0.98, 1.02] * 20)


def test_each_easing_that_is_taken_back_makes_the_next_one_wait_longer() -> None:
    hysteresis, waits = Hysteresis(), []
    for _ in range(5):
        waits.append(next(n for n in range(1, 100) if hysteresis.eases(0.89)))
        hysteresis.deepened()
    assert waits == [2, 4, 7, 14, 27]
    assert next(n for n in range(1, 100) if hysteresis.eases(0.3)) == 2, "the burst is over"


def test_a_quiet_time_makes_easing_as_easy_as_at_first() -> None:
    hysteresis = Hysteresis(needed=16.0)
    for _ in range(51):
        assert not hysteresis.eases(1.0)
    assert next(n for n in range(1, 100) if hysteresis.eases(0.89)) == 2


def test_another_mix_is_taken_at_once_only_if_it_gains_much() -> None:
    def wait(gain: float) -> int:
        hysteresis = Hysteresis()
        return next(n for n in range(1, 100) if hysteresis.remixes(gain))

    assert (wait(0.2), wait(0.05)) == (1, 8)


@pytest.mark.parametrize(
    "wrong", [lambda: GoalSettings(0.0), lambda: ControlTuning(ease=EaseTuning(credit=0.0))]
)
def test_settings_that_make_no_sense_are_refused(wrong: Any) -> None:
    with pytest.raises(FlowError, match="INTERNAL_TUNING_INVALID"):
        wrong()
