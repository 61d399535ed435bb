from __future__ import annotations

import numpy as np
import pytest

from tidegate.sift.partition.auto.growth import Grown
from tidegate.sift.partition.auto.pruning import prune


def comb(data: list[float], worth: list[float], asked: list[bool]) -> Grown:
    """A tree that cuts off one leaf after the other, from the left."""
    leaves = len(data)
    nodes = 2 * leaves - 1
    children = np.full((nodes, 2), -1, np.int32)
    sums = np.zeros((nodes, 2))
    met = np.zeros(nodes, np.bool_)
    node = 0
    for leaf in range(leaves):
        sums[node], met[node] = (sum(data[leaf:]), sum(worth[leaf:])), any(asked[leaf:])
        if leaf < leaves - 1:
            children[node] = 2 * leaf + 1, 2 * leaf + 2
            sums[2 * leaf + 1], met[2 * leaf + 1] = (data[leaf], worth[leaf]), asked[leaf]
            node = 2 * leaf + 2
    return Grown(np.zeros(nodes, np.int32), np.zeros(nodes), children, sums[:, 0], sums[:, 1], met)


def test_cuts_between_regions_that_get_the_same_threshold_are_left_out() -> None:
    grown = comb([0.3, 0.3, 0.2, 0.2], [0.0, 0.1, 0.4, 0.5], [True] * 4)
    # Cheap, cheap, dear, dear: one cut between the halves, and the one on the way to it.
    assert np.flatnonzero(prune(grown, 3, 0.5, 0.5)).tolist() == [0, 2]


def test_with_a_single_region_nothing_is_cut() -> None:
    assert not prune(comb([0.5, 0.5], [1.0, 0.0], [True, True]), 1, 0.5, 0.5).any()


def test_under_strict_fairness_only_unasked_space_is_cut_off() -> None:
    grown = comb([0.2, 0.4, 0.2, 0.2], [0.0, 0.0, 0.9, 0.1], [False, True, True, True])
    assert np.flatnonzero(prune(grown, 4, 0.5, 0.0)).tolist() == [0]


def test_where_unasked_data_is_enough_to_drop_nothing_else_is_cut() -> None:
    grown = comb([0.6, 0.2, 0.2], [0.0, 0.9, 0.1], [False, True, True])
    cut = prune(grown, 3, 0.5, 0.5)
    assert cut[0]
    assert grown.worth[0] == pytest.approx(1.0)


def test_data_that_nobody_asks_for_is_cut_off_before_as_much_that_is_cheap() -> None:
    # Two halves with a worthless leaf each; only one of these can be had.
    grown = Grown(
        np.zeros(7, np.int32),
        np.zeros(7),
        np.array([[1, 2], [3, 4], [5, 6]] + [[-1, -1]] * 4, np.int32),
        np.array([1.0, 0.5, 0.5, 0.3, 0.2, 0.3, 0.2]),
        np.array([1.0, 0.5, 0.5, 0.0, 0.5, 0.0, 0.5]),
        np.array([True, True, True, False, True, True, True]),
    )
    assert np.flatnonzero(prune(grown, 3, 0.5, 0.5)).tolist() == [0, 1]


@pytest.mark.parametrize("z", [0.0, 0.1, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("fairness", [0.0, 0.5, 1.0])
def test_every_load_and_fairness_gives_at_most_so_many_regions(z: float, fairness: float) -> None:
    random = np.random.default_rng(1)
    data, worth = random.dirichlet(np.ones(12)), random.dirichlet(np.ones(12))
    grown = comb(data.tolist(), worth.tolist(), [True] * 12)
    assert prune(grown, 5, z, fairness).sum() <= 4
