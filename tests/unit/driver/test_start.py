from __future__ import annotations

from typing import Any

import pytest

from tidegate.driver.engine.settings import numbers
from tidegate.driver.start import start
from tidegate.errors import FlowError


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"goal": "2 seconds"}, r"goal is no tg\.Goal. Got: '2 seconds'. Write goal=tg\.Goal\(…\)"),
        ({"shed": "auto"}, r"shed is no tg\.Shed"),
        ({"balance": "fastjoin"}, r"balance is no tg\.Balance"),
        ({"seed": "x"}, "The seed is a whole number.*Got: 'x'"),
        ({"seed": None}, "The seed is a whole number"),
        ({"seed": -1}, "from 0 to"),
        ({"seed": 2**63}, "from 0 to"),
        ({"checkpoint": 3}, "The checkpoint is not a path. Got: 3"),
        ({"checkpoint": ""}, "The checkpoint is not a path. Got: ''"),
        ({"instances": True}, "instances must be a whole number"),
    ],
)
def test_settings_of_another_kind_are_refused_before_anything_starts(
    wrong: dict[str, Any], said: str
) -> None:
    with pytest.raises(FlowError, match=said):
        start(**wrong)


@pytest.mark.parametrize(
    ("partitions", "instances", "stored", "found"),
    [
        (None, None, None, (32, 4)),
        (None, 3, None, (24, 3)),
        (6, None, None, (6, 4)),
        (2, None, None, (2, 2)),
        (None, None, 3, (3, 3)),
        (None, 2, 3, (3, 2)),
        (5, None, 3, (5, 4)),
        # Refused, with both numbers, where the joins are known.
        (2, 3, None, (2, 3)),
    ],
)
def test_there_are_no_more_instances_than_partitions_unless_asked_for(
    partitions: int | None, instances: int | None, stored: int | None, found: tuple[int, int]
) -> None:
    assert numbers(partitions, instances, stored, 4) == found
