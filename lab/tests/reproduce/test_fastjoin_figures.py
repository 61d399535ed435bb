"""The figures of the FastJoin paper, short: what they are made of, and what holds whatever the size."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tidegate.cli.main import main
from tidegate_lab.reproduce.experiment import Options, Outcome
from tidegate_lab.reproduce.fastjoin.beyond import beyond
from tidegate_lab.reproduce.fastjoin.choice_figure import CHOICES, figure_14
from tidegate_lab.reproduce.fastjoin.group_figures import figure_12
from tidegate_lab.reproduce.fastjoin.imbalance_bars import free_imbalances, held_imbalances, longest_above
from tidegate_lab.reproduce.fastjoin.key_figure import figure_1
from tidegate_lab.reproduce.fastjoin.over_time_figures import figure_4, figure_11
from tidegate_lab.reproduce.fastjoin.scenarios import (
    BUSY,
    FASTJOIN,
    HASH,
    STRATEGIES,
    THETA,
    Scenario,
    arrivals,
    common_rate,
    forget_runs,
    run,
)
from tidegate_lab.reproduce.fastjoin.sweep_figures import figure_5, figure_7, figure_9
from tidegate_lab.workloads.skew import ZipfStreams

QUICK = Options((0,), quick=True)
SMALL = Scenario(ZipfStreams(keys=300, rows=(300, 300), batches=16), instances=8, settled=10)


@pytest.fixture(scope="module")
def bars() -> Outcome:
    return beyond(QUICK)


def test_a_run_is_a_function_of_scenario_strategy_and_seed() -> None:
    one = run(SMALL, STRATEGIES[FASTJOIN], 3).throughput
    forget_runs()
    assert run(SMALL, STRATEGIES[FASTJOIN], 3).throughput == one
    assert run(SMALL, STRATEGIES[FASTJOIN], 4).throughput != run(SMALL, STRATEGIES[FASTJOIN], 3).throughput


def test_strategies_that_are_compared_see_the_same_rows_and_find_the_same_pairs() -> None:
    pairs = {
        tuple(run(SMALL, strategy, 3).trace.series("pairs").tolist()) for strategy in STRATEGIES.values()
    }
    assert len(pairs) == 1
    assert arrivals(SMALL, 3) is arrivals(SMALL, 3)


def test_at_the_common_rate_even_the_slowest_keeps_up() -> None:
    rate = common_rate([SMALL], list(STRATEGIES.values()), 3)
    slowest = min(run(SMALL, strategy, 3).lowest for strategy in STRATEGIES.values())
    assert rate == pytest.approx(BUSY * slowest)
    assert run(SMALL, STRATEGIES[HASH], 3).latency(rate) < run(SMALL, STRATEGIES[HASH], 3).latency(3 * rate)


def test_figure_1_shows_keys_loads_and_throughput() -> None:
    outcome = figure_1(QUICK)
    (plot,) = outcome.plots
    assert [len(panel.curves) for panel in plot.panels] == [2, 6, 2]
    for curve in plot.panels[0].curves:
        assert curve.y[-1] == pytest.approx(1.0)
        assert list(curve.y) == sorted(curve.y)
    heaviest, *_, lightest = plot.panels[1].curves
    assert heaviest.y[-1] > lightest.y[-1]


def test_figures_over_time_have_a_curve_per_strategy_and_a_latency_is_positive() -> None:
    for figure, curves in ((figure_4, 3), (figure_11, 4)):
        (plot,) = figure(QUICK).plots
        (panel,) = plot.panels
        assert len(panel.curves) == curves
        assert all(min(curve.y) > 0 for curve in panel.curves)


def test_sweeps_go_along_their_setting() -> None:
    for figure, places in ((figure_5, [16, 48]), (figure_7, [10, 30]), (figure_9, [1.2, 2.2])):
        (plot,) = figure(QUICK).plots
        assert [list(curve.x) for curve in plot.panels[0].curves] == [places] * 3


def test_a_lower_threshold_gives_fastjoin_more_throughput_and_leaves_the_baselines_alone() -> None:
    (plot,) = figure_9(QUICK).plots
    curves = {curve.name: curve.y for curve in plot.panels[0].curves}
    assert curves[FASTJOIN][0] > curves[FASTJOIN][1] > curves[HASH][1] == curves[HASH][0]


def test_groups_are_named_on_the_axis() -> None:
    outcome = figure_12(QUICK)
    assert [name for _, name in outcome.plots[0].panels[0].ticks] == ["G00", "G11"]
    assert len(outcome.lines) == 4


def test_figure_14_compares_all_ways_to_choose() -> None:
    outcome = figure_14(QUICK)
    assert len(outcome.plots[0].panels[0].curves) == len(CHOICES)
    assert [line.claim for line in outcome.lines[:2]] == [
        "latency: GreedyFit over SAFit, as printed",
        "latency: GreedyFit over SAFit, on the sum of benefits",
    ]


def test_the_bars_have_fixed_names_and_fastjoin_wins_on_small_streams(bars: Outcome) -> None:
    assert [bar.id for bar in bars.bars] == [
        "fastjoin.over_hash",
        "fastjoin.over_contrand",
        "fastjoin.over_hash.biclique",
        "fastjoin.over_contrand.biclique",
        "fastjoin.imbalance",
        "fastjoin.imbalance_held",
    ]
    gains = {bar.id: bar.value for bar in bars.bars if "over" in bar.id}
    assert len(gains) == 4
    # Which heavy keys meet is luck, so that one seed may fall short of the bar.
    assert all(gain is not None and gain > 10 for gain in gains.values())


def test_imbalance_is_judged_where_no_key_prevents_balance() -> None:
    many = Scenario(ZipfStreams((0.0, 0.0), 300, (2_000, 2_000), 20), 16, biclique=False, settled=12)
    assert min(free_imbalances(run(many, STRATEGIES[HASH], 0))) > THETA
    assert max(free_imbalances(run(many, STRATEGIES[FASTJOIN], 0))) <= THETA
    one_key = replace(many, streams=ZipfStreams((4.0, 4.0), 300, (2_000, 2_000), 20))
    assert free_imbalances(run(one_key, STRATEGIES[FASTJOIN], 0)) == []


def test_imbalance_that_is_held_is_that_after_the_decision_of_each_batch() -> None:
    even = Scenario(ZipfStreams((0.0, 0.0), 300, (2_000, 2_000), 20), 16, biclique=False, settled=0)
    hashed, moved = (run(even, STRATEGIES[name], 0) for name in (HASH, FASTJOIN))
    # Nothing moves under hash routing: what it sees stays, batch after batch.
    assert held_imbalances(hashed) == free_imbalances(hashed)
    assert longest_above(hashed) == len(free_imbalances(hashed))
    seen, held = free_imbalances(moved), held_imbalances(moved)
    assert max(seen) > THETA
    assert all(after <= before for after, before in zip(held, seen, strict=True))
    assert min(after - before for after, before in zip(held, seen, strict=True)) < 0
    assert 0 < longest_above(moved) < longest_above(hashed)


def test_the_command_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "figures.json"
    arguments = ["reproduce", "fastjoin", "--quick", "--figure", "3"]
    assert main([*arguments, "--out", str(tmp_path), "--json", str(target)]) == 0
    assert "+31.7 %" in capsys.readouterr().out
    frame = json.loads(target.read_text())
    assert frame["command"] == "reproduce fastjoin"
    # A quick run has one seed unless told otherwise.
    assert [len(row["samples"]) for row in frame["rows"] if row["kind"] == "claim"] == [1, 1]
    assert (tmp_path / "figure-3.png").stat().st_size > 10_000
