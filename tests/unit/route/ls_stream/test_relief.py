"""One step of Ls-Stream: from the busiest to the least busy, never past each other."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.route.ls_stream.deviation import deviation, fair_load
from tidegate.route.ls_stream.partition_annealing import PartitionAnnealing
from tidegate.route.ls_stream.partition_load import per_instance
from tidegate.route.ls_stream.relief import Partitions, relieved

SHORT = PartitionAnnealing(steps=4)


@st.composite
def clusters(draw: st.DrawFn) -> tuple[Partitions, np.ndarray, np.ndarray]:
    instances = draw(st.integers(1, 5))
    loads = draw(st.lists(st.integers(0, 1000), min_size=instances, max_size=20))
    table = draw(st.lists(st.integers(0, instances - 1), min_size=len(loads), max_size=len(loads)))
    weights = draw(st.lists(st.sampled_from([1.0, 2.0, 0.5]), min_size=instances, max_size=instances))
    values = np.array(loads, np.float64)
    return Partitions(values, values + 1, values + 2), np.array(table), np.array(weights)


@given(clusters(), st.sampled_from([0.0, 0.3, 1.0]))
@settings(max_examples=60)
def test_a_step_never_worsens_the_imbalance_and_steps_come_to_an_end(
    cluster: tuple[Partitions, np.ndarray, np.ndarray], alpha: float
) -> None:
    partitions, table, weights = cluster
    loads = per_instance(partitions.loads, table, len(weights))
    for step in range(200):
        after = relieved(partitions, table, weights, alpha, SHORT, step)
        if after is None:
            return
        changed = np.flatnonzero(after != table)
        givers, takers = set(table[changed]), set(after[changed])
        assert len(givers) == len(takers) == 1
        then = per_instance(partitions.loads, after, len(weights))
        assert deviation(then, weights) <= deviation(loads, weights) + 1e-9
        (giver,), (taker,) = givers, takers
        # (31): the straggler stays the busier one, and both end between where they began.
        assert then[giver] / weights[giver] > then[taker] / weights[taker]
        assert then[giver] < loads[giver]
        table, loads = after, then
    raise AssertionError("200 steps and still moving")


def test_the_straggler_comes_down_to_the_threshold_where_it_can() -> None:
    """(30), with partitions fine enough, and no more than needed of equal ones."""
    loads = np.ones(60)
    partitions = Partitions(loads, loads, loads)
    table = np.repeat([0, 1, 2, 3], [30, 10, 10, 10])
    after = relieved(partitions, table, np.ones(4), 0.5, SHORT)
    assert after is not None
    counts = np.bincount(after)
    assert counts[0] <= 1.5 * 15
    assert counts.sum() == 60
    assert counts[0] > counts.min()


def test_a_faster_instance_takes_more() -> None:
    loads = np.ones(90)
    table, weights = np.zeros(90, np.int64), np.array([1.0, 2.0])
    partitions = Partitions(loads, loads, loads)
    after = relieved(partitions, table, weights, 0.0, SHORT)
    assert after is not None
    spread = per_instance(loads, after, 2)
    assert np.isclose(fair_load(spread, weights), 30)
    assert abs(spread[1] - 60) <= 1


def test_equal_loads_have_nothing_to_give() -> None:
    loads = np.ones(4)
    assert relieved(Partitions(loads, loads, loads), np.array([0, 0, 1, 1]), np.ones(2), 0.0, SHORT) is None
