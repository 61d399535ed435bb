from __future__ import annotations

from typing import Any

import pytest

from tidegate.errors import FlowError
from tidegate.spark.start import start


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
