"""The two rate rules on the same simulated batches: how soon they settle, and whether they rest."""

from __future__ import annotations

import json

import pytest

from tidegate.control.actuators.paper_rate import RateAdaptation, RateRule
from tidegate_lab.simulate.join.batches import Batch, Batches, TrueCosts, run_batches
from tidegate_lab.simulate.join.rate_model import RateModel
from tidegate_lab.workloads.selective_join import Steps

MACHINES = {
    "comparisons only": TrueCosts(0.0, 0.0, 1e-7),
    "some of everything": TrueCosts(0.1, 2e-5, 1e-7, 1e-5),
    "a high fixed cost": TrueCosts(0.4, 2e-5, 5e-8),
}
STEP = Steps(((40, 800), (60, 3200), (40, 800)))
SEEDS = range(5)


def stepped(machine: str, rule: RateRule, noise: float = 0.0, seed: int = 7) -> list[Batch]:
    return run_batches(Batches(STEP, MACHINES[machine], noise=noise, seed=seed), rule)


def batches_to_settle(batches: list[Batch]) -> int:
    """Batches of the new rate before all that follow, while it lasts, use 80 % to 100 % of their time."""
    after = [batch for batch in batches if 41 <= batch.begin_seconds < 100]
    outside = [i for i, batch in enumerate(after) if not 0.8 <= batch.seconds <= 1.0]
    return outside[-1] + 1 if outside else 0


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("noise", [0.0, 0.04])
def test_the_model_settles_within_three_batches_of_a_step_and_the_papers_rule_does_not(
    machine: str, noise: float
) -> None:
    for seed in SEEDS:
        assert 1 <= batches_to_settle(stepped(machine, RateModel(), noise, seed)) <= 3
        assert batches_to_settle(stepped(machine, RateAdaptation(), noise, seed)) > 3


@pytest.mark.parametrize("machine", MACHINES)
def test_the_step_is_overload_for_every_machine(machine: str) -> None:
    calm, rush = (
        [b for b in stepped(machine, RateModel()) if lo < b.begin_seconds < hi]
        for lo, hi in ((20, 40), (70, 100))
    )
    assert max(b.seconds_full for b in calm) < 1
    assert min(b.seconds_full for b in rush) > 2


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("noise", [0.0, 0.04])
def test_on_steady_input_the_model_rests_and_the_papers_rule_swings(machine: str, noise: float) -> None:
    for seed in SEEDS:
        swings = []
        for rule in (RateModel(), RateAdaptation()):
            steady = [b.fraction for b in stepped(machine, rule, noise, seed) if 70 < b.begin_seconds < 100]
            swings.append(max(steady) / min(steady))
        assert swings[0] <= 1.05
        assert swings[1] >= 1.15


@pytest.mark.parametrize("machine", MACHINES)
def test_after_the_rush_everything_is_processed_again(machine: str) -> None:
    batches = stepped(machine, RateModel(), noise=0.04)
    back = [b.fraction for b in batches if b.begin_seconds > 112]
    assert min(back) == 1.0


def test_the_same_seed_gives_the_same_batches_and_another_one_does_not() -> None:
    one, again, other = (stepped("some of everything", RateModel(), 0.04, seed) for seed in (3, 3, 4))
    assert one == again
    assert one != other


def test_a_restored_model_decides_as_the_one_that_ran_on() -> None:
    rule = RateModel()
    stepped("some of everything", rule, 0.04)
    restored = RateModel.restore(json.loads(json.dumps(rule.snapshot())))
    assert stepped("a high fixed cost", restored) == stepped("a high fixed cost", rule)
