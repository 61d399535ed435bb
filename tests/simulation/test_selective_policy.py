"""The selective policy against one who knows the true value of every cell, and against random drop.

Counted cost; every run spends r of what joining everything would cost, exploring included.
"""

from __future__ import annotations

from statistics import median

import numpy as np
import pytest

from tidegate.control.rate import FixedRate
from tidegate.control.selective import SelectivePolicy
from tidegate.control.shedding import RandomDrop, Windows
from tidegate.join.thresholds import Overlap
from tidegate.papers.selective_join import Steps, Workload
from tidegate.sim.clairvoyant import Clairvoyant, together, true_counts
from tidegate.sim.machine import SECOND_US, Machine
from tidegate.sim.paper_streams import paper_streams
from tidegate.sim.stream_join import StreamJoin

WINDOWS = Windows((20 * SECOND_US, 20 * SECOND_US), SECOND_US)
MACHINE = Machine(tick_us=SECOND_US // 2)
MATCH = Overlap(3)


@pytest.mark.parametrize("skew", [0.6, 0.8, 1.0])
def test_steady_output_is_95_percent_of_the_clairvoyant_choice_at_the_same_cost(skew: float) -> None:
    streams = paper_streams(Workload(skew=skew), (Steps(((80, 250),)),) * 2)
    truth = together(true_counts(streams, WINDOWS, MATCH, MACHINE, 80)[6:])
    for fraction in (0.1, 0.2, 0.36, 0.5, 0.7):
        best, ours = (
            StreamJoin(streams, WINDOWS, MATCH, MACHINE).run(policy, 80)
            for policy in (
                Clairvoyant(WINDOWS, fraction, [truth]),
                SelectivePolicy(WINDOWS, FixedRate(fraction)),
            )
        )
        assert ours.total("outputs", 30) >= 0.95 * best.total("outputs", 30)
        assert ours.total("comparisons", 30) == pytest.approx(best.total("comparisons", 30), rel=0.01)


@pytest.mark.parametrize("fraction", [0.1, 0.2, 0.36, 0.5, 0.7])
def test_without_any_correlation_a_comparison_is_worth_what_it_is_worth_to_random_drop(
    fraction: float,
) -> None:
    """Random drop finds, on average, as much per comparison as joining everything.

    A single run of it scatters by 3 % around that (whose rows are kept is luck), so the average is the bar.
    """
    ratios = []
    for seed in range(5):
        still = Workload(period_seconds=1e9, shift_seconds=Steps(((1, 0.0),)), seed=seed)
        streams = paper_streams(still, (Steps(((45, 150),)),) * 2)
        everything, ours = (
            StreamJoin(streams, WINDOWS, MATCH, MACHINE).run(policy, 45)
            for policy in (
                RandomDrop(WINDOWS, FixedRate(1.0)),
                SelectivePolicy(WINDOWS, FixedRate(fraction)),
            )
        )
        worth = [trace.total("outputs", 20) / trace.total("comparisons", 20) for trace in (everything, ours)]
        ratios.append(worth[1] / worth[0])
    assert median(ratios) >= 0.97


def test_random_drop_finds_on_average_as_much_per_comparison_as_joining_everything() -> None:
    still = Workload(period_seconds=1e9, shift_seconds=Steps(((1, 0.0),)))
    streams = paper_streams(still, (Steps(((45, 150),)),) * 2)
    worth = []
    for seed, fraction in [(0, 1.0), *((seed, 0.3) for seed in range(12))]:
        machine = Machine(tick_us=SECOND_US // 2, seed=seed)
        trace = StreamJoin(streams, WINDOWS, MATCH, machine).run(RandomDrop(WINDOWS, FixedRate(fraction)), 45)
        worth.append(trace.total("outputs", 20) / trace.total("comparisons", 20))
    assert np.mean(worth[1:]) == pytest.approx(worth[0], rel=0.03)


@pytest.mark.parametrize("shift", [15.0, 35.0])
def test_a_correlation_that_moves_by_half_a_window_is_found_again_within_three_periods(shift: float) -> None:
    """Until 75 s, rows of the old correlation are still in their most productive place.

        moves at 60 s ──▶ the old peak (age 15 s) lives on, the new one grows ──▶ 75 s: only the new

    Both moments count: output is at 90 % of steady in the third period after either.
    """
    back = []
    for seed in range(3):
        moving = Workload(shift_seconds=Steps(((60, 25.0), (60, shift))), seed=seed)
        streams = paper_streams(moving, (Steps(((115, 250),)),) * 2)
        join = StreamJoin(streams, WINDOWS, MATCH, MACHINE)
        trace = join.run(SelectivePolicy(WINDOWS, FixedRate(0.2)), 115)
        steady = trace.total("outputs", 95, 115) / 4
        back.append([trace.total("outputs", begin, begin + 5) / steady for begin in (70, 85)])
    assert np.median(back, axis=0).min() >= 0.9
