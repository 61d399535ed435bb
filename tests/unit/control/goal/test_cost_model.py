from __future__ import annotations

import json

import numpy as np
import pytest

from tidegate.control.goal.cost_model import CostModel, Effort
from tidegate.model.codec import from_plain, to_plain

TRUE = np.array([0.2, 3e-5, 1e-7, 2e-5, 1e-8])


def drawn(random: np.random.Generator) -> Effort:
    return Effort(*(random.uniform(1, 5, 4) * [1e3, 1e6, 1e3, 1e6]).tolist())


def truth(effort: Effort) -> float:
    return float(TRUE @ [1, *effort.parts])


def predicted(model: CostModel, effort: Effort) -> float:
    return model.fixed + float(model.rates @ effort.parts)


def taught(batches: int, seed: int = 1) -> CostModel:
    random, model = np.random.default_rng(seed), CostModel()
    for _ in range(batches):
        effort = drawn(random)
        model.observe(effort, truth(effort))
    return model


def test_costs_are_found_once_batches_have_differed_enough() -> None:
    np.testing.assert_allclose(taught(40).costs, TRUE, rtol=0.1)


def test_a_first_batch_is_put_down_to_its_comparisons() -> None:
    model = CostModel()
    model.observe(Effort(1000, 1_000_000, 1000), 2.0)
    assert predicted(model, Effort(1000, 1_000_000, 1000)) == pytest.approx(2.0, rel=0.01)
    assert model.costs[2] * 1_000_000 > 1.0


def test_costs_are_never_negative() -> None:
    model = CostModel()
    for rows, seconds in ((1000, 2.0), (2000, 1.0), (3000, 0.1)):
        model.observe(Effort(rows, 1e6, 10), seconds)
    assert min(model.costs) >= 0


def test_a_machine_that_becomes_slower_is_noticed() -> None:
    model = taught(40)
    random = np.random.default_rng(2)
    for _ in range(20):
        effort = drawn(random)
        model.observe(effort, 2 * truth(effort))
    some = Effort(3e3, 3e6, 3e3, 3e6)
    assert predicted(model, some) == pytest.approx(2 * truth(some), rel=0.05)


def test_a_restored_model_goes_on_with_the_same_answers() -> None:
    model = taught(5)
    restored = from_plain(CostModel, json.loads(json.dumps(to_plain(model))))
    for one in (model, restored):
        one.observe(Effort(5e3, 1e6, 2e3), 0.7)
    assert restored == model


def test_one_batch_that_is_off_is_an_outlier_and_two_in_a_row_are_a_change() -> None:
    some = Effort(3e3, 3e6, 3e3, 3e6)
    model = taught(40)
    model.observe(some, 5 * truth(some))
    assert predicted(model, some) == pytest.approx(truth(some), rel=0.1)
    model.observe(some, 5 * truth(some))
    assert predicted(model, some) > 2 * truth(some)
    for _ in range(3):
        model.observe(some, 5 * truth(some))
    assert predicted(model, some) == pytest.approx(5 * truth(some), rel=0.1)


def test_what_comparisons_cost_is_remembered_while_next_to_none_are_made() -> None:
    random, model = np.random.default_rng(4), taught(40)
    for _ in range(60):
        effort = Effort(float(random.uniform(1e3, 5e3)), 3e3, 3.0)
        model.observe(effort, truth(effort) * float(random.uniform(0.97, 1.03)))
    assert model.costs[2] == pytest.approx(TRUE[2], rel=0.3)
