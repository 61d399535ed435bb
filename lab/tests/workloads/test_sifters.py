from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tidegate.errors import FlowError
from tidegate_lab.workloads.sifters import Workload, draw_queries, draw_rows, hits, spreads

FOUR = [Workload(data, queries) for data in ("unif", "skew") for queries in ("unif", "skew")]


@pytest.mark.parametrize("workload", FOUR)
def test_rows_and_queries_lie_in_the_data_space(workload: Workload) -> None:
    for wide in (workload, replace(workload, global_skew=1.0, local_skew=1.0, axes=3)):
        rows = draw_rows(wide, 2000)
        assert rows.shape == (2000, wide.axes)
        assert (rows >= 0).all()
        assert (rows < 1).all()
        low, high = draw_queries(wide).boxes.extents
        assert (low >= 0).all()
        assert (high <= 1).all()
        assert (low < high).all()


def test_uniform_data_stays_in_its_hot_spots_and_fills_them_alike() -> None:
    workload = Workload("unif", global_skew=10.0, seed=3)
    data, _ = spreads(workload)
    rows = draw_rows(workload, 5000)
    inside = np.all((rows[:, None] >= data.low) & (rows[:, None] < data.high), axis=2)
    assert np.any(inside, axis=1).all()
    assert (np.mean(inside, axis=0) > 0.17).all()


@pytest.mark.parametrize("skew", [1.0, 4.0, 10.0])
def test_hot_spots_shrink_with_the_global_skew(skew: float) -> None:
    many = Workload(global_skew=skew, hot_spots=500)
    data, queries = spreads(many)
    sides = data.high - data.low
    assert (sides <= 1 / skew).all()
    # Those that no border cuts have at least half of the largest side.
    whole = (data.low > 0) & (data.high < 1)
    assert (sides[whole] >= 0.5 / skew - 1e-12).all()
    assert (data.low == queries.low).all()
    assert (queries.mean >= queries.low).all()
    assert (queries.mean <= queries.high).all()


def test_skewed_data_lies_around_its_means_as_closely_as_the_local_skew_says() -> None:
    workload = Workload("skew", hot_spots=1, local_skew=50.0, seed=1)
    data, queries = spreads(workload)
    rows = draw_rows(workload, 20_000)
    assert rows.mean(axis=0) == pytest.approx(data.mean[0], abs=1e-3)
    assert rows.std(axis=0) == pytest.approx(data.deviation[0], rel=0.05)
    assert ((0.5 / 200 <= data.deviation) & (data.deviation <= 1 / 200)).all()
    assert (data.mean != queries.mean).all()


def test_sides_and_alphas_of_queries_are_in_their_ranges() -> None:
    queries = draw_queries(Workload(query_sides=(0.02, 0.04), alphas=(1.0, 2.0)))
    low, high = queries.boxes.extents
    sides = (high - low)[(low > 0) & (high < 1)]
    assert 0.02 - 1e-12 <= sides.min() < 0.022
    assert 0.038 < sides.max() <= 0.04 + 1e-12
    assert 1.0 <= queries.alphas.min() < 1.1 < 1.9 < queries.alphas.max() <= 2.0
    assert queries.weights.sum() == pytest.approx(1.0)
    assert (draw_queries(Workload(alphas=(1.0, 1.0))).alphas == 1.0).all()


def test_the_same_settings_give_the_same_and_another_part_gives_fresh_data() -> None:
    workload = Workload(seed=5)
    assert (draw_rows(workload, 100) == draw_rows(workload, 100)).all()
    assert not np.isin(draw_rows(workload, 100), draw_rows(workload, 100, part=1)).any()
    assert (draw_queries(workload).boxes.low == draw_queries(workload).boxes.low).all()
    assert (draw_queries(workload).boxes.low != draw_queries(replace(workload, seed=6)).boxes.low).any()


def test_another_kind_of_data_leaves_the_queries() -> None:
    skewed, uniform = draw_queries(Workload("skew")), draw_queries(Workload("unif"))
    assert (skewed.boxes.low == uniform.boxes.low).all()
    assert (skewed.alphas == uniform.alphas).all()


def test_hits_are_counted_as_one_row_and_query_at_a_time_would() -> None:
    workload = Workload("unif", "unif", query_count=60, query_sides=(0.1, 0.3))
    rows, queries = draw_rows(workload, 40), draw_queries(workload)
    low, high = queries.boxes.extents
    counted = [
        sum(all(low[q, k] <= row[k] < high[q, k] for k in range(2)) for q in range(len(low))) for row in rows
    ]
    assert hits(rows, queries.boxes).tolist() == counted
    assert max(counted) > 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"data": "zipf"},
        {"queries": ""},
        {"global_skew": 0.5},
        {"local_skew": float("nan")},
        {"axes": 0},
        {"query_count": 0},
        {"query_sides": (0.2, 0.1)},
        {"alphas": (-1.0, 2.0)},
        {"hot_spots": 0},
        {"seed": -1},
    ],
)
def test_a_workload_out_of_range_is_refused_by_name(wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(FlowError, match=rf"Workload\({name}=…\) is out of range"):
        Workload(**wrong)


def test_data_and_queries_go_together_where_they_share_their_normals() -> None:
    data, queries = spreads(Workload("skew", "skew", same_normals=True, seed=2))
    assert (data.mean == queries.mean).all()
    assert (data.deviation == queries.deviation).all()
    apart = spreads(Workload("skew", "skew", seed=2))
    assert (apart[0].mean == data.mean).all()
    assert (apart[1].mean != data.mean).all()
