"""When a process is warm: batch times no longer fall at equal work."""

from __future__ import annotations

import pytest

from tidegate.control.goal.warm_up import WarmUp


def cold_batches(batches: list[tuple[float, float]]) -> int:
    """Batches after which the process still counts as cold."""
    warm_up = WarmUp()
    for number, (rows, seconds) in enumerate(batches):
        warm_up.observe(rows, seconds)
        if not warm_up.is_cold:
            return number
    return len(batches)


def test_a_process_warms_up_while_its_batches_become_shorter() -> None:
    assert cold_batches([(100, 4.0), (100, 2.5), (100, 1.8), (100, 1.4), (100, 1.35), (100, 1.38)]) == 5


@pytest.mark.parametrize("seconds", [[20.0, 39.0, 302.0], [3.0, 3.0, 3.0], [1.0, 2.0, 1.0]])
def test_batches_that_do_not_become_shorter_are_warm_however_long_they_are(seconds: list[float]) -> None:
    assert cold_batches([(1000, one) for one in seconds]) == 2


def test_a_batch_that_is_shorter_because_it_has_fewer_rows_shows_nothing() -> None:
    assert cold_batches([(1000, 4.0), (500, 2.0), (250, 1.0)]) == 2
    assert cold_batches([(1000, 4.0), (500, 1.0), (250, 0.2), (250, 0.2)]) == 4


def test_batches_without_rows_say_nothing() -> None:
    assert cold_batches([(0, 4.0), (100, 2.0), (0, 0.1), (0, 0.1), (100, 1.0), (0, 0.1)]) == 6
