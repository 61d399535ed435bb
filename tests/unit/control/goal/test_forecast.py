from __future__ import annotations

import json

import numpy as np
import pytest

from tidegate.control.goal.forecast import Arrivals, Expected
from tidegate.model.codec import from_plain, to_plain

SECOND = 1_000_000


def fed(arrivals: Arrivals, rates: list[float], begin: int = 0, busy: float = 0.5) -> list[Expected]:
    """A batch a second."""
    return [arrivals.observe(rate, (begin + number) * SECOND, busy, 1.0) for number, rate in enumerate(rates)]


def test_noise_is_averaged_away_and_a_change_is_believed_at_once() -> None:
    noise = (1000 * (1 + 0.03 * np.random.default_rng(1).standard_normal(20))).tolist()
    arrivals = Arrivals()
    expected = [one.rows for one in fed(arrivals, noise)]
    assert np.std(expected[8:]) < 0.5 * np.std(noise)
    assert fed(arrivals, [3000.0], 20)[0].rows == pytest.approx(3000)
    assert fed(arrivals, [1000.0], 21)[0].rows == pytest.approx(1000)


def test_one_odd_batch_prepares_for_the_next_and_for_nothing_after_it() -> None:
    steady = (1000 * (1 + 0.03 * np.random.default_rng(2).standard_normal(30))).tolist()
    arrivals = Arrivals()
    mean = fed(arrivals, steady)[-1].rows
    (odd,) = fed(arrivals, [1200.0], 30)
    assert odd.rows == pytest.approx(1200)
    assert odd.rows * odd.lasting == pytest.approx(mean)
    (back,) = fed(arrivals, [1000.0], 31)
    assert back.rows == pytest.approx(1000, rel=0.03)
    assert back.lasting == 1


def test_fewer_rows_once_are_no_reason_to_expect_fewer() -> None:
    arrivals = Arrivals()
    fed(arrivals, [1000.0, 1020.0, 980.0, 1010.0, 990.0, 1000.0])
    (odd,) = fed(arrivals, [850.0], 6)
    assert odd.rows == pytest.approx(1000, rel=0.01)
    assert odd.lasting == 1
    assert fed(arrivals, [860.0], 7)[0].rows == pytest.approx(860, rel=0.01)


def test_the_second_odd_batch_to_the_same_side_is_a_change() -> None:
    arrivals = Arrivals()
    fed(arrivals, [1000.0, 1020.0, 980.0, 1010.0, 990.0, 1000.0])
    assert fed(arrivals, [1120.0], 6)[0].lasting < 1
    (second,) = fed(arrivals, [1130.0], 7)
    assert second.lasting == 1
    assert second.rows >= 1130


def test_a_rate_that_goes_on_rising_is_expected_to_rise() -> None:
    ramp = [1000 * 1.05**k for k in range(14)]
    rows = [one.rows for one in fed(Arrivals(), [1000.0] * 8 + ramp)]
    assert rows[-1] == pytest.approx(ramp[-1] * 1.05, rel=0.02)


def test_a_long_batch_makes_the_next_one_larger_and_is_behind() -> None:
    arrivals = Arrivals()
    fed(arrivals, [1000.0] * 3)
    (last,) = fed(arrivals, [1000.0], 3, busy=3.0)
    assert last.rows == pytest.approx(3000)
    assert last.behind_seconds == pytest.approx(2)


def test_back_to_back_batches_bring_what_came_meanwhile() -> None:
    arrivals = Arrivals()
    arrivals.observe(100, 0, 0.4, 0.0)
    expected = arrivals.observe(400, 400_000, 0.8, 0.0)
    assert expected.rows == pytest.approx(800)
    assert expected.behind_seconds == 0


def test_rows_that_wait_at_a_source_are_as_late_as_they_took_to_come() -> None:
    arrivals = Arrivals()
    fed(arrivals, [1000.0] * 3)
    waiting = arrivals.observe(1000, 3 * SECOND, 0.5, 1.0, waiting=5000)
    assert waiting.rows == pytest.approx(1000)
    assert waiting.behind_seconds == pytest.approx(5)


def test_what_gathered_before_the_first_batch_is_no_rate() -> None:
    arrivals = Arrivals()
    arrivals.observe(1_000_000, 0, 2.0, 1.0)
    assert arrivals.observe(2000, 2 * SECOND, 0.5, 1.0).rows == pytest.approx(1000)


def test_no_rows_are_expected_after_none() -> None:
    arrivals = Arrivals()
    assert [one.rows for one in fed(arrivals, [1000.0, 1000.0, 0.0])][-1] == 0
    assert fed(arrivals, [500.0], 3)[0].rows == pytest.approx(500)


def test_restored_it_expects_the_same() -> None:
    arrivals = Arrivals()
    fed(arrivals, [1000.0, 1040.0, 980.0, 1010.0, 2000.0])
    restored = from_plain(Arrivals, json.loads(json.dumps(to_plain(arrivals))))
    assert fed(restored, [2100.0, 2200.0], 5) == fed(arrivals, [2100.0, 2200.0], 5)


def test_what_comes_once_after_a_silence_is_not_what_lasts() -> None:
    arrivals = Arrivals()
    rates = [
        arrivals.observe(rows, number * 10**6, 0.5, 1.0).lasting_rate
        for number, rows in enumerate([100, 100, 0, 0, 900, 100, 300, 300, 300])
    ]
    assert rates[4] == 0
    assert max(rates[:6]) == 100
    assert rates[-1] == pytest.approx(300)


def test_idle_triggers_that_were_left_out_do_not_thin_out_the_rows_behind_them() -> None:
    def rate(begin: int) -> float:
        arrivals = Arrivals()
        fed(arrivals, [1000.0] * 5 + [0.0])
        assert arrivals.is_silent
        return fed(arrivals, [1000.0], begin)[0].rows

    assert rate(6) == rate(600) == pytest.approx(1000)
