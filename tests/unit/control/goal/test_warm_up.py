"""When a process is warm: batch times no longer fall at equal work."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tidegate.control.goal.warm_up import WarmUp


def cold_batches(batches: Sequence[tuple[float, float]]) -> int:
    """Batches after which the process counts as warm; one more if it stays cold."""
    warm_up = WarmUp()
    for number, (rows, seconds) in enumerate(batches, 1):
        warm_up.observe(rows, seconds)
        if not warm_up.is_cold:
            return number
    return len(batches) + 1


def test_a_process_warms_up_while_its_batches_become_shorter() -> None:
    seconds = [6.2, 2.0, 1.03, 0.88, 0.86, 0.94, 1.09, 0.81, 0.6, 0.49, 0.5, 0.47, 0.5, 0.48, 0.49, 0.5]
    assert cold_batches([(3000, one) for one in seconds]) == 8
    seconds[6:8] = [0.7, 0.6]
    assert cold_batches([(3000, one) for one in seconds]) == 17, "0.47 s of 0.6 s is still falling"
    assert cold_batches([(3000, one) for one in [*seconds, *seconds[-4:] * 4]]) == 32


@pytest.mark.parametrize("noise", [0.8, 1.0, 1.3])
def test_a_single_batch_that_is_longer_than_others_ends_nothing(noise: float) -> None:
    batches = [(100, 8.0), (100, 4.0), (100, noise * 2.0), (100, 2.0), (100, 0.5), (100, noise)]
    assert cold_batches(batches) == 7


@pytest.mark.parametrize("seconds", [[20.0, 39.0, 302.0], [3.0, 3.0, 3.0], [1.0, 2.0, 1.0]])
def test_batches_that_do_not_become_shorter_are_warm_however_long_they_are(seconds: list[float]) -> None:
    assert cold_batches([(1000, one) for one in seconds]) == 2


def test_a_batch_that_is_shorter_because_it_has_fewer_rows_shows_nothing() -> None:
    assert cold_batches([(1000, 4.0), (500, 2.0), (250, 1.0)]) == 2
    assert cold_batches([(1000, 4.0), (500, 1.0), (250, 0.5), (250, 0.5)]) == 4


def test_batches_without_rows_say_nothing() -> None:
    assert cold_batches([(0, 4.0), (100, 2.0), (0, 0.1), (0, 0.1), (100, 2.0), (0, 0.1)]) == 5
