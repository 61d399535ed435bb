from __future__ import annotations

import numpy as np
import pytest

from tidegate.control.actuators.paper_rate import FRACTION_MIN
from tidegate.control.goal.shed_options import (
    ShedOption,
    cells_option,
    even_option,
    rate_option,
    regions_option,
    rows_going,
    sample_option,
    shut_option,
    windows_option,
)
from tidegate.join.selective.cells import choose_cells
from tidegate.sift.construct.configuration import configure
from tidegate.window.drop.network import DropOutputNode, DropSourceNode, DropWindowNode, Network
from tidegate.window.drop.placement import place
from tidegate.window.spec import WindowSpec

SECOND = 1_000_000
RANDOM = np.random.default_rng(3)


def test_a_join_finds_at_r_what_its_cells_promise() -> None:
    values, work = (
        (RANDOM.uniform(0, 1, 10), RANDOM.uniform(0, 1, 10)),
        (RANDOM.uniform(1, 2, 10), np.ones(10)),
    )
    offer = cells_option("join", {"out": 1.0}, np.concatenate(values), np.concatenate(work))
    full = sum(float(v @ w) for v, w in zip(values, work, strict=True))
    for r in (0.9, 0.5, 0.13):
        chosen = choose_cells(values, work, r)
        found = 0.0
        for (fraction, order), v, w in zip(chosen, values, work, strict=True):
            left = fraction * w.sum()
            for age in order:
                taken = min(left, w[age])
                found, left = found + v[age] * taken, left - taken
        assert offer.lost_at(r)["out"] == pytest.approx(1 - found / full, abs=1e-9)
        assert offer.kept_at(r)["join"] == pytest.approx([1, r, found / full, r])


def test_a_match_loses_what_the_best_thresholds_cost() -> None:
    f, qos = RANDOM.dirichlet(np.ones(12)), RANDOM.dirichlet(np.ones(12))
    asked = np.ones(12, np.bool_)
    offer = regions_option("match", {"out": 1.0}, qos, f, asked, 0.5)
    z = float(offer.levels[7])
    assert offer.lost_at(z)["out"] == pytest.approx(float(qos @ configure(qos, f, asked, z, 0.5)))


@pytest.mark.parametrize(
    "offer",
    [
        cells_option("p", {"o": 1.0}, RANDOM.uniform(0, 1, 30), np.ones(30)),
        rate_option("p", {"o": 1.0}, 0.6),
        rate_option("p", {"o": 1.0}, 1.0, drops_rows=True),
        regions_option(
            "p", {"o": 1.0}, RANDOM.dirichlet(np.ones(9)), RANDOM.dirichlet(np.ones(9)), np.ones(9, bool), 0.3
        ),
        even_option("p", {"o": 1.0}),
        sample_option("p", {"o": 1.0}),
        windows_option("p", ["o"], 5, {"p": 0.5}, ["p"]),
    ],
    ids=["cells", "rate", "random drop", "regions", "even", "sample", "windows"],
)
def test_every_offer_begins_with_nothing_and_each_step_costs_more_than_the_last(offer: ShedOption) -> None:
    lost, kept = offer.lost["o"], offer.kept["p"]
    assert lost[0] == pytest.approx(0)
    assert (kept[0] == 1).all()
    slopes = np.diff(lost) / np.abs(np.diff(offer.levels))
    assert (np.diff(slopes) >= -1e-9).all()
    assert (np.diff(kept, axis=0) <= 1e-12).all()
    assert offer.done(offer.nothing) == 1
    assert offer.level(offer.done(0.3)) == pytest.approx(0.3)


def test_a_sample_spares_the_work_with_rows_and_no_window() -> None:
    offer = sample_option("window", {"out": 1.0})
    assert offer.kept_at(0.25)["window"] == pytest.approx([1, 0.25, 1, 1])
    assert offer.lost_at(0.25) == {"out": pytest.approx(0.75)}


def test_a_join_that_found_nothing_is_taken_to_find_evenly() -> None:
    offer = cells_option("join", {"out": 1.0}, np.zeros(4), np.ones(4))
    assert offer.lost_at(0.4)["out"] == pytest.approx(0.6)
    assert offer.levels[-1] == pytest.approx(FRACTION_MIN)


def test_operators_behind_a_join_have_less_to_do_and_outputs_lose_their_share() -> None:
    offer = rate_option("join", {"out": 0.5}, 1.0, behind={"window": 0.5})
    assert offer.kept_at(0.2)["window"] == pytest.approx([0.6] * 4)
    assert offer.lost_at(0.2)["out"] == pytest.approx(0.4)


def test_a_random_drop_gets_credit_for_the_rows_that_it_does_not_store() -> None:
    offer = rate_option("join", {"out": 1.0}, 1.0, drops_rows=True)
    r = float(offer.levels[9])
    assert offer.kept_at(r)["join"] == pytest.approx([r**0.5, r, r, r])
    assert offer.lost_at(r)["out"] == pytest.approx(1 - r)


def test_a_window_drop_takes_the_rows_that_no_kept_window_needs() -> None:
    spec = WindowSpec(2 * SECOND, SECOND)
    network = Network(
        (DropSourceNode("s"), DropWindowNode("w", "s", spec), DropOutputNode("o", "w", max_gap=4))
    )
    (drop,) = place(network)
    going = rows_going(network, drop)
    # A gap of 4 windows of two slides lets 3 slides of rows go, of every 4.
    assert going["w"] == pytest.approx(3 / 4, abs=1e-5)
    offer = windows_option("drop", drop.outputs, drop.max_gap, going, ["w"])
    assert offer.lost_at(0.4) == {"o": pytest.approx(0.4)}
    assert offer.kept_at(0.4)["w"] == pytest.approx([0.7, 0.7, 0.6, 0.7], abs=1e-5)
    assert offer.levels[-1] == pytest.approx(4 / 5)


def test_an_output_that_is_shut_off_takes_its_own_operators_with_it() -> None:
    offer = shut_option("o", ["w"])
    assert offer.whole
    assert offer.kept_at(1.0)["w"].sum() == 0
    assert offer.lost_at(1.0) == {"o": 1.0}
