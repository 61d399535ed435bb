from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tidegate import policies
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


def test_a_latency_may_be_a_timedelta() -> None:
    assert Goal(timedelta(seconds=2)).latency_us == 2 * SECOND


def test_batches_that_begin_too_far_apart_can_never_be_on_time() -> None:
    with pytest.raises(FlowError, match="GOAL_LATENCY_BELOW_TRIGGER"):
        Goal(latency="2 seconds").batch_seconds(2 * SECOND)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"latency": "0 seconds"}, "GOAL_LATENCY_ZERO"),
        ({"latency": "soon"}, "DURATION_INVALID.*latency of the goal"),
        ({"max_loss": 1.0}, "MAX_LOSS_RANGE"),
        ({"max_loss": -0.1}, r"MAX_LOSS_RANGE.*Got: -0\.1"),
        ({"max_loss": True}, "MAX_LOSS_RANGE"),
        ({"max_loss": {"out": 0.1}}, "MAX_LOSS_RANGE"),
        ({"max_state": "much"}, "SIZE_INVALID.*max_state of the goal"),
        ({"max_state": "0 GB"}, "SIZE_ZERO.*max_state of the goal"),
        ({"observe": "yes"}, "GOAL_OBSERVE_TYPE"),
    ],
)
def test_a_goal_that_means_nothing_is_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(FlowError, match=said):
        Goal(**{"latency": "1 second", **wrong})


def test_only_the_latency_may_stand_without_its_name() -> None:
    with pytest.raises(TypeError):
        Goal("1 second", 0.2)  # type: ignore[call-arg]


@pytest.mark.parametrize(("size", "amount"), [("2 GB", 2 * 10**9), ("1.5MiB", 3 * 2**19), ("10 b", 10)])
def test_a_size_is_a_number_and_a_unit(size: str, amount: int) -> None:
    assert Goal("1 second", max_state=size).state_bytes == amount


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"join": "some"}, "SHED_JOIN_UNKNOWN"),
        ({"join": policies.FastJoin()}, "SHED_JOIN_UNKNOWN"),
        ({"rate": "fast"}, "SHED_RATE_UNKNOWN"),
        ({"rate": 0.0}, "SHED_RATE_UNKNOWN"),
        ({"rate": 1.5}, "SHED_RATE_UNKNOWN"),
        ({"sift": "best"}, "SHED_SIFT_UNKNOWN"),
        ({"repair": "later"}, "SHED_REPAIR_UNKNOWN"),
        ({"explore_ratio": 0.0}, "SHED_EXPLORE_RATIO_RANGE"),
        ({"explore_ratio": 2.0}, "SHED_EXPLORE_RATIO_RANGE"),
        ({"explore_ratio": None}, "SHED_EXPLORE_RATIO_RANGE"),
        ({"fairness": None}, "SHED_FAIRNESS_RANGE"),
        ({"fairness": "half"}, "SHED_FAIRNESS_RANGE"),
        ({"fairness": float("nan")}, "SHED_FAIRNESS_RANGE"),
        ({"regions": True}, "SHED_REGIONS_RANGE"),
        ({"regions": 2.5}, "SHED_REGIONS_RANGE"),
        ({"window": None}, "SHED_WINDOW_RANGE"),
        ({"window": float("nan")}, "SHED_WINDOW_RANGE"),
        ({"repair": "idle", "join": "random_drop"}, "SHED_REPAIR_IMPOSSIBLE"),
        ({"repair": "on_stop", "join": policies.WindowReduction()}, "SHED_REPAIR_IMPOSSIBLE"),
    ],
)
def test_a_way_to_shed_that_does_not_exist_is_refused(wrong: dict[str, Any], code: str) -> None:
    with pytest.raises(FlowError) as caught:
        Shed(**wrong)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"join": "random"}, "'random_drop'"),
        ({"join": "window-reduction"}, "'window_reduction'"),
        ({"rate": "model"}, "'auto'"),
        ({"repair": "when idle"}, "'idle'"),
        ({"repair": "at the end"}, "'on_stop'"),
    ],
)
def test_an_old_word_is_refused_with_the_new_one(old: dict[str, Any], new: str) -> None:
    with pytest.raises(FlowError, match=f"Use {new}"):
        Shed(**old)


@pytest.mark.parametrize("settings", [{"max_repair_state": "much"}, {"max_repair_state": "3"}])
def test_what_is_kept_for_repair_is_a_size(settings: dict[str, Any]) -> None:
    with pytest.raises(FlowError, match=r"SIZE_INVALID.*max_repair_state of Shed is not a size"):
        Shed(**settings)


def test_repair_is_asked_for_by_name_and_bounded_in_bytes() -> None:
    assert Shed().repair is None
    assert Shed(repair="idle", max_repair_state="1.5 GiB").repair_bytes == 3 << 29
    assert Shed(repair="on_stop").repair_bytes == 10**9


def test_a_word_means_its_policy_with_defaults() -> None:
    assert Shed().policy == policies.Selective()
    assert Shed(join="adaptive", explore_ratio=0.3).policy == policies.Adaptive(explore_ratio=0.3)
    assert Shed(join="none").policy is None
    chosen = policies.Adaptive(direction=False)
    assert Shed(join=chosen).policy is chosen
