from __future__ import annotations

import numpy as np
import pytest

from tidegate.errors import FlowError
from tidegate.sift.partition.cut_tree import CutTree
from tidegate.sift.placing import frequencies, region_of
from tidegate.sift.regions import Domain, Regions


def _quarters() -> Regions:
    tree = CutTree()
    for region in (0, tree.cut(0, 0, 0.5)):
        tree.cut(region, 1, 0.5)
    return tree.regions(Domain(np.zeros(2), np.ones(2)))


def test_a_row_at_a_cut_lies_above_it() -> None:
    rows = np.array([[0.4, 0.4], [0.5, 0.4], [0.4, 0.5], [0.5, 0.5]])
    assert region_of(_quarters(), rows).tolist() == [0, 1, 2, 3]


def test_a_row_outside_of_the_domain_lies_in_the_region_at_its_border() -> None:
    rows = np.array([[-9.0, -np.inf], [np.inf, 0.1], [9.0, 9.0]])
    assert region_of(_quarters(), rows).tolist() == [0, 1, 3]


def test_a_coordinate_that_is_no_number_lies_above_every_cut() -> None:
    rows = np.array([[np.nan, 0.1], [0.1, np.nan], [np.nan, np.nan], [0.1, 0.1]])
    assert region_of(_quarters(), rows).tolist() == [1, 2, 3, 0]


def test_a_cut_at_infinity_tells_numbers_from_nulls() -> None:
    tree = CutTree()
    tree.cut(0, 0, np.inf)
    halves = tree.regions(Domain(np.zeros(1), np.ones(1)))
    assert region_of(halves, np.array([[-np.inf], [1e308], [np.inf], [np.nan]])).tolist() == [0, 0, 1, 1]


def test_without_cuts_all_rows_lie_in_one_region() -> None:
    whole = CutTree().regions(Domain(np.zeros(1), np.ones(1)))
    assert region_of(whole, np.array([[0.3], [np.nan]])).tolist() == [0, 0]


def test_frequencies_are_shares_of_the_whole_sample() -> None:
    sample = np.array([[0.1, 0.1], [0.2, 0.2], [0.9, 0.9], [np.nan, 0.0]])
    assert frequencies(_quarters(), sample).tolist() == [0.5, 0.25, 0.0, 0.25]


def test_frequencies_without_a_sample_are_refused() -> None:
    with pytest.raises(FlowError, match="SIFTER_SAMPLE_EMPTY"):
        frequencies(_quarters(), np.zeros((0, 2)))
