from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from tidegate import policies
from tidegate.api.balance import Balance
from tidegate.errors import FlowError


@pytest.mark.parametrize(
    "make",
    [
        lambda: policies.FastJoin(threshold=0.5),
        lambda: policies.FastJoin(threshold=float("nan")),
        lambda: policies.FastJoin(threshold="2"),  # type: ignore[arg-type]
        lambda: policies.FastJoin(search="luck"),  # type: ignore[arg-type]
        lambda: policies.LsStream(threshold=-1.0),
        lambda: policies.LsStream(memory_weight=2),
        lambda: policies.LsStream(memory_weight=None),  # type: ignore[arg-type]
        lambda: policies.LsStream(speeds=(0, 1)),
        lambda: policies.LsStream(speeds=3),  # type: ignore[arg-type]
        lambda: policies.LsStream(speeds=()),
        lambda: policies.ContRand(groups=0),
        lambda: policies.ContRand(groups=1.5),  # type: ignore[arg-type]
    ],
)
def test_a_parameter_out_of_range_is_refused_with_the_range(make: Callable[[], object]) -> None:
    with pytest.raises(FlowError, match=r"Got: \w+=.*Give ") as caught:
        make()
    assert caught.value.code == "POLICY_PARAMETER_RANGE"


def test_periods_are_positive_durations() -> None:
    assert policies.Adaptive(rate_period=timedelta(seconds=5)) != policies.Adaptive()
    with pytest.raises(FlowError, match="POLICY_PERIOD_ZERO"):
        policies.Adaptive(basic_window="0 seconds")
    with pytest.raises(FlowError, match="SHED_EXPLORE_RATIO_RANGE"):
        policies.Adaptive(explore_ratio=0)


def test_a_word_means_its_strategy_with_defaults() -> None:
    assert Balance().named is None
    assert Balance(strategy="none").named == policies.Hash()
    assert Balance(strategy="fastjoin").named == policies.FastJoin(threshold=2.2, search="greedy")
    chosen = policies.LsStream(threshold=1.5)
    assert Balance(strategy=chosen).named is chosen
    assert Balance(strategy=chosen).word == "ls_stream"


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"strategy": "best"}, "BALANCE_STRATEGY_UNKNOWN"),
        ({"strategy": policies.Partial()}, "BALANCE_STRATEGY_UNKNOWN"),
        ({"topology": "ring"}, "BALANCE_TOPOLOGY_UNKNOWN"),
        ({"scale": (4, 2)}, "BALANCE_SCALE_RANGE"),
        ({"scale": (0, 2)}, "BALANCE_SCALE_RANGE"),
        ({"scale": 3}, "BALANCE_SCALE_RANGE"),
        ({"scale": (1,)}, "BALANCE_SCALE_RANGE"),
        ({"scale": (1.5, 2)}, "BALANCE_SCALE_RANGE"),
    ],
)
def test_a_balance_that_means_nothing_is_refused(wrong: dict[str, object], code: str) -> None:
    with pytest.raises(FlowError) as caught:
        Balance(**wrong)  # type: ignore[arg-type]
    assert caught.value.code == code


def test_the_old_spelling_of_a_strategy_is_refused_with_the_new_one() -> None:
    with pytest.raises(FlowError, match="Use 'ls_stream'"):
        Balance(strategy="ls-stream")  # type: ignore[arg-type]
