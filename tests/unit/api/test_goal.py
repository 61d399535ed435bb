from __future__ import annotations

from typing import Any

import pytest

from tidegate.api.goal import Goal, Shed
from tidegate.errors import FlowError

SECOND = 1_000_000


@pytest.mark.parametrize(
    ("trigger_us", "seconds"), [(0, 1.0), (SECOND // 2, 1.0), (SECOND, 1.0), (3 * SECOND // 2, 0.5)]
)
def test_a_row_that_just_missed_a_batch_waits_for_the_next_and_takes_part_in_it(
    trigger_us: int, seconds: float
) -> None:
    batch = Goal(latency="2 seconds").batch_seconds(trigger_us)
    assert batch == pytest.approx(seconds)
    assert max(batch, trigger_us / SECOND) + batch == pytest.approx(2.0)


def test_batches_that_begin_too_far_apart_can_never_be_on_time() -> None:
    with pytest.raises(FlowError, match="begin further apart"):
        Goal(latency="2 seconds").batch_seconds(2 * SECOND)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"latency": "0 seconds"}, "is zero"),
        ({"latency": "soon"}, "not a duration"),
        ({"latency": "1 second", "loss_max": 1.0}, "loss_max of a goal is a share"),
        ({"latency": "1 second", "loss_max": {"out": -0.1}}, "loss_max of the output 'out'"),
        ({"latency": "1 second", "loss_max": True}, "is a share"),
        ({"latency": "1 second", "priority": {"out": 0.0}}, "priority of the output 'out'"),
        ({"latency": "1 second", "priority": {"out": float("nan")}}, "is not a weight"),
        ({"latency": "1 second", "priority": {"out": float("inf")}}, "is not a weight"),
        ({"latency": "1 second", "priority": ["out"]}, "says for each output what its loss counts"),
        ({"latency": "1 second", "priority": "out"}, "says for each output what its loss counts"),
        ({"latency": "1 second", "state_max": "much"}, "not a size"),
        ({"latency": "1 second", "state_max": "0 GB"}, "state_max of the goal is zero"),
    ],
)
def test_a_goal_that_means_nothing_is_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(FlowError, match=said):
        Goal(**wrong)


def test_what_is_not_named_counts_once_and_may_lose_all() -> None:
    goal = Goal("1 second", loss_max={"a": 0.1}, priority={"b": 3})
    assert goal.weights(["a", "b"]) == {"a": 1.0, "b": 3.0}
    assert goal.bounds(["a", "b"]) == {"a": 0.1}
    assert Goal("1 second", loss_max=0.2).bounds(["a", "b"]) == {"a": 0.2, "b": 0.2}
    assert Goal("1 second", loss_max={"a": 0.1, "b": None}).bounds(["a", "b"]) == {"a": 0.1}


@pytest.mark.parametrize(("size", "amount"), [("2 GB", 2 * 10**9), ("1.5MiB", 3 * 2**19), ("10 b", 10)])
def test_a_size_is_a_number_and_a_unit(size: str, amount: int) -> None:
    assert Goal("1 second", state_max=size).state_bytes == amount


def test_names_that_no_output_has_are_refused() -> None:
    with pytest.raises(FlowError, match=r"priority of the goal names.*'near'.*'out'"):
        Goal("1 second", priority={"near": 2}).weights(["out"])
    with pytest.raises(FlowError, match="loss_max of the goal names"):
        Goal("1 second", loss_max={"near": 0.2}).bounds(["out"])
    with pytest.raises(FlowError, match="Got: 3, 'a'"):
        Goal("1 second", priority={3: 2, "a": 1}).weights(["out"])  # type: ignore[dict-item]


def test_a_goal_that_lets_no_output_lose_anything_is_refused() -> None:
    with pytest.raises(FlowError, match="nothing to be left out"):
        Goal("1 second", loss_max=0.0).bounds(["a", "b"])
    assert Goal("1 second", loss_max={"a": 0.0}).bounds(["a", "b"]) == {"a": 0.0}


@pytest.mark.parametrize(
    "wrong",
    [
        {"join": "some"},
        {"rate": "fast"},
        {"sampling": 0.0},
        {"sampling": 2.0},
        {"sampling": None},
        {"fairness": None},
        {"fairness": "half"},
        {"fairness": float("nan")},
        {"regions": True},
        {"regions": 2.5},
        {"window": None},
        {"window": float("nan")},
    ],
)
def test_a_way_to_shed_that_does_not_exist_is_refused(wrong: dict[str, Any]) -> None:
    ((name, _),) = wrong.items()
    with pytest.raises(FlowError, match=f"{name}="):
        Shed(**wrong)


def test_repair_is_asked_for_by_name_and_bounded_in_bytes() -> None:
    assert Shed().repair is None
    assert Shed(repair="when idle", repair_max="1.5 GiB").repair_bytes == 3 << 29
    assert Shed(repair="at the end").repair_bytes == 10**9


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"repair": "later"}, "does not know repair='later'"),
        ({"repair": "when idle", "join": "random"}, "gives up rows"),
        ({"repair": "at the end", "join": "window-reduction"}, "gives up rows"),
        ({"repair_max": "much"}, "repair_max is not a size"),
        ({"repair_max": "3"}, "not a size"),
    ],
)
def test_a_repair_that_cannot_be_is_refused(settings: dict[str, str], said: str) -> None:
    with pytest.raises(FlowError, match=said):
        Shed(**settings)  # type: ignore[arg-type]
