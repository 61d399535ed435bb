from __future__ import annotations

from typing import Any

import pytest

from tidegate.errors import FlowError
from tidegate.goals import Goal, Shed

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
        ({"latency": "1 second", "loss_max": 0.1}, "no loss_max"),
        ({"latency": "1 second", "priority": {"out": 2.0}}, "no priority"),
    ],
)
def test_a_goal_that_means_nothing_is_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(FlowError, match=said):
        Goal(**wrong)


@pytest.mark.parametrize("wrong", [{"join": "some"}, {"rate": "fast"}, {"sampling": 0.0}, {"sampling": 2.0}])
def test_a_way_to_shed_that_does_not_exist_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(FlowError):
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
