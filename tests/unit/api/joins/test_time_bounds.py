"""`within=`: between, one duration, the same window, the full history, and what is refused."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tidegate.api.joins.time_bounds import UNBOUNDED, between, same_window, time_condition
from tidegate.errors import FlowError
from tidegate.join.within import TimeCondition, Tumbling, Unbounded, Within

SECOND = 1_000_000
MINUTE, HOUR = 60 * SECOND, 3600 * SECOND


@pytest.mark.parametrize(
    ("lower", "upper", "within"),
    [
        ("-5 minutes", "1 minute", Within(-5 * MINUTE, MINUTE)),
        ("1 hour", "2 hours", Within(HOUR, 2 * HOUR)),
        ("-2 hours", "-1 hour", Within(-2 * HOUR, -HOUR)),
        (timedelta(hours=-1), timedelta(), Within(-HOUR, 0)),
        ("0 s", "0 s", Within(0, 0)),
        ("INTERVAL -5 MINUTES", "- INTERVAL 1 MINUTE", Within(-5 * MINUTE, -MINUTE)),
    ],
)
def test_between_has_bounds_of_any_sign(lower: Any, upper: Any, within: Within) -> None:
    assert between(lower, upper) == within


def test_crossed_bounds_are_refused_with_the_right_order() -> None:
    with pytest.raises(
        FlowError, match=r"JOIN_WITHIN_EMPTY.*above the upper one.*smaller bound first: tg\.between"
    ) as caught:
        between("1 minute", "-5 minutes")
    assert caught.value.code == "JOIN_WITHIN_EMPTY"


@pytest.mark.parametrize(("lower", "upper", "bound"), [("soon", "1 s", "lower"), ("1 s", "later", "upper")])
def test_a_bound_that_is_no_duration_is_named(lower: str, upper: str, bound: str) -> None:
    with pytest.raises(FlowError, match=f"The {bound} bound of between is not a duration"):
        between(lower, upper)


def test_the_same_window_has_a_size() -> None:
    assert same_window("10 seconds") == Tumbling(10 * SECOND)
    assert same_window(timedelta(minutes=1)) == Tumbling(MINUTE)
    with pytest.raises(FlowError, match=r"JOIN_WINDOW_SIZE.*longer than zero") as caught:
        same_window("0 seconds")
    assert caught.value.code == "JOIN_WINDOW_SIZE"
    with pytest.raises(FlowError, match=r"DURATION_NEGATIVE.*The size of same_window is negative"):
        same_window("-1 second")


@pytest.mark.parametrize(
    ("given", "condition"),
    [
        ("2 seconds", Within(-2 * SECOND, 2 * SECOND)),
        ("INTERVAL 2 SECONDS", Within(-2 * SECOND, 2 * SECOND)),
        (timedelta(seconds=3), Within(-3 * SECOND, 3 * SECOND)),
        (between("1 hour", "2 hours"), Within(HOUR, 2 * HOUR)),
        (same_window("10 seconds"), Tumbling(10 * SECOND)),
        (UNBOUNDED, Unbounded()),
    ],
)
def test_every_form_is_understood(given: Any, condition: TimeCondition) -> None:
    assert time_condition(given) == condition


def test_the_full_history_is_shown_as_it_is_written() -> None:
    assert repr(UNBOUNDED) == "tg.UNBOUNDED"


@pytest.mark.parametrize(
    ("given", "code", "shows"),
    [
        (None, "JOIN_WITHIN_MISSING", 'within="20 seconds", within=tg.between("-5 minutes", "1 minute")'),
        (("5 minutes", "1 minute"), "JOIN_WITHIN_PAIR", 'within=tg.between("-5 minutes", "1 minute")'),
        (["1 s"], "JOIN_WITHIN_PAIR", "right.time - left.time"),
        (20, "JOIN_WITHIN_UNKNOWN", "tg.UNBOUNDED"),
        (True, "JOIN_WITHIN_UNKNOWN", 'tg.same_window("10 seconds")'),
    ],
)
def test_other_forms_are_refused_with_how_to_write_them(given: Any, code: str, shows: str) -> None:
    with pytest.raises(FlowError) as caught:
        time_condition(given)
    assert caught.value.code == code
    assert shows in str(caught.value)


@pytest.mark.parametrize("given", ["soon", "-2 seconds", ""])
def test_one_duration_must_be_one_and_not_negative(given: str) -> None:
    with pytest.raises(FlowError, match=r"^\[DURATION_(INVALID|NEGATIVE)\] within is "):
        time_condition(given)
