from __future__ import annotations

import json
from dataclasses import fields

import pytest

from tidegate_lab.commands.reproduce import NAMES
from tidegate_lab.reproduce.claims import bar, percent_line
from tidegate_lab.reproduce.experiment import Line, Options
from tidegate_lab.reproduce.registry import MODULES, experiment


def test_the_command_offers_exactly_the_experiments_that_are_registered() -> None:
    assert tuple(MODULES) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_an_experiment_answers_to_its_name_and_its_figures_differ_in_theirs(name: str) -> None:
    found = experiment(name)
    assert found.name == name
    names = [figure.name for figure in found.figures]
    assert len(set(names)) == len(names) > 0


def test_ratios_are_told_as_gains_with_median_least_and_most() -> None:
    line = percent_line("4", "claim", "around +100 %", [2.5, 1.5, 2.0], least=80)
    assert line.value == pytest.approx(100)
    assert line.measured == "+100 % (+50 to +150)"
    assert line.samples == pytest.approx((150, 50, 100))
    assert line.agrees is True


def test_a_gain_that_is_too_small_does_not_agree_and_one_without_a_claim_says_nothing() -> None:
    assert percent_line("4", "claim", "p", [1.5], least=80).agrees is False
    assert percent_line("4", "claim", "-", [1.5]).agrees is None


def test_a_bar_is_judged_by_the_value_of_its_line() -> None:
    line = percent_line("4", "claim", "p", [1.5])
    assert bar(line, "figure4", 50).holds
    assert not bar(line, "figure4", 51).holds


def test_a_line_in_json_has_all_that_it_knows() -> None:
    line = percent_line("4", "claim", "p", [1.5], least=40)
    assert set(json.loads(json.dumps(line.to_json()))) == {"kind"} | {field.name for field in fields(Line)}


def test_seeds_are_named() -> None:
    assert Options((3,)).seeds_text == "seed 3"
    assert Options((3, 4, 5)).seeds_text == "medians of seeds 3 to 5"
