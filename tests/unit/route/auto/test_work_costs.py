"""Prices times counts: what partitions, keys and instances cost."""

from __future__ import annotations

import numpy as np
import pytest

from tidegate.route.assignment import Assignment
from tidegate.route.auto.work_costs import (
    SplitGrid,
    counts_per_instance,
    own_keys,
    price,
    serves_both,
    stored_rows,
)
from tidegate.route.load import Load, LoadWork

PRICES = np.array([100.0, 1.0, 10.0, 0.5, 2.0])


def work(*units: tuple[int, int, int]) -> LoadWork:
    """(stored on the left, probes of it, matches) per unit; on the right as much."""
    stored, probes, matches = (np.array(column, np.int64) for column in zip(*units, strict=True))
    return LoadWork(np.stack([stored, stored]), np.stack([probes, probes]), matches)


def test_a_grid_divides_what_is_done_once_and_each_side_among_its_lines() -> None:
    """100 left rows are stored and 40 are new, 10 and 3 right ones; they find 7 pairs."""
    one_sided = LoadWork(np.array([[100], [10]]), np.array([[3], [40]]), np.array([7]))
    costs = price(one_sided, PRICES, both=True)
    assert costs.divided.tolist() == [1 * 43 + 10 * 7]
    assert costs.left.tolist() == [2 * 40 + 0.5 * 100]
    assert costs.right.tolist() == [2 * 3 + 0.5 * 10]
    assert costs.whole.tolist() == [113 + 130 + 11]
    assert costs.rows.tolist() == [110]
    assert costs.piece(0, SplitGrid((0, 1, 2, 3), 1)) == 113 / 4 + 130 / 4 + 11
    assert costs.piece(0, SplitGrid((0, 1, 2, 3), 2)) == 113 / 4 + 130 / 2 + 11 / 2


def test_a_group_of_the_biclique_does_not_take_probes_for_rows_that_it_stores() -> None:
    half = LoadWork(np.array([[10], [0]]), np.array([[3], [0]]), np.array([7]))
    assert not serves_both(Load(0, half))
    assert serves_both(Load(0, work((1, 1, 1))))
    costs = price(half, PRICES, both=False)
    assert (costs.divided[0], costs.left[0], costs.right[0]) == (10 * 7, 0.5 * 10, 2 * 3)


def test_each_instance_pays_for_its_partitions_and_its_share_of_keys() -> None:
    codes = np.array([5, 9, 2**63], np.uint64)
    load = Load(
        0, work((10, 3, 7), (20, 4, 8)), codes=codes, homes=np.array([0, 0, 1]), keys=work(*[(8, 2, 6)] * 3)
    )
    assignment = Assignment(3, (0, 1), keys={9: (1, 2), 77: (0,)})
    counts = counts_per_instance(load, assignment)
    assert counts.tolist() == [
        [1, 1, 1],
        [6, 8 + 4 / 2, 4 / 2],
        [7, 8 + 6 / 2, 6 / 2],
        # A column of two instances: each sees its own left rows and all right ones.
        [20, 40 + 8 / 2 + 8, 8 / 2 + 8],
        [6, 8 + 2 / 2 + 2, 2 / 2 + 2],
    ]
    assert own_keys(load, assignment) == {1: SplitGrid((1, 2))}
    assert stored_rows(load, assignment) == 20 + 40 + 16
    spread = counts_per_instance(load, Assignment(3, (0, 1), spread=2))
    assert spread[4].tolist() == [6, 6 + 8, 8]
    assert spread[2].tolist() == pytest.approx([7 / 2, 7 / 2 + 8 / 2, 8 / 2])


def test_one_row_that_meets_many_is_an_accident_and_many_that_meet_one_are_not() -> None:
    """The same 1000 pairs, found by one left row or by a thousand right ones."""
    stored = np.array([[0, 1], [1000, 0]])
    probes = np.array([[0, 1000], [1, 0]])
    matches = np.array([1000, 1000])
    pairs_only = np.array([0, 0, 1.0, 0, 0])
    costs = price(LoadWork(stored, probes, matches), pairs_only, both=True)
    assert costs.whole.tolist() == [1000, 1000]
    assert np.sqrt(costs.chance) == pytest.approx([1000, np.sqrt(1000)])


def test_chance_is_the_variance_of_keys_drawn_at_random() -> None:
    random = np.random.default_rng(0)
    stored = np.array([50, 2000])
    drawn = random.poisson([[30.0], [4.0]], (2, 4000))
    many = LoadWork(np.repeat(stored[:, None], 4000, 1), drawn, (drawn * stored[:, None]).sum(axis=0))
    costs = price(many, PRICES, both=True)
    assert costs.chance.mean() == pytest.approx(costs.whole.var(), rel=0.1)
