"""The simulated join: exact when nothing is skipped, a subset otherwise, the same every time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tidegate.control.actuators.adaptive import AdaptiveSettings, AdaptiveShedding
from tidegate.control.actuators.paper_rate import FixedRate, RateAdaptation
from tidegate.control.actuators.policy import Policy, RandomDropPolicy, WindowReductionPolicy
from tidegate.control.actuators.selective import SelectivePolicy
from tidegate.errors import FlowError
from tidegate_lab.simulate.join.basic_windows import Windows
from tidegate_lab.simulate.join.counted_conditions import Condition, CountedOverlap, Equality, codes
from tidegate_lab.simulate.join.machine import SECOND_US, Machine, Stream, paper_streams
from tidegate_lab.simulate.join.partial_processing import partial_processing
from tidegate_lab.simulate.join.rate_model import RateModel
from tidegate_lab.simulate.join.stream_join import StreamJoin
from tidegate_lab.simulate.join.trace import COUNTED, Trace
from tidegate_lab.workloads.selective_join import Steps, Workload, draw, single_values

SECONDS = 20
RATES = (Steps(((SECONDS, 40.0),)), Steps(((SECONDS, 60.0),)))
WINDOWS = Windows((4 * SECOND_US, 7 * SECOND_US), SECOND_US)
SETS = Workload(skew=1.0)
VALUES = single_values(skew=1.2, shift_seconds=Steps(((1.0, 0.0),)))
#: A third of what joining everything takes.
TICK_US = SECOND_US // 5
TIGHT = Machine(comparisons_per_second=40 * 60 * (4 + 7) / 3, tick_us=TICK_US)


def run(
    policy: Policy,
    machine: Machine | None = None,
    windows: Windows = WINDOWS,
    workload: Workload = SETS,
    condition: Condition | None = None,
) -> Trace:
    streams = paper_streams(workload, RATES)
    return StreamJoin(
        streams, windows, condition or CountedOverlap(2), machine or Machine(tick_us=TICK_US)
    ).run(policy, SECONDS)


def naive_pairs(workload: Workload, windows: Windows, at_least: int) -> int:
    left, right = draw(workload, RATES)
    sets = [
        [frozenset(rows.items[a:b].tolist()) for a, b in zip(rows.bounds, rows.bounds[1:], strict=False)]
        for rows in (left, right)
    ]
    found = 0
    for place, time in enumerate(left.times_us):
        apart = time - right.times_us
        near = (apart <= windows.lengths_us[1]) & (-apart <= windows.lengths_us[0])
        found += sum(len(sets[0][place] & sets[1][other]) >= at_least for other in np.flatnonzero(near))
    return found


def policies(windows: Windows = WINDOWS) -> dict[str, Policy]:
    return {
        "random drop": RandomDropPolicy(windows, RateAdaptation()),
        "window reduction": WindowReductionPolicy(windows, RateAdaptation()),
        "partial": partial_processing(windows, RateAdaptation()),
        "partial by model": partial_processing(windows, RateModel()),
        "time correlation": AdaptiveShedding(windows, RateAdaptation(), AdaptiveSettings(direction=False)),
        "direction": AdaptiveShedding(windows, RateAdaptation()),
        "selective": SelectivePolicy(windows, RateAdaptation()),
        "selective by model": SelectivePolicy(windows, RateModel()),
    }


POLICIES = list(policies())


@pytest.mark.parametrize("policy", POLICIES)
def test_with_time_enough_every_policy_finds_every_pair(policy: str) -> None:
    trace = run(policies()[policy])
    assert trace.total("outputs") == naive_pairs(SETS, WINDOWS, 2)
    assert trace.total("dropped") == 0


@pytest.mark.parametrize("windows", [Windows((4 * SECOND_US, 0), SECOND_US), Windows((0, 3 * SECOND_US), 0)])
def test_a_window_on_one_side_only_finds_every_pair(windows: Windows) -> None:
    assert run(RandomDropPolicy(windows, FixedRate(1.0)), windows=windows).total("outputs") == naive_pairs(
        SETS, windows, 2
    )


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    "windows",
    [Windows((4 * SECOND_US, 0), SECOND_US), Windows((4 * SECOND_US, 7 * SECOND_US), 0)],
    ids=["one window", "no basic windows"],
)
def test_every_policy_sheds_on_one_window_and_without_basic_windows(policy: str, windows: Windows) -> None:
    full = run(RandomDropPolicy(windows, FixedRate(1.0)), windows=windows).total("comparisons", 10)
    capacity = full / 10 / 3
    trace = run(policies(windows)[policy], Machine(capacity, tick_us=TICK_US), windows=windows)
    assert 0.7 * full / 3 < trace.total("comparisons", 10) < 1.05 * full / 3
    assert trace.total("outputs", 10) > 0


def test_an_equality_join_of_single_values_finds_every_pair() -> None:
    trace = run(partial_processing(WINDOWS, FixedRate(1.0)), workload=VALUES, condition=Equality())
    assert trace.total("outputs") == naive_pairs(VALUES, WINDOWS, 1) > 100


def test_rows_of_equal_times_meet_exactly_once() -> None:
    times = np.repeat(np.arange(1, 11) * SECOND_US, 3)
    same = Stream(times, codes(np.zeros(times.size, np.int64)))
    none_older = Windows((0, SECOND_US // 2), SECOND_US)
    trace = StreamJoin((same, same), none_older, Equality(), Machine()).run(
        partial_processing(none_older, FixedRate(1.0)), 11
    )
    assert trace.total("outputs") == 10 * 3 * 3


@pytest.mark.parametrize("tick_us", [SECOND_US // 50, SECOND_US])
def test_the_length_of_a_tick_changes_no_pair(tick_us: int) -> None:
    trace = run(partial_processing(WINDOWS, FixedRate(1.0)), Machine(tick_us=tick_us))
    assert trace.total("outputs") == naive_pairs(SETS, WINDOWS, 2)


@pytest.mark.parametrize("policy", POLICIES)
def test_overload_costs_pairs_but_never_more_than_the_machine_can_do(policy: str) -> None:
    trace = run(policies()[policy], TIGHT)
    assert 0 < trace.total("outputs") < naive_pairs(SETS, WINDOWS, 2)
    one_row_more = 60 * 7
    assert trace.total("comparisons") <= TIGHT.comparisons_per_second * SECONDS + one_row_more
    assert trace.total("comparisons", 10, 20) > 0.7 * TIGHT.comparisons_per_second * 10


@pytest.mark.parametrize("policy", POLICIES)
def test_the_same_seed_repeats_exactly(policy: str) -> None:
    one, other = (run(policies()[policy], TIGHT) for _ in range(2))
    assert all((one.ticks(name) == other.ticks(name)).all() for name in COUNTED)
    assert one.decisions == other.decisions


def test_another_seed_drops_other_rows() -> None:
    one, other = (
        run(RandomDropPolicy(WINDOWS, FixedRate(1.0)), Machine(TIGHT.comparisons_per_second, seed=seed))
        for seed in (1, 2)
    )
    assert one.ticks("outputs").tolist() != other.ticks("outputs").tolist()


def test_every_offered_row_is_fetched_dropped_or_still_waits_in_a_buffer_of_a_second() -> None:
    trace = run(RandomDropPolicy(WINDOWS, FixedRate(1.0)), TIGHT)
    waiting = np.cumsum(trace.ticks("offered") - trace.ticks("fetched") - trace.ticks("dropped"))
    assert waiting.min() >= 0
    assert 0.8 * 100 <= waiting[-1] <= waiting.max() <= 1.2 * 100


@pytest.mark.parametrize(("fraction", "low", "high"), [(0.25, 0.22, 0.28), (0.5, 0.46, 0.54)])
def test_random_drop_leaves_that_fraction_of_the_comparisons(
    fraction: float, low: float, high: float
) -> None:
    full = run(RandomDropPolicy(WINDOWS, FixedRate(1.0))).total("comparisons")
    assert low < run(RandomDropPolicy(WINDOWS, FixedRate(fraction))).total("comparisons") / full < high


def test_window_reduction_is_partial_processing_as_long_as_the_fraction_stays() -> None:
    partial = run(partial_processing(WINDOWS, FixedRate(0.3)))
    reduced = run(WindowReductionPolicy(WINDOWS, FixedRate(0.3)))
    assert reduced.total("outputs", 8) == pytest.approx(partial.total("outputs", 8), rel=0.1)
    assert reduced.total("comparisons", 8) == pytest.approx(partial.total("comparisons", 8), rel=0.1)


def test_rows_that_window_reduction_threw_away_do_not_come_back() -> None:
    class Returns(WindowReductionPolicy):
        def adapt(self, telemetry: Any) -> Any:
            self.rate = FixedRate(1.0)
            return self.decision

    returned = run(Returns(WINDOWS, FixedRate(0.1)), Machine(period_us=10 * SECOND_US))
    full = run(RandomDropPolicy(WINDOWS, FixedRate(1.0)))
    assert returned.total("comparisons", 10, 11) < 0.4 * full.total("comparisons", 10, 11)
    assert returned.total("comparisons", 18, 20) == full.total("comparisons", 18, 20)


def test_a_machine_without_capacity_is_refused() -> None:
    with pytest.raises(FlowError, match="needs a capacity"):
        Machine(comparisons_per_second=0)
