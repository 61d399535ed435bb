from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tidegate.sift.partition.flexible import Divide, Division, FlexiblePart, flexible
from tidegate.sift.regions import Domain

UNIT = Domain(np.zeros(1), np.ones(1))


def _halved(benefit: Callable[[FlexiblePart], float]) -> Divide:
    """Cuts every part at its middle."""
    return lambda part: Division(benefit(part), 0, float(part.low[0] + part.high[0]) / 2)


def test_the_part_of_the_highest_benefit_is_cut_next() -> None:
    found = flexible(UNIT, np.zeros((0, 1)), _halved(lambda part: float(part.low[0])), 4)
    assert found.at.tolist() == [0.5, 0.75, 0.875]


def test_among_equal_benefits_the_part_with_more_rows_is_cut_first() -> None:
    points = np.array([[0.1], [0.6], [0.7], [0.8]])
    found = flexible(UNIT, points, _halved(lambda part: 1.0), 4)
    assert found.at.tolist() == [0.5, 0.75, 0.625]


def test_among_equal_parts_the_lower_number_is_cut_first() -> None:
    found = flexible(UNIT, np.zeros((0, 1)), _halved(lambda part: 1.0), 4)
    assert found.at.tolist() == [0.5, 0.25, 0.125]


def test_parts_that_cannot_be_cut_stay_whole() -> None:
    halved = _halved(lambda part: 1.0)

    def divide(part: FlexiblePart) -> Division | None:
        return halved(part) if part.high[0] - part.low[0] > 0.4 else None

    found = flexible(UNIT, np.zeros((0, 1)), divide, 9)
    assert np.sort(found.at).tolist() == [0.25, 0.5, 0.75]


def test_rows_keep_the_order_of_every_axis_through_cuts() -> None:
    points = np.random.default_rng(4).random((50, 3))
    seen: list[FlexiblePart] = []

    def divide(part: FlexiblePart) -> Division:
        seen.append(part)
        axis = len(seen) % 3
        return Division(float(part.rows), axis, float(part.low[axis] + part.high[axis]) / 2)

    flexible(Domain(np.zeros(3), np.ones(3)), points, divide, 8)
    for part in seen:
        rows = np.flatnonzero(((part.low <= points) & (points < part.high)).all(axis=1))
        for axis, order in enumerate(part.orders):
            assert order.tolist() == rows[np.argsort(points[rows, axis])].tolist()
    assert len(seen) == 13
