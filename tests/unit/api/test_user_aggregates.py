from __future__ import annotations

import pickle
from typing import Any

import pytest

from tidegate.api.nodes import Window
from tidegate.api.sources import stream
from tidegate.api.user_aggregates import Aggregator, for_workers, has_merge
from tidegate.errors import FlowError


class Frame:
    columns = ("ts", "fare")


class Whole(Aggregator):
    """Without merge."""

    state = "n long, s double"
    returns = "double"

    def zero(self) -> tuple[int, float]:
        return 0, 0.0

    def update(self, state: tuple[int, float], fares: Any) -> tuple[int, float]:
        return state[0] + len(fares), state[1] + fares.sum()

    def finish(self, state: tuple[int, float]) -> float:
        return state[1] / state[0]


class Mean(Whole):
    def merge(self, one: tuple[int, float], other: tuple[int, float]) -> tuple[int, float]:
        return one[0] + other[0], one[1] + other[1]


class Scaled(Mean):
    """With a parameter that zero needs, set behind the base."""

    def __init__(self, column: str, *, scale: float) -> None:
        super().__init__(column)
        self.scale = scale

    def zero(self) -> tuple[int, float]:
        return 0, 0.0 * self.scale


class Forgetful(Mean):
    def __init__(self, column: str) -> None:
        self.column = column


def taken(given: Any) -> tuple[tuple[str, Any], ...]:
    frame: Any = Frame()
    made = stream(frame, time="ts", name="rides", lateness="0 seconds").window("1 minute").agg(mean=given)
    assert isinstance(made._node, Window)
    return made._node.aggregates


def changed(**attributes: Any) -> Aggregator:
    """An instance of a class with other attributes."""
    return type("Changed", (Mean,), attributes)("fare")  # type: ignore[no-any-return]


def fail(self: Any) -> Any:
    raise ZeroDivisionError("no state\nat all")


def test_an_instance_goes_along_as_it_is() -> None:
    mean = Mean("fare")
    assert taken(mean) == (("mean", mean),)
    assert mean.columns == ("fare",)


def test_a_subclass_may_have_parameters_of_its_own() -> None:
    scaled = Scaled("fare", scale=2.0)
    assert taken(scaled) == (("mean", scaled),)


def test_merge_is_optional_and_none_means_without() -> None:
    assert has_merge(Mean("fare"))
    assert not has_merge(Whole("fare"))
    assert not has_merge(changed(merge=None))
    assert taken(changed(merge=None))


def test_workers_get_all_but_the_columns() -> None:
    column = lambda: None  # noqa: E731  # like a Spark expression, it cannot be pickled
    given = Scaled(column, scale=2.0)  # type: ignore[arg-type]
    sent = pickle.loads(pickle.dumps(for_workers(given)))
    assert (sent.columns, sent.scale, sent.zero()) == ((), 2.0, (0, 0.0))
    assert given.columns == (column,), "the user's own is as it was"


@pytest.mark.parametrize(
    ("given", "code", "says"),
    [
        (Mean, "AGGREGATOR_NOT_AN_INSTANCE", r"'mean' is a class.*mean=Mean\(\"fare\"\)"),
        (Mean(), "AGGREGATOR_COLUMNS_MISSING", r"'mean' has no columns. Got: Mean\(\)"),
        (Forgetful("fare"), "AGGREGATOR_COLUMNS_MISSING", r"super\(\).__init__"),
        (Aggregator("fare"), "AGGREGATOR_METHOD_MISSING", "needs a method zero, which takes no argument"),
        (changed(update=3), "AGGREGATOR_METHOD_MISSING", "method update.*Got: 3"),
        (
            Mean("fare", "tip"),
            "AGGREGATOR_METHOD_ARGUMENTS",
            "update must take a state and one array per.*3 arg",
        ),
        (changed(update=lambda self, state: state), "AGGREGATOR_METHOD_ARGUMENTS", "update.*2 argument"),
        (
            changed(finish=lambda self: 0),
            "AGGREGATOR_METHOD_ARGUMENTS",
            r"finish must take a state. Got: finish\(\)",
        ),
        (
            changed(merge=lambda self, one: one),
            "AGGREGATOR_METHOD_ARGUMENTS",
            "merge must take two states.*2 arg",
        ),
        (
            changed(zero=lambda self, rows: (0, 0)),
            "AGGREGATOR_METHOD_ARGUMENTS",
            "zero must take no argument",
        ),
        (changed(zero=fail), "AGGREGATOR_ZERO_FAILED", "zero raised an error. Got: ZeroDivisionError"),
        (changed(zero=lambda self: 0), "AGGREGATOR_STATE_NOT_TUPLE", "Got: 0 from zero.*n long, s double"),
        (changed(state=""), "AGGREGATOR_TYPE_MISSING", "state must be a type, as text"),
        (changed(returns=float), "AGGREGATOR_TYPE_MISSING", "returns must be a type.*Got: <class 'float'>"),
    ],
)
def test_mistakes_are_found_when_the_window_is_described(given: Any, code: str, says: str) -> None:
    with pytest.raises(FlowError, match=says) as caught:
        taken(given)
    assert caught.value.code == code


@pytest.mark.parametrize(
    "update",
    [lambda self, state, *arrays: state, lambda self, state, fares, extra=1: state, staticmethod(max)],
)
def test_methods_may_take_more_than_they_are_given(update: Any) -> None:
    assert taken(changed(update=update))
