from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tidegate.sift.partition.auto.worth import worth_points


def worth(
    rows: Sequence[Sequence[float]],
    low: Sequence[Sequence[float]],
    high: Sequence[Sequence[float]],
    owner: Sequence[int],
    gain: Sequence[float],
    reach: float = 1.0,
) -> dict[tuple[float, ...], float]:
    """Worth by place, in a square of side 1; data may be from 0 to `reach` on both axes."""
    points, values = worth_points(
        np.array(rows, np.float64).reshape(-1, 2),
        (np.array(low, np.float64), np.array(high, np.float64)),
        np.array(owner, np.int32),
        np.array(gain, np.float64),
        np.ones(2),
        (np.zeros((1, 2)), np.full((1, 2), reach)),
    )
    return dict(zip(map(tuple, points.tolist()), values.tolist(), strict=True))


def test_rows_of_a_query_share_its_worth_and_rows_of_several_queries_add_it_up() -> None:
    found = worth(
        [[0.1, 0.1], [0.2, 0.2], [0.9, 0.9]],
        [[0.0, 0.0], [0.15, 0.15]],
        [[0.5, 0.5], [0.5, 0.5]],
        [0, 1],
        [1.0, 3.0],
    )
    assert found == pytest.approx({(0.1, 0.1): 0.5, (0.2, 0.2): 3.5})


def test_a_query_without_sample_rows_has_its_worth_in_its_centre() -> None:
    found = worth([[0.9, 0.9]], [[0.0, 0.0]], [[0.5, 0.25]], [0], [2.0])
    assert found == pytest.approx({(0.25, 0.125): 2.0})


def test_what_asks_for_places_that_no_data_reaches_has_no_worth() -> None:
    low, high = [[0.0, 0.0], [0.5, 0.5], [0.75, 0.75]], [[0.25, 0.5], [0.75, 0.75], [1.0, 1.0]]
    assert worth([], low, high, [0, 1, 2], [1.0] * 3, reach=0.3) == pytest.approx({(0.125, 0.25): 1.0})
    # Of several boxes the one that data can reach has it all.
    assert worth([], low, high, [0, 0, 0], [1.0], reach=0.3) == pytest.approx({(0.125, 0.25): 1.0})
    assert worth([[0.9, 0.9]], low, high, [0, 1, 2], [1.0] * 3, reach=0.3).keys() == {
        (0.125, 0.25),
        (0.9, 0.9),
    }


def test_the_lower_edge_of_a_box_belongs_to_it_and_the_upper_does_not() -> None:
    assert (0.0, 0.0) in worth([[0.0, 0.0]], [[0.0, 0.0]], [[0.5, 0.5]], [0], [1.0])
    for edge in ([0.5, 0.0], [0.0, 0.5]):
        assert tuple(edge) not in worth([edge], [[0.0, 0.0]], [[0.5, 0.5]], [0], [1.0])


def test_boxes_of_one_query_share_its_worth_by_rows_or_else_by_volume() -> None:
    low, high = [[0.0, 0.0], [0.5, 0.0]], [[0.25, 1.0], [1.0, 0.5]]
    by_rows = worth([[0.1, 0.1], [0.6, 0.1], [0.6, 0.2]], low, high, [0, 0], [3.0])
    assert by_rows == pytest.approx({(0.1, 0.1): 1.0, (0.6, 0.1): 1.0, (0.6, 0.2): 1.0})
    high[1][1] = 0.25
    by_volume = worth([], low, high, [0, 0], [3.0])
    assert by_volume == pytest.approx({(0.125, 0.5): 2.0, (0.75, 0.125): 1.0})


def test_boxes_of_no_volume_that_a_float_could_tell_share_equally() -> None:
    found = worth([], [[0.1, 0.1], [0.5, 0.5]], [[0.1, 0.1], [0.5, 0.5]], [0, 0], [1.0])
    assert found == pytest.approx({(0.1, 0.1): 0.5, (0.5, 0.5): 0.5})
