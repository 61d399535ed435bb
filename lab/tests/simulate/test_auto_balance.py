"""The bars of the auto strategy, with counted cost: how even, after how long, for how many moved rows."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from tests.simulation.skewed_streams import mixed, zipf, zipf_stream

from tidegate.route.auto.strategy import Auto
from tidegate.route.baselines import HashOnly
from tidegate.route.fastjoin.strategy import FastJoinStrategy
from tidegate_lab.simulate.balance.join_costs import Indexed
from tidegate_lab.simulate.balance.join_trace import JoinTrace
from tidegate_lab.simulate.balance.key_counts import Arrivals, count_arrivals
from tidegate_lab.simulate.balance.skewed_join import SkewedJoin, simulate

#: 16 instances with 16 partitions each; rows of a side per batch such that some millions of pairs are found.
JOIN = SkewedJoin(16, 256, (12, 12), watch_share=2e-4)
ROWS = {0.0: 8_000, 0.5: 8_000, 1.0: 6_000, 1.4: 2_500, 2.0: 1_200}
BATCHES, WARM = 20, 4


@cache
def stream(skew: float) -> Arrivals:
    return zipf_stream(skew, batches=BATCHES, rows=ROWS[skew], keys=20_000)


@cache
def balanced(skew: float) -> JoinTrace:
    return simulate(stream(skew), Auto(), JOIN)


def moved(trace: JoinTrace) -> float:
    """Rows moved in the whole run, as a part of the state."""
    return float(trace.series("moved_rows").sum()) / trace.batches[-1].stored


@pytest.mark.parametrize("skew", list(ROWS))
def test_batches_take_at_most_15_percent_longer_than_in_perfect_balance(skew: float) -> None:
    trace = balanced(skew)
    assert np.mean(trace.series("overload")[WARM:]) <= 1.15
    assert trace.batches[-1].pairs <= 20_000_000


@pytest.mark.parametrize("skew", [0.5, 1.0, 1.4])
def test_few_rows_are_moved(skew: float) -> None:
    """At most half of what FastJoin moves, or a twentieth of the state."""
    fastjoin = simulate(stream(skew), FastJoinStrategy(), SkewedJoin(16, 256, (12, 12), watch_share=0))
    assert moved(balanced(skew)) <= max(0.05, moved(fastjoin) / 2)


def test_a_key_with_most_of_all_rows_moves_them_once_while_they_are_few() -> None:
    """At Zipf 2.0 one key has three fifths of all rows: they are spread after the first batch, once."""
    trace = balanced(2.0)
    assert [batch.batch for batch in trace.batches if batch.migrations] == [1]
    assert moved(trace) <= 0.08


def test_uniform_keys_are_left_alone() -> None:
    auto, hashed = balanced(0.0), simulate(stream(0.0), HashOnly(), JOIN)
    assert auto.series("migrations").sum() == 0
    assert auto.series("makespan") == pytest.approx(hashed.series("makespan"), rel=0.02)


@pytest.mark.parametrize(
    ("rows", "share", "skew"), [(2_000, 0.3, 0.0), (4_000, 0.05, 0.5), (1_000, 0.6, 0.8)]
)
def test_a_hot_key_that_jumps_is_caught_within_three_batches(rows: int, share: float, skew: float) -> None:
    random = np.random.default_rng(5)
    made = []
    for batch in range(50):
        sides = []
        for _ in range(2):
            keys = zipf(random, rows, 5_000, skew) + 100
            keys[random.random(rows) < share] = batch // 20
            sides.append(mixed(keys))
        made.append((sides[0], sides[1]))
    overload = simulate(count_arrivals(made), Auto(), JOIN).series("overload")
    for jump in (20, 40):
        assert overload[jump] > 2
        assert (overload[jump + 3 : jump + 10] <= 1.25).all()


@pytest.mark.parametrize("skew", [0.5, 1.4])
def test_steady_input_with_noisy_seconds_settles_down(skew: float) -> None:
    """Other prices than the counted ones, learnt from seconds that are a fifth off: no swinging."""
    join = SkewedJoin(
        16, 256, (12, 12), Indexed(10, 2, 0.5), watch_share=2e-4, seconds_per_work=1e-7, noise=0.2
    )
    trace = simulate(stream(skew), Auto(), join)
    assert sum(batch.migrations for batch in trace.batches[10:]) <= 1
    assert np.mean(trace.series("overload")[WARM:]) <= 1.15
    assert moved(trace) <= 0.1


@pytest.mark.parametrize("skew", [1.0, 2.0])
def test_the_groups_of_the_biclique_are_balanced_each_on_its_own(skew: float) -> None:
    join = SkewedJoin(16, 256, (12, 12), biclique=True, watch_share=2e-4)
    trace = simulate(stream(skew), Auto(), join)
    for group in (0, 1):
        overload = [b.groups[group].work.max() / b.groups[group].even for b in trace.batches[WARM:]]
        assert np.mean(overload) <= 1.2


def test_another_number_of_instances_is_balanced_soon() -> None:
    join = SkewedJoin(8, 256, (12, 12), watch_share=2e-4, rescale={8: 16, 14: 6})
    overload = simulate(stream(1.0), Auto(), join).series("overload")
    assert overload[[11, 13, 17, 19]].max() <= 1.25
