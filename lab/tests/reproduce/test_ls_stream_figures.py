"""The figures of Ls-Stream, short: what they are made of, and the laws behind what they tell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidegate_lab.reproduce.experiment import Options, Outcome
from tidegate_lab.reproduce.ls_stream.beyond import partitions, table, with_index
from tidegate_lab.reproduce.ls_stream.city_figures import figure_2, figure_10, figure_11
from tidegate_lab.reproduce.ls_stream.experiment import EXPERIMENT
from tidegate_lab.reproduce.ls_stream.latency_figures import figure_12, figure_13
from tidegate_lab.reproduce.ls_stream.measures import capacity_for, imbalance, sustained
from tidegate_lab.reproduce.ls_stream.skew_figures import figure_7, figure_8
from tidegate_lab.reproduce.ls_stream.skew_latency import figure_9
from tidegate_lab.reproduce.ls_stream.streams import FEW_KEYS, arrivals, place_text, source
from tidegate_lab.reproduce.ls_stream.systems import BISTREAM, BY_PARTITION, LS_STREAM, SYSTEMS, run
from tidegate_lab.reproduce.ls_stream.threshold_figures import figure_14

QUICK = Options((0,), quick=True)
NAMES = [system.name for system in SYSTEMS]
Measure = Callable[[Options], Outcome]


def test_every_figure_of_the_paper_with_a_measurement_is_there() -> None:
    assert [figure.name for figure in EXPERIMENT.figures] == [
        *("2", "7", "8", "9", "10", "11", "12", "13", "14", "15"),
        *("partitions", "index", "table"),
    ]


@pytest.mark.parametrize("figure", [figure_7, figure_8, figure_9])
def test_figures_by_skew_have_a_panel_per_number_of_keys_and_a_curve_per_system(figure: Measure) -> None:
    outcome = figure(QUICK)
    (plot,) = outcome.plots
    assert [panel.title for panel in plot.panels] == ["100,000 keys", "300 keys"]
    assert all([curve.name for curve in panel.curves] == [*NAMES, BY_PARTITION.name] for panel in plot.panels)
    assert all(line.samples for line in outcome.lines)


def test_bars_have_fixed_ids() -> None:
    ids = [bar.id for figure in (figure_8, figure_9, table) for bar in figure(QUICK).bars]
    assert ids == [
        "ls_stream.throughput_over_hash",
        "ls_stream.max_latency_over_hash",
        "ls_stream.table_growth",
    ]


def test_the_table_is_as_large_after_any_number_of_moved_rows() -> None:
    outcome = table(QUICK)
    (growth,) = outcome.bars
    assert (growth.value, growth.holds) == (1.0, True)
    assert max(outcome.lines[0].samples) > 100


@pytest.mark.parametrize("figure", [figure_10, figure_11, figure_12, figure_13])
def test_figures_of_the_city_compare_all_systems(figure: Measure) -> None:
    outcome = figure(QUICK)
    (plot,) = outcome.plots
    assert [curve.name for curve in plot.panels[0].curves] == NAMES
    assert outcome.lines


def test_figure_2_shares_are_all_rows_and_ranked() -> None:
    (plot,) = figure_2(QUICK).plots
    (curve,) = plot.panels[0].curves
    assert sum(curve.y) == pytest.approx(100, abs=1)
    assert list(curve.y) == sorted(curve.y, reverse=True)


def test_more_partitions_per_instance_help_ls_stream() -> None:
    outcome = partitions(QUICK)
    few, many = outcome.lines[0].samples
    assert many > few > 1


def test_with_an_index_no_strategy_beats_perfect_balance() -> None:
    outcome = with_index(QUICK)
    assert len(outcome.lines) == 3
    assert all(min(line.samples) >= 1 for line in outcome.lines)


def test_a_lower_threshold_sustains_at_least_as_much() -> None:
    assert figure_14(QUICK).lines[0].agrees


def test_throughput_is_the_rate_at_which_the_heaviest_instance_is_just_busy() -> None:
    """Twice the rate is four times the work: what is sustained does not depend on the rate it was seen at."""
    slow = source(QUICK, 0, 10_000, FEW_KEYS, 1.0)
    fast = replace(slow, rate=2 * slow.rate)
    capacity = capacity_for([run(BISTREAM, slow)], 11_000)
    assert sustained(run(BISTREAM, slow), capacity) == pytest.approx(11_000)
    assert sustained(run(BISTREAM, fast), capacity) == pytest.approx(11_000, rel=0.05)
    heaviest = run(BISTREAM, slow).trace.batches[-1]
    at_capacity = heaviest.makespan * (11_000 / heaviest.rows) ** 2
    assert at_capacity == pytest.approx(capacity, rel=0.2)


def test_a_node_is_as_busy_as_its_instances_together() -> None:
    one = run(BISTREAM, source(QUICK, 0, 5_000), 28)
    assert sustained(one, 1.0, nodes=28) == pytest.approx(sustained(one, 1.0))
    everything = [batch.work.sum() for batch in one.trace.batches[one.source.settled :]]
    rows = [batch.rows for batch in one.trace.batches[one.source.settled :]]
    assert sustained(one, 1.0, nodes=1) == pytest.approx(np.mean(rows / np.sqrt(everything)))


def test_moving_partitions_lowers_the_imbalance_of_hash_routing_where_keys_are_many_enough() -> None:
    of = source(QUICK, 1, 25_000, 2_000, 0.6)
    assert imbalance(run(LS_STREAM, of)) < imbalance(run(BY_PARTITION, of))


def test_real_taxis_come_at_the_rate_asked_for(tmp_path: Path) -> None:
    for name, rows in (("orders", 400), ("tracks", 4_000)):
        random = np.random.default_rng(rows)
        times = np.sort(random.integers(0, 3_600_000_000, rows)).astype("datetime64[us]")
        columns = {
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "lat": 37.7 + random.random(rows) / 10,
            "lon": -122.4 + random.random(rows) / 10,
            "occupied": np.zeros(rows, np.bool_),
        }
        pq.write_table(pa.table(columns), tmp_path / f"sf_taxi_{name}.parquet")
    options = replace(QUICK, real=tmp_path)
    found = arrivals(source(options, 0, 500))
    came = [sum(int(side.rows.sum()) for side in batch) for batch in found.batches]
    assert len(came) == 18
    assert np.mean(came) == pytest.approx(100, rel=0.1)
    # Made-up keys stay made up: only the city has a real counterpart.
    assert source(options, 0, 500, FEW_KEYS, 1.0).real is None
    assert place_text(options) == "San Francisco taxis"


def test_the_same_seed_gives_the_same_rows_and_another_seed_others() -> None:
    first, other = (source(QUICK, seed, 5_000, FEW_KEYS, 0.8) for seed in (3, 4))
    once = arrivals(first).codes.tolist()
    arrivals.cache_clear()
    assert arrivals(first).codes.tolist() == once
    assert arrivals(other).codes.tolist() != once
