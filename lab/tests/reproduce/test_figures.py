"""The figures of the selective join paper, short: what they are made of, not what they measure."""

from __future__ import annotations

import pytest

from tidegate_lab.reproduce.experiment import Options, Outcome
from tidegate_lab.reproduce.selective_join.basic_window_figure import figure_9
from tidegate_lab.reproduce.selective_join.rate_figures import figure_5

QUICK = Options((0,), quick=True)


@pytest.fixture(scope="module")
def ninth() -> Outcome:
    return figure_9(QUICK)


def test_figure_5_has_a_panel_per_window_and_a_curve_per_setting() -> None:
    outcome = figure_5(QUICK)
    (plot,) = outcome.plots
    assert [panel.title for panel in plot.panels] == ["10 s window", "20 s window"]
    assert all(len(panel.curves) == 3 for panel in plot.panels)
    assert [line.agrees for line in outcome.lines] == [True, True]


def test_figure_9_shows_both_joins_both_orders_and_none_on_the_axis(ninth: Outcome) -> None:
    (plot,) = ninth.plots
    assert [len(panel.curves) for panel in plot.panels] == [2, 4]
    assert all(panel.ticks[-1][1] == "none" for panel in plot.panels)
    assert [line.figure for line in ninth.lines] == ["9"] * 8


def test_figure_9_small_basic_windows_give_more_than_none_without_an_index(ninth: Outcome) -> None:
    plain = ninth.lines[0]
    assert plain.samples[0] > plain.samples[-1]
