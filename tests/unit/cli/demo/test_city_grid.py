from __future__ import annotations

import numpy as np

from tidegate.cli.demo.city import CityGrid

CELLS = np.arange(60)
GRID = CityGrid(60)  # eight to a row, the last row in part; districts of two by two


def test_cells_are_close_to_themselves_and_one_step_away() -> None:
    assert GRID([9, 9, 9, 9, 9], [9, 10, 17, 18, 11]).tolist() == [True, True, True, False, False]


def test_the_end_of_a_row_is_not_close_to_the_beginning_of_the_next() -> None:
    assert not GRID([7], [8])[0]


def test_nobody_crosses_a_district() -> None:
    assert GRID([9], [10])[0]
    assert GRID.district(np.array([9]))[0] != GRID.district(np.array([10]))[0]
    assert not GRID.close(np.array([9]), np.array([10]))[0]


def test_around_has_all_close_cells_once_and_no_other() -> None:
    listed = sorted(
        (int(cell), int(other))
        for others in GRID.around(CELLS)
        for cell, other in zip(CELLS, others, strict=True)
        if other >= 0
    )
    left, right = (one.ravel() for one in np.meshgrid(CELLS, CELLS, indexing="ij"))
    near = GRID.close(left, right)
    assert listed == sorted(zip(left[near].tolist(), right[near].tolist(), strict=True))


def test_there_are_sixteen_districts() -> None:
    assert set(GRID.district(CELLS)) <= set(range(16))
    assert set(CityGrid(7_500).district(np.arange(7_500))) == set(range(16))
