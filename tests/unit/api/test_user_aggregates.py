from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tidegate as tg
from tidegate.api.user_aggregates import UserAggregate
from tidegate.errors import FlowError


def fail() -> Any:
    raise ZeroDivisionError("no state\nat all")


def mean(**other: Any) -> UserAggregate:
    usual: dict[str, Any] = {
        "init": lambda: (0, 0.0),
        "incr": lambda state, fares: (state[0] + len(fares), state[1] + fares.sum()),
        "final": lambda state: state[1] / state[0],
        "columns": ["fare"],
        "state": "n long, s double",
        "returns": "double",
    }
    return tg.udaf(**(usual | other))


def test_it_is_carried_along_as_it_was_written() -> None:
    column = object()
    given = mean(columns=[column])
    assert given.columns == (column,)
    assert given.merge is None
    assert list(given.functions) == ["init", "incr", "final"]
    assert mean(columns="fare").columns == ("fare",)
    assert list(mean(merge=max).functions) == ["init", "incr", "final", "merge"]


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({"init": 3}, r"init .* must be a function. Got: 3"),
        ({"merge": "sum"}, r"merge .* must be a function. Got: 'sum'"),
        ({"columns": []}, "needs columns"),
        ({"columns": None}, "needs columns"),
        ({"columns": ["fare", "tip"]}, r"incr .* takes a state and an array per column.*take 3 argument"),
        ({"incr": lambda state: state}, r"incr .* takes a state and an array per column.*take 2 argument"),
        ({"final": lambda: 0}, r"final .* takes a state\. Got: final\(\)"),
        ({"merge": lambda one: one}, r"merge .* takes two states.*take 2"),
        ({"init": lambda rows: (0, 0)}, r"init .* takes nothing"),
        ({"init": fail}, r"init .* raised an error. Got: ZeroDivisionError"),
        ({"init": lambda: 0}, r"A state is a tuple.*Got: 0 from init.*n long, s double"),
        ({"state": ""}, "state .* is a type, as text"),
        ({"returns": float}, "returns .* is a type, as text. Got: <class 'float'>"),
    ],
)
def test_what_can_be_told_is_told_at_once(other: dict[str, Any], says: str) -> None:
    with pytest.raises(FlowError, match=says):
        mean(**other)


@pytest.mark.parametrize("incr", [max, lambda state, *arrays: state, lambda state, fares, extra=1: state])
def test_functions_may_take_more_than_they_are_given(incr: Callable[..., Any]) -> None:
    assert mean(incr=incr).incr is incr
