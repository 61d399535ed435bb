from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.api.frames import SECOND, a_stream
from tests.unit.messages.expecting import expect

from tidegate.api.balance import Balance
from tidegate.api.goal import Goal, Shed
from tidegate.api.nodes import Output
from tidegate.api.start import StartOptions, start

GOAL = Goal(latency="2 seconds")


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Sequence[Output], StartOptions]]:
    """What the driver was asked to run."""
    calls: list[tuple[Sequence[Output], StartOptions]] = []
    driver = SimpleNamespace(run_flow=lambda outputs, options: calls.append((outputs, options)))
    monkeypatch.setitem(sys.modules, "tidegate.driver.start", driver)
    return calls


def test_outputs_and_defaults_reach_the_driver(given: list[tuple[Sequence[Output], StartOptions]]) -> None:
    outputs = [a_stream().write_to("noop", name=name) for name in "ab"]
    start(*outputs)
    assert given == [(tuple(outputs), StartOptions())]
    assert given[0][1].changed == []


def test_every_setting_reaches_the_driver(given: list[tuple[Sequence[Output], StartOptions]]) -> None:
    settings: dict[str, Any] = {
        "name": "dispatch",
        "checkpoint": Path("some") / "folder",
        "trigger": "1 second",
        "goal": GOAL,
        "shed": Shed(join="partial"),
        "balance": Balance(strategy="hash"),
        "instances": 4,
        "partitions": 32,
        "watermark": "own",
        "retention": timedelta(days=7),
        "seed": 2**63 - 1,
    }
    start(a_stream().write_to("noop"), **settings)
    ((_, options),) = given
    for name, value in settings.items():
        assert getattr(options, name) == (str(value) if name == "checkpoint" else value)
    assert (options.trigger_us, options.retention_us) == (SECOND, 7 * 86_400 * SECOND)
    assert sorted(options.changed) == sorted(settings)


def test_what_is_available_now_needs_no_trigger(given: list[tuple[Sequence[Output], StartOptions]]) -> None:
    start(a_stream().write_to("noop"), available_now=True)
    ((_, options),) = given
    assert (options.available_now, options.trigger_us) == (True, None)
    assert options.changed == ["available_now"]


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"goal": "2 seconds"}, "START_SETTING_TYPE"),
        ({"shed": "random_drop"}, "START_SETTING_TYPE"),
        ({"balance": Shed()}, "START_SETTING_TYPE"),
        ({"watermark": "fastest"}, "WATERMARK_RULE_UNKNOWN"),
        ({"seed": -1}, "SEED_RANGE"),
        ({"seed": 2**63}, "SEED_RANGE"),
        ({"seed": 1.5}, "SEED_RANGE"),
        ({"seed": True}, "SEED_RANGE"),
        ({"trigger": "available now"}, "TRIGGER_AVAILABLE_NOW"),
        ({"trigger": "available_now"}, "TRIGGER_AVAILABLE_NOW"),
        ({"trigger": "often"}, "DURATION_INVALID"),
        ({"trigger": 1}, "DURATION_INVALID"),
        ({"retention": "long"}, "DURATION_INVALID"),
        ({"available_now": 1}, "AVAILABLE_NOW_TYPE"),
        ({"available_now": True, "trigger": "1 second"}, "AVAILABLE_NOW_WITH_TRIGGER"),
        ({"available_now": True, "goal": GOAL}, "AVAILABLE_NOW_WITH_GOAL"),
        ({"renames": {"a": "b", "b": "a"}}, "RENAMES_INVALID"),
        ({"renames": {"a": "b", "c": "b"}}, "RENAMES_INVALID"),
        ({"renames": {"a": "a"}}, "RENAMES_INVALID"),
        ({"renames": {"a": 1}}, "RENAMES_INVALID"),
        ({"renames": ["a", "b"]}, "RENAMES_INVALID"),
        ({"renames": {"a": " "}}, "NAME_UNUSABLE"),
        ({"name": ""}, "NAME_UNUSABLE"),
        ({"checkpoint": ""}, "PATH_TYPE"),
        ({"checkpoint": 3}, "PATH_TYPE"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_before_anything_runs(
    given: list[tuple[Sequence[Output], StartOptions]], settings: dict[str, Any], code: str
) -> None:
    expect(code, lambda: start(a_stream().write_to("noop"), **settings))
    assert given == []


def test_the_error_names_the_setting() -> None:
    act = lambda: start(a_stream().write_to("noop"), trigger="often")  # noqa: E731
    assert expect("DURATION_INVALID", act).details["problem"] == "trigger is not a duration"
