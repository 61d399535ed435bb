from __future__ import annotations

import json

import numpy as np
import pytest

from tidegate.control.goal.cost_model import Effort
from tidegate.control.goal.load_model import SOURCES, LoadModel, Took, uneven_seconds, wall_seconds
from tidegate.model.codec import from_plain, to_plain

JOIN, MATCH = np.array([2e-5, 1e-7, 1e-5, 0.0]), np.array([1e-6, 3e-5, 2e-5, 0.0])
OVERHEAD = 0.2


def batch(random: np.random.Generator) -> dict[str, Effort]:
    rows = float(random.uniform(1e3, 5e3))
    join = Effort(rows, float(random.uniform(1e6, 5e6)), float(random.uniform(1e3, 5e3)))
    return {
        "join": join,
        "match": Effort(rows, float(random.uniform(0.2, 1)) * rows, float(random.uniform(1, 5e2))),
    }


def seconds(efforts: dict[str, Effort]) -> dict[str, float]:
    return {"join": float(JOIN @ efforts["join"].parts), "match": float(MATCH @ efforts["match"].parts)}


def said(took: dict[str, float]) -> dict[str, Took]:
    return {name: Took(one) for name, one in took.items()}


def predicted(model: LoadModel, efforts: dict[str, Effort]) -> float:
    return model.fixed + sum(float(model.rates(name) @ one.parts) for name, one in efforts.items())


def taught(measured: bool, batches: int = 40, odd: int | None = None) -> LoadModel:
    random, model = np.random.default_rng(1), LoadModel()
    for number in range(batches):
        efforts = batch(random)
        took = seconds(efforts)
        busy = (OVERHEAD + sum(took.values())) * (3 if number == odd else 1)
        model.observe(efforts, busy, said(took) if measured else {})
    return model


@pytest.mark.parametrize("measured", [True, False])
def test_a_batch_is_foreseen_from_what_operators_will_do(measured: bool) -> None:
    model, efforts = taught(measured), batch(np.random.default_rng(2))
    # Where nobody measures operators, one price of a comparison must do for both.
    near = 0.02 if measured else 0.25
    assert predicted(model, efforts) == pytest.approx(OVERHEAD + sum(seconds(efforts).values()), rel=near)


def test_what_no_operator_explains_is_overhead_and_each_has_its_own_prices() -> None:
    model = taught(measured=True)
    assert model.fixed == pytest.approx(OVERHEAD, rel=0.01)
    assert model.rates("match")[1] == pytest.approx(MATCH[1], rel=0.05)
    assert model.rates("join")[1] == pytest.approx(JOIN[1], rel=0.05)


def test_one_batch_that_takes_three_times_as_long_changes_little() -> None:
    efforts = batch(np.random.default_rng(2))
    calm, shaken = taught(measured=True), taught(measured=True, odd=39)
    assert predicted(shaken, efforts) == pytest.approx(predicted(calm, efforts), rel=0.02)


def test_a_slow_sink_is_overhead_within_a_few_batches() -> None:
    model, random = taught(measured=True), np.random.default_rng(3)
    for _ in range(7):
        efforts = batch(random)
        took = seconds(efforts)
        model.observe(efforts, 0.7 + sum(took.values()), said(took))
    assert model.fixed == pytest.approx(0.7, rel=0.12)
    assert model.rates("join")[1] == pytest.approx(JOIN[1], rel=0.05)


def test_a_step_in_rate_does_not_make_pairs_dear() -> None:
    # Four times the rows, each with four times the partners: most of the time of a calm batch is for rows.
    row_seconds, pair_seconds = 2e-5, 5e-9
    model, random = LoadModel(), np.random.default_rng(5)
    for _ in range(20):
        rows = 1e4 * random.uniform(0.98, 1.02)
        pairs = rows * 1e3
        took = Took(pair_seconds * pairs * random.uniform(0.9, 1.1), row_seconds * rows)
        model.observe({"join": Effort(rows, pairs)}, OVERHEAD + took.seconds, {"join": took})
    step = {"join": Effort(4e4, 16e7)}
    # Not a hundred times the 0.2 s of rows: 0.8 s of rows and 0.8 s of pairs.
    assert predicted(model, step) == pytest.approx(
        OVERHEAD + 4e4 * row_seconds + 16e7 * pair_seconds, rel=0.15
    )


def test_operators_that_run_side_by_side_take_no_longer_than_the_batch() -> None:
    model, efforts = LoadModel(), {"a": Effort(100), "b": Effort(100)}
    model.observe(efforts, 1.0, {"a": Took(1.0), "b": Took(1.0)})
    assert predicted(model, efforts) == pytest.approx(1.0, rel=0.01)


def test_a_restored_model_goes_on_with_the_same_answers() -> None:
    model = taught(measured=True, batches=7)
    restored = from_plain(LoadModel, json.loads(json.dumps(to_plain(model))))
    efforts = batch(np.random.default_rng(4))
    for one in (model, restored):
        one.observe(efforts, 1.3, {"join": Took(0.4, 0.2), "match": Took(0.2)})
    assert restored == model


def test_an_operator_is_as_slow_as_its_slowest_instance_or_as_all_on_few_cores() -> None:
    assert wall_seconds([1.0, 0.2], 2) == 1.0
    assert wall_seconds([1.0, 1.0, 1.0], 2) == 1.5
    assert uneven_seconds([1.0, 0.2], 2) == pytest.approx(0.4)
    assert uneven_seconds([1.0, 1.0], 2) == 0.0


def rest_of(rows: list[float], fixed: float, per_row: float, noise: float = 0.0, seed: int = 1) -> LoadModel:
    """What is learnt of the time that no operator explains."""
    model, random = LoadModel(), np.random.default_rng(seed)
    for count in rows:
        seconds = (fixed + per_row * count) * (1 + noise * random.standard_normal())
        model.observe({SOURCES: Effort(count)}, seconds, {})
    return model


def per_row(model: LoadModel) -> float:
    return float(model.rates(SOURCES)[0])


def test_a_tenth_of_the_rest_is_first_attributed_to_rows_and_other_sizes_show_what_is_true() -> None:
    model = rest_of([100_000, 103_000], 0.4, 1e-6)
    assert model.fixed == pytest.approx(0.45, rel=0.05)
    for rows in (150_000, 60_000, 130_000, 40_000) * 2:
        model.observe({SOURCES: Effort(rows)}, 0.4 + 1e-6 * rows, {})
    assert model.fixed == pytest.approx(0.4, rel=0.1)
    assert per_row(model) == pytest.approx(1e-6, rel=0.4)


def test_a_batch_without_rows_shows_what_is_not_theirs() -> None:
    model = LoadModel()
    for seconds in (0.5, 0.4, 0.9):
        model.observe_empty(seconds)
    model.observe({SOURCES: Effort(20_000)}, 1.0, {})
    assert model.fixed == pytest.approx(0.55, rel=0.15)
    assert predicted(model, {SOURCES: Effort(20_000)}) == pytest.approx(1.0, rel=0.2)


@pytest.mark.parametrize("seed", range(5))
def test_rows_and_fixed_costs_are_separated_by_batches_of_several_sizes(seed: int) -> None:
    rows = np.random.default_rng(seed).uniform(50_000, 200_000, 20).tolist()
    model = rest_of(rows, 0.5, 8e-6, 0.05, seed)
    assert per_row(model) == pytest.approx(8e-6, rel=0.25)
    assert predicted(model, {SOURCES: Effort(400_000)}) == pytest.approx(0.5 + 8e-6 * 400_000, rel=0.2)
