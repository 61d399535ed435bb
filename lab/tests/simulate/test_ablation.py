"""The ablation of the control tuning, with a tuning that stands in for the real one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest

from tidegate_lab.simulate.goal.ablation import (
    NEEDED,
    Variant,
    means,
    measured,
    moved,
    numbers,
    of_mechanisms,
    table,
    with_number,
)
from tidegate_lab.simulate.goal.cheaters import AlwaysSheds, NeverSheds
from tidegate_lab.simulate.goal.metrics import Verdict
from tidegate_lab.simulate.goal.operators import JoinShed, Shed
from tidegate_lab.simulate.goal.scenario import Scenario


@dataclass(frozen=True)
class Part:
    share: float = 0.5


@dataclass(frozen=True)
class Tuning:
    """One number that decides what is shed, and one that nothing reads."""

    idle: float = 3.0
    count: int = 1
    part: Part = Part()


class Sheds(NeverSheds):
    """Every join does so much of its work."""

    def __init__(self, scenario: Scenario, tuning: Tuning) -> None:
        super().__init__(scenario)
        self._shed: dict[str, Shed] = dict(self._nothing)
        for name, one in AlwaysSheds(scenario).plan(0.0).items():
            if isinstance(one, JoinShed) and one.shares is not None:
                left, right = (0 * shares + tuning.part.share for shares in one.shares)
                self._shed[name] = replace(one, shares=(left, right), level=tuning.part.share)

    def plan(self, now: float) -> Mapping[str, Shed]:
        return self._shed


def variant(tuning: Tuning, name: str, factor: float) -> Variant:
    other = with_number(tuning, name, factor)
    return Variant(name, f"{factor:g}", lambda one: Sheds(one, other))


def test_numbers_are_found_in_all_parts_and_changed_one_by_one() -> None:
    tuning = Tuning()
    assert numbers(tuning) == {"idle": 3.0, "count": 1, "part.share": 0.5}
    assert with_number(tuning, "part.share", 0.5) == replace(tuning, part=Part(0.25))
    assert with_number(tuning, "count", 2.0).count == 2
    assert with_number(tuning, "count", 0.5).count == 1, "a whole number stays whole, and at least one"


def test_a_number_that_decides_moves_metrics_and_one_that_nothing_reads_none() -> None:
    tuning = Tuning()
    variants = [variant(tuning, "idle", 2.0), variant(tuning, "part.share", 0.5)]
    rows = [measured(seed, variants, lambda one: Sheds(one, tuning)) for seed in (16, 24)]
    idle, share = moved(rows, variants)
    assert not idle.reached
    assert idle.most == 0
    assert share.reached
    assert share.points["of clairvoyant"] < -10
    assert share.most > 10 * NEEDED
    text = table([idle, share], range(16, 25), means(rows))
    assert "same runs" in text
    assert "`part.share`" in text


def test_movements_leave_out_scenarios_that_say_nothing() -> None:
    one = Verdict(1.0, 10, 0, 0.0, None, None, 1.0, 1.0, 1.0, 0.0)
    other = replace(one, on_time=0.9, budget_use=0.5)
    (found,) = moved([[one, other]], [Variant("n", "2", NeverSheds)])
    assert found.points["on time"] == pytest.approx(-10)
    assert found.row()["budget use"] is None
    assert found.most == pytest.approx(10)


def test_mechanisms_can_be_switched_off() -> None:
    assert {one.what for one in of_mechanisms()} == {"off"}
