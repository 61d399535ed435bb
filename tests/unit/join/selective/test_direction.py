from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.join.selective.direction import directed_fractions

WINDOW = st.floats(0.1, 100)


@given(st.floats(0, 1), WINDOW, WINDOW, st.floats(0, 1), st.floats(0, 1))
def test_the_cost_stays_the_same_and_fractions_are_fractions(
    fraction: float, first: float, second: float, value: float, other: float
) -> None:
    one, two = directed_fractions(fraction, (first, second), (value, other))
    assert 0 <= one <= 1
    assert 0 <= two <= 1
    assert one * first + two * second == pytest.approx(fraction * (first + second), abs=1e-9)


@given(st.floats(0, 1), WINDOW, WINDOW)
def test_the_other_window_gets_something_only_when_the_better_one_is_processed_whole(
    fraction: float, first: float, second: float
) -> None:
    one, two = directed_fractions(fraction, (first, second), (0.1, 0.2))
    assert two == pytest.approx(1) or one == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    ("fraction", "windows", "values", "expected"),
    [
        (0.2, (20, 20), (2, 1), (0.4, 0.0)),
        (0.2, (20, 20), (1, 2), (0.0, 0.4)),
        (0.7, (20, 20), (2, 1), (1.0, 0.4)),
        (0.5, (10, 30), (2, 1), (1.0, 1 / 3)),
        (0.5, (10, 30), (1, 2), (0.0, 2 / 3)),
        (0.3, (20, 20), (1, 1), (0.6, 0.0)),
        (0.3, (20, 0), (1, 2), (0.3, 0.3)),
    ],
)
def test_the_more_productive_window_comes_first(
    fraction: float,
    windows: tuple[float, float],
    values: tuple[float, float],
    expected: tuple[float, float],
) -> None:
    assert directed_fractions(fraction, windows, values) == pytest.approx(expected)
