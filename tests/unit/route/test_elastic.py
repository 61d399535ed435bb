"""How many instances: enough, no more than needed, and no swinging."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import FlowError
from tidegate.route.elastic import Elastic

ELASTIC = Elastic(least=2, most=20, seconds=1.0)


def story(work: float, start: int, batches: int = 12, elastic: Elastic = ELASTIC) -> list[int]:
    """The number of instances over time, for so many seconds of work in each batch."""
    present, seen = start, [start]
    memory: Mapping[str, Any] = {}
    for _ in range(batches):
        present, memory = elastic.wanted(np.full(present, work / present), json.loads(json.dumps(memory)))
        seen.append(present)
    return seen


def test_between_low_and_high_nothing_changes() -> None:
    for busy in (0.3, 0.5, 0.8):
        assert set(story(busy * 4, 4)) == {4}


def test_more_work_brings_more_instances_after_some_patience() -> None:
    assert story(3.6, 4)[:5] == [4, 4, 4, 6, 6]


def test_too_much_work_cannot_wait() -> None:
    assert story(6.0, 4)[:3] == [4, 10, 10]


def test_less_work_gives_instances_back() -> None:
    assert story(1.8, 12)[:5] == [12, 12, 12, 3, 3]


def test_an_uneven_load_needs_more() -> None:
    even, _ = ELASTIC.wanted(np.full(4, 1.1), {})
    uneven, _ = ELASTIC.wanted(np.array([1.1, 1.1, 1.1, 1.3]), {})
    assert uneven > even


def test_bounds_hold() -> None:
    assert story(1000.0, 4)[1] == 20
    assert story(0.0, 4)[-1] == 2
    assert ELASTIC.wanted(np.ones(40), {})[0] == 20
    assert ELASTIC.wanted(np.ones(1), {})[0] == 2


@given(st.floats(0, 30), st.integers(2, 20))
@settings(max_examples=60)
def test_steady_work_causes_one_change_at_most(work: float, start: int) -> None:
    seen = story(work, start)
    assert sum(one != other for one, other in pairwise(seen)) <= 1


def test_settings_that_would_swing_are_refused() -> None:
    with pytest.raises(FlowError, match=r"BALANCE_SCALE_RANGE.*1 <= least <= most. Got: least 3, most 2"):
        Elastic(3, 2, 1.0)
    with pytest.raises(FlowError, match=r"BALANCE_SCALE_RANGE.*2 · low <= busy.*defaults"):
        Elastic(1, 2, 1.0, low=0.5)
