"""The join in whole periods: exact when nothing is skipped, costs as counted by hand, the same every time."""

from __future__ import annotations

import numpy as np
import pytest

from tidegate.control.actuators.adaptive import AdaptiveShedding
from tidegate.control.actuators.paper_rate import FixedRate, RateAdaptation
from tidegate.control.actuators.policy import RandomDropPolicy
from tidegate.join.sets.bitset_pairs import Bitsets
from tidegate.join.sets.inverted_lists import InvertedLists
from tidegate.join.sets.item_sets import item_sets
from tidegate.join.sets.pair_finders import PairFinder
from tidegate.join.sets.thresholds import Overlap
from tidegate_lab.simulate.join.basic_windows import Ranges, Windows
from tidegate_lab.simulate.join.counted_conditions import CountedOverlap
from tidegate_lab.simulate.join.machine import SECOND_US, Machine, paper_streams
from tidegate_lab.simulate.join.partial_processing import partial_processing
from tidegate_lab.simulate.join.period_join import (
    BY_LOT,
    PART_OF_IT,
    SKIPPED,
    PeriodJoin,
    PeriodMachine,
    PeriodTrace,
    stretches,
)
from tidegate_lab.simulate.join.stream_join import StreamJoin
from tidegate_lab.workloads.selective_join import Steps, Workload, draw

STEPS = (Steps(((30.0, 40.0),)), Steps(((30.0, 60.0),)))
WORKLOAD = Workload(skew=1.0)
WINDOWS = Windows((4 * SECOND_US, 7 * SECOND_US), SECOND_US)
LISTS, BITS = InvertedLists(Overlap(2)), Bitsets(Overlap(2))
UNLIMITED = PeriodMachine(float("inf"))


def joined(machine: PeriodMachine, matcher: PairFinder = LISTS, windows: Windows = WINDOWS) -> PeriodJoin:
    left, right = draw(WORKLOAD, STEPS)
    first, second = (item_sets(rows.bounds, rows.items, WORKLOAD.items) for rows in (left, right))
    return PeriodJoin((left.times_us, right.times_us), (first, second), windows, matcher, machine)


def everything(machine: PeriodMachine, matcher: PairFinder = LISTS) -> list[PeriodTrace]:
    return joined(machine, matcher).run(RandomDropPolicy(WINDOWS, FixedRate(1.0)), 10, 30)


@pytest.mark.parametrize("matcher", [LISTS, BITS])
def test_with_time_enough_every_pair_is_found_as_in_the_join_by_ticks(matcher: PairFinder) -> None:
    by_ticks = StreamJoin(paper_streams(WORKLOAD, STEPS), WINDOWS, CountedOverlap(2), Machine())
    trace = by_ticks.run(RandomDropPolicy(WINDOWS, FixedRate(1.0)), 30)
    found = [period.outputs for period in everything(UNLIMITED, matcher)]
    assert found == [trace.total("outputs", begin, begin + 5) for begin in (10, 15, 20, 25)]


def test_without_an_index_a_probe_costs_its_comparisons() -> None:
    by_ticks = StreamJoin(paper_streams(WORKLOAD, STEPS), WINDOWS, CountedOverlap(2), Machine())
    trace = by_ticks.run(RandomDropPolicy(WINDOWS, FixedRate(1.0)), 30)
    assert sum(period.cost for period in everything(UNLIMITED, BITS)) == trace.total("comparisons", 10)


def test_with_an_index_a_probe_costs_entries_and_a_look_up_per_item_and_basic_window() -> None:
    """Two left rows in two basic windows, probed by one right row with three items."""
    sets = (
        item_sets(np.array([0, 2, 4]), np.array([1, 2, 1, 9]), 10),
        item_sets(np.array([0, 3]), np.array([1, 2, 3]), 10),
    )
    times = (np.array([3, 8]) * SECOND_US, np.array([9]) * SECOND_US)
    windows = Windows((6 * SECOND_US, 0), 5 * SECOND_US)
    join = PeriodJoin(times, sets, windows, InvertedLists(Overlap(2)), PeriodMachine(1e9, lookup=10.0))
    (period,) = join.run(RandomDropPolicy(windows, FixedRate(1.0)), 5, 10)
    # Age 1 holds {1, 2}: two entries; age 0 holds {1, 9}: one entry. Three items, two basic windows, 10 each;
    # the left row of this period looks into a right window of no length.
    assert (period.cost, period.outputs) == (3 + 60, 1)


def test_what_does_not_fit_into_a_period_is_lost_and_counted() -> None:
    whole = everything(UNLIMITED)
    half = everything(PeriodMachine(whole[0].cost / 10))
    assert half[0].fetched < half[0].offered == whole[0].fetched
    assert half[0].outputs < whole[0].outputs
    assert half[0].cost <= whole[0].cost / 2 * 1.01


def test_rate_adaptation_comes_down_to_what_fits() -> None:
    whole = everything(UNLIMITED)
    machine = PeriodMachine(whole[0].cost / 20)
    periods = joined(machine).run(partial_processing(WINDOWS, RateAdaptation()), 10, 30)
    assert periods[-1].decision.windows[0].fraction < 0.5
    assert periods[-1].fetched > 0.8 * periods[-1].offered


def test_what_cannot_be_read_in_part_is_skipped_or_read_by_lot() -> None:
    """Without basic windows a row then reads nothing, or by lot all of its window: on average the budget."""
    windows = Windows(WINDOWS.lengths_us, 0)
    cost = {}
    for remainder in (PART_OF_IT, SKIPPED, BY_LOT):
        machine = PeriodMachine(float("inf"), lookup=0.0, remainder=remainder)
        periods = joined(machine, LISTS, windows).run(partial_processing(windows, FixedRate(0.3)), 10, 30)
        cost[remainder] = sum(period.cost for period in periods)
    assert cost[SKIPPED] == 0 < cost[PART_OF_IT]
    whole = sum(period.cost for period in everything(PeriodMachine(float("inf"), lookup=0.0)))
    assert cost[BY_LOT] == pytest.approx(0.3 * whole, rel=0.1)


def test_fully_processed_rows_teach_the_order() -> None:
    policy = AdaptiveShedding(WINDOWS, FixedRate(0.5))
    joined(UNLIMITED).run(policy, 10, 30)
    assert any(max(learnt["values"]) > 0 for learnt in policy.snapshot()["learnt"])


def test_the_same_settings_give_the_same_periods() -> None:
    one, again = (joined(UNLIMITED).run(AdaptiveShedding(WINDOWS, FixedRate(0.3)), 10, 30) for _ in range(2))
    assert one == again


def test_neighbouring_ages_are_read_in_one_go() -> None:
    chosen = Ranges(np.array([[6, 4, 2, 0]]), np.array([[8, 6, 2, 1]]))
    rows, starts, ends = stretches(chosen)
    assert (rows.tolist(), starts.tolist(), ends.tolist()) == ([0, 0], [4, 0], [8, 1])
    nothing = stretches(Ranges(np.zeros((3, 2), np.int64), np.zeros((3, 2), np.int64)))
    assert [part.size for part in nothing] == [0, 0, 0]
