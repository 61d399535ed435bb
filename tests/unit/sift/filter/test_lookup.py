from __future__ import annotations

import numpy as np
import pytest

from tidegate.sift.filter.lookup import BUCKETS_MAX, Lookup
from tidegate.sift.regions import Domain, Regions


def cut(at: list[float], axes: int = 1, axis: list[int] | None = None) -> Regions:
    """One region cut off after the other, upwards."""
    n = len(at)
    children = np.stack([~np.arange(n), np.r_[1:n, ~n]], axis=1)
    return Regions(
        Domain(np.zeros(axes), np.ones(axes)),
        np.array(axis or [0] * n, np.int32),
        np.array(at, np.float64),
        children.astype(np.int32),
    )


def test_a_row_at_a_cut_lies_above_it() -> None:
    lookup = Lookup.of(cut([0.25, 0.5]))
    rows = np.array([0.0, np.nextafter(0.25, 0), 0.25, 0.49, 0.5, 1.0])
    assert lookup.regions([rows]).tolist() == [0, 0, 1, 1, 2, 2]


def test_rows_outside_of_the_domain_belong_to_the_outermost_regions() -> None:
    lookup = Lookup.of(cut([0.25, 0.5]))
    rows = np.array([-np.inf, -1e308, -5.0, -0.0, 7.0, 1e308, np.inf])
    assert lookup.regions([rows]).tolist() == [0, 0, 0, 0, 2, 2, 2]


def test_a_row_without_a_number_lies_above_every_cut() -> None:
    lookup = Lookup.of(cut([0.5], axes=2))
    nan = np.nan
    found = lookup.regions([np.array([0.1, nan, 0.9, nan]), np.array([0.1, 0.1, nan, nan])])
    assert found.tolist() == [0, 1, 1, 1]


def test_without_a_cut_there_is_one_region() -> None:
    whole = Regions(
        Domain(np.zeros(2), np.ones(2)), np.zeros(0, np.int32), np.zeros(0), np.zeros((0, 2), np.int32)
    )
    found = Lookup.of(whole).regions([np.array([0.5, np.inf, np.nan]), np.array([-np.inf, 0.0, 0.0])])
    assert found.tolist() == [0, 0, 0]


def test_a_cut_at_infinity_tells_numbers_from_nulls() -> None:
    lookup = Lookup.of(cut([0.5, np.inf]))
    assert not lookup.exact_walk
    rows = np.array([-np.inf, 0.4, 1e308, np.inf, np.nan])
    assert lookup.regions([rows]).tolist() == [0, 0, 1, 2, 2]


def test_close_cuts_share_a_bucket() -> None:
    close = 0.5 + np.arange(3) * 1e-9
    lookup = Lookup.of(cut([0.0, *close, 1.0]))
    assert not lookup.exact_walk
    assert lookup.tables[0].steps == 3
    assert lookup.regions([np.r_[close, np.inf]]).tolist() == [2, 3, 4, 5]


def test_cuts_that_no_table_tells_apart_are_walked() -> None:
    close = 0.5 + np.arange(6) * 1e-12
    lookup = Lookup.of(cut([0.0, *close, 1.0]))
    assert lookup.exact_walk
    assert lookup.regions([np.r_[close, np.nan]]).tolist() == [2, 3, 4, 5, 6, 7, 8]


def test_too_many_cells_are_walked() -> None:
    axes = 8
    cuts = cut([0.1 * (1 + i // axes) for i in range(5 * axes)], axes, [i % axes for i in range(5 * axes)])
    lookup = Lookup.of(cuts)
    assert lookup.exact_walk
    assert lookup.regions([np.full(1, 0.45)] * axes).tolist() == [4 * axes]


def test_cuts_further_apart_than_a_number_can_say_are_walked() -> None:
    lookup = Lookup.of(cut([-1.7e308, -1e308, 0.0, 1.0, 1e308, 1.7e308]))
    assert lookup.regions([np.array([-np.inf, -1.0, 0.5, np.inf])]).tolist() == [0, 2, 3, 6]


def test_tables_stay_small() -> None:
    random = np.random.default_rng(3)
    lookup = Lookup.of(cut(np.sort(random.random(100)).tolist()))
    assert all(len(table.base) <= BUCKETS_MAX for table in lookup.tables)
    assert len(lookup.cells) == 101


def test_the_documented_formula_is_what_runs() -> None:
    """Spark repeats it, so it is written once more here, as the docstring has it."""
    random = np.random.default_rng(4)
    tree = cut(np.sort(random.random(60)).tolist())
    lookup = Lookup.of(tree)
    table = lookup.tables[0]
    for x in [*random.normal(0.5, 1, 500), *tree.at, np.inf, -np.inf]:
        bucket = int(min(max((x - table.origin) * table.scale, 0.0), len(table.base) - 1))
        first = int(table.base[bucket])
        rank = first + sum(x >= table.cuts[first + k] for k in range(table.steps))
        assert lookup.cells[rank * table.stride] == lookup.regions([np.array([x])])[0]


@pytest.mark.parametrize("rows", [0, 1])
def test_hardly_any_rows_are_rows_too(rows: int) -> None:
    assert Lookup.of(cut([0.5])).regions([np.zeros(rows)]).tolist() == [0] * rows
