"""Chance against lasting imbalance."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from tidegate.route.auto.lasting import observe, too_heavy

NOISE = np.array([0.05, 0.05])


def after(*shares: float) -> tuple[dict[str, Any], np.ndarray]:
    memory: dict[str, Any] = {}
    for share in shares:
        now = np.array([share, 2 - share])
        memory = json.loads(json.dumps(observe(memory, now)))
    return memory, now


def test_one_batch_far_above_the_trigger_is_enough() -> None:
    assert too_heavy(*after(1.21), NOISE, 1.1)
    assert not too_heavy(*after(1.19), NOISE, 1.1)


def test_a_little_above_must_last() -> None:
    assert not too_heavy(*after(1.15), NOISE, 1.1)
    assert too_heavy(*after(*[1.15] * 5), NOISE, 1.1)


def test_chance_evens_out() -> None:
    assert not too_heavy(*after(1.18, 1.0, 1.17, 1.02, 1.15), NOISE, 1.1)


def test_old_batches_fade_and_another_number_of_instances_starts_afresh() -> None:
    memory, _ = after(*[1.0] * 50, *[1.5] * 20)
    assert memory["mean"][0] > 1.4
    assert observe(memory, np.ones(3)) == {"batches": 1, "mean": [1, 1, 1]}
