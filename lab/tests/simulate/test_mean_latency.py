from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.simulation.skewed_streams import mixed

from tidegate.route.baselines import HashOnly
from tidegate.route.fastjoin.imbalance import InstanceWork
from tidegate.route.fastjoin.strategy import FastJoinStrategy
from tidegate_lab.simulate.balance.instance_speed import Speed
from tidegate_lab.simulate.balance.join_costs import ComparedWithInstance
from tidegate_lab.simulate.balance.key_counts import count_arrivals
from tidegate_lab.simulate.balance.mean_latency import mean_latencies, pauses
from tidegate_lab.simulate.balance.recorded import Decision, Recorded
from tidegate_lab.simulate.balance.row_latency import row_latencies
from tidegate_lab.simulate.balance.skewed_join import SkewedJoin, simulate
from tidegate_lab.workloads.skew import ZipfStreams, zipf_batches

NONE: NDArray[np.int64] = np.zeros(0, np.int64)


def decision(stored: list[float], probes: list[float], moved: tuple[int, int, int] | None = None) -> Decision:
    nothing = [0.0] * len(stored)
    work = InstanceWork(np.array([stored, nothing]), np.array([probes, nothing]))
    places = [NONE] * 3 if moved is None else [np.array([number]) for number in moved]
    return Decision(0, work, places[0], places[1], places[2], np.full(len(stored), 1000))


def test_a_row_takes_its_comparisons_and_waits_for_those_before_it() -> None:
    """100 stored rows at 1000 comparisons a second take 0.1 s; when half busy, rows wait for half of it."""
    (found,) = mean_latencies([[decision([100.0], [5.0])]], Speed(1e-3), 1.0)
    assert found == pytest.approx(0.1 + 0.5 * 0.1 / (2 * 0.5))


def test_at_twice_the_rate_there_is_four_times_the_work() -> None:
    (found,) = mean_latencies([[decision([100.0], [5.0])]], Speed(1 / 4000), 2.0)
    assert found == pytest.approx(0.05 + 0.5 * 0.05 / (2 * 0.5))


def test_what_does_not_fit_into_a_batch_waits_for_the_next_and_drains() -> None:
    heavy, calm = decision([100.0], [20.0]), decision([0.0], [1.0])
    found = mean_latencies([[heavy, heavy, calm, calm, calm]], Speed(1e-3), 1.0)
    # Two seconds of work a second: after one batch a second is left over, after two batches two.
    assert found[1] - found[0] == pytest.approx(1.0)
    assert found[2] == pytest.approx(1.5)
    assert found[3] == pytest.approx(0.5)
    assert found[4] == pytest.approx(0.0)


def test_both_instances_of_a_migration_stop_and_others_do_not() -> None:
    moving = decision([1.0, 1.0, 1.0], [1.0, 1.0, 1.0], moved=(2, 0, 5000))
    speed = Speed(1e-6, moved_row=1e-4, chosen_key=1e-4)
    assert pauses(moving, speed, 1.0).tolist() == pytest.approx([0.6, 0.0, 0.6])
    assert pauses(moving, speed, 2.0).tolist() == pytest.approx([1.1, 0.0, 1.1])
    found = mean_latencies([[moving, decision([1.0, 1.0, 1.0], [1.0, 1.0, 1.0])]], speed, 1.0)
    # A pause of 0.6 s is worked off within 0.6 s: 0.18 s on average, for two of three rows.
    assert found[1] - found[0] == pytest.approx(2 / 3 * 0.18, rel=1e-3)


def test_rows_of_all_groups_count_alike() -> None:
    slow, fast = decision([100.0], [3.0]), decision([10.0], [1.0])
    speed = Speed(1e-3)
    each = [float(mean_latencies([[one]], speed, 1.0)[0]) for one in (slow, fast)]
    (both,) = mean_latencies([[slow], [fast]], speed, 1.0)
    assert both == pytest.approx((3 * each[0] + each[1]) / 4)


@pytest.mark.parametrize("biclique", [False, True])
def test_a_recorded_strategy_decides_the_same_and_knows_what_moved(biclique: bool) -> None:
    arrivals = count_arrivals(zipf_batches(ZipfStreams(keys=500, rows=(400, 400), batches=12)))
    join = SkewedJoin(8, 64, costs=ComparedWithInstance(), biclique=biclique, watch_share=0.0)
    plain = simulate(arrivals, FastJoinStrategy(1.5), join)
    recorded = Recorded(FastJoinStrategy(1.5), detailed=True)
    trace = simulate(arrivals, recorded, join)
    assert [batch.makespan for batch in trace.batches] == [batch.makespan for batch in plain.batches]
    groups = 1 + biclique
    assert len(recorded.decisions) == 12 * groups
    for number, made in enumerate(recorded.decisions[:-groups]):
        batch, group = divmod(number, groups)
        moved = trace.batches[batch + 1].groups[group].migration
        assert made.batch == batch
        assert int(made.rows.sum()) == (moved.rows if moved else 0)
    assert trace.series("migrations").sum() > 2


@pytest.mark.parametrize("busiest", [0.3, 0.8])
def test_row_by_row_the_queues_take_as_long(busiest: float) -> None:
    """Left rows lie there from the first batch on, right rows look at them: so much busy is the busiest."""
    random = np.random.default_rng(5)
    codes, none = mixed(np.arange(300)), np.zeros(0, np.uint64)
    right = [random.choice(codes, 1500) for _ in range(40)]
    arrivals = count_arrivals([(random.choice(codes, 600), none), *((none, rows) for rows in right)])
    windows = (None, 1)
    recorded = Recorded(HashOnly(), detailed=True)
    join = SkewedJoin(4, 32, windows, ComparedWithInstance(), watch_share=0.0)
    trace = simulate(arrivals, recorded, join)
    speed = Speed(busiest / trace.batches[-1].makespan)
    times, found = row_latencies(arrivals, recorded.assignments, windows, speed)
    by_row = float(found[times >= 1].mean())
    assert mean_latencies([recorded.decisions], speed, 1.0)[1:].mean() == pytest.approx(by_row, rel=0.05)
