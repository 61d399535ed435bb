"""Pick-ups of a city, made up here: the real files do not come with the project."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidegate.errors import FlowError
from tidegate_lab.reproduce.experiment import Options
from tidegate_lab.reproduce.sifters.partition_pictures import figure_3
from tidegate_lab.reproduce.sifters.real_figure import pickups
from tidegate_lab.reproduce.sifters.runs.pickups import (
    ANYWHERE,
    FILES,
    LYFT,
    MAP,
    UBER,
    Pickups,
    draw_pickups,
)

DAY_ROWS, DAYS = 1_500, 30


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Uber drives in the south in all of April, but on day 3 in the north; Lyft in the west."""
    where, random = tmp_path_factory.mktemp("city"), np.random.default_rng(0)
    middle = (MAP.low + MAP.high) / 2
    for name, shift in ((FILES[0], (-0.05, 0.0)), (FILES[1], (0.0, -0.05))):
        count = DAY_ROWS * DAYS
        position = random.normal(middle + shift, 0.02, (count, 2))
        if name == FILES[0]:
            position[3 * DAY_ROWS : 4 * DAY_ROWS, 0] += 0.1
            position[0] = (0.0, 0.0)  # far away from the map
        times = 1_396_310_400_000_000 + np.arange(count) * (86_400_000_000 // DAY_ROWS)
        columns = {
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "lat": position[:, 0],
            "lon": position[:, 1],
        }
        # In any order: times decide.
        pq.write_table(pa.table(columns).take(random.permutation(count)), where / name)
    return where


def test_a_seed_is_a_day_and_the_next_day_is_fresh(folder: Path) -> None:
    _, _, today, tomorrow = draw_pickups(Pickups(folder, seed=2), 500)
    assert len(today) == 500
    assert len(tomorrow) == DAY_ROWS
    assert tomorrow[:, 0].mean() - today[:, 0].mean() == pytest.approx(0.1, abs=0.01)


def test_rows_off_the_map_are_left_out(folder: Path) -> None:
    _, _, today, _ = draw_pickups(Pickups(folder), 10**6)
    assert len(today) == DAY_ROWS
    assert (today >= MAP.low).all()


def test_queries_lie_where_they_are_said_to(folder: Path) -> None:
    middle = (MAP.low + MAP.high) / 2
    for around, lat, lon in ((LYFT, 0.0, -0.05), (UBER, -0.05, 0.0), (ANYWHERE, 0.0, 0.0)):
        _, queries, _, _ = draw_pickups(Pickups(folder, around, query_count=2000, seed=5), 100)
        low, high = queries.boxes.extents
        assert ((low + high) / 2).mean(axis=0) == pytest.approx(middle + np.array([lat, lon]), abs=0.01)
        spread = float(((low + high) / 2).std(axis=0).mean())
        assert (spread > 0.05) == (around == ANYWHERE)
        sides = (high - low) / (MAP.high - MAP.low)
        assert np.quantile(sides, [0.02, 1]) == pytest.approx([0.005, 0.01], rel=0.05)


def test_the_same_seed_draws_the_same(folder: Path) -> None:
    one, two, other = (draw_pickups(Pickups(folder, seed=seed), 50) for seed in (1, 1, 2))
    assert (one[2] == two[2]).all()
    assert (one[1].boxes.low == two[1].boxes.low).all()
    assert (one[1].boxes.low != other[1].boxes.low).any()


def test_files_that_are_missing_are_named(tmp_path: Path) -> None:
    with pytest.raises(FlowError, match=r"nyc_lyft_2014\.parquet"):
        Pickups(tmp_path)


def test_unknown_centres_are_answered_with_the_known_ones(folder: Path) -> None:
    with pytest.raises(FlowError, match="lyft, uber, anywhere"):
        Pickups(folder, "bicycles")


def test_real_figures_are_drawn_beside_the_others(folder: Path) -> None:
    options = Options((0, 5), quick=True, real=folder)
    outcome = pickups(options)
    assert [plot.name for plot in outcome.plots] == ["real-pickups"]
    assert len(outcome.lines) == 3 * 9
    over_random = {
        line.claim: line.value or 0.0 for line in outcome.lines if "AUTO over random" in line.claim
    }
    assert len(over_random) == 3
    assert min(over_random.values()) > 0
    (picture,) = figure_3(options).plots
    assert picture.name == "real-figure-3"
    assert picture.maps[0].x_label == "lon"
