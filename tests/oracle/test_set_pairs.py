"""Every way of finding pairs of sets against a double loop over rows."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.join.sets.bitset_pairs import Bitsets
from tidegate.join.sets.inverted_lists import InvertedLists
from tidegate.join.sets.item_sets import ItemSets, item_sets
from tidegate.join.sets.pair_finders import PairFinder
from tidegate.join.sets.thresholds import InnerProduct, Jaccard, Overlap, SetCondition
from tidegate.join.sets.weighted_pairs import Weighted

Row = dict[int, float]
WEIGHTS = st.sampled_from([1.0, 0.1, 0.3, -0.7, 2.5, 0.0, nan, 1e308, float("inf")])


@dataclass(frozen=True)
class Case:
    universe: int
    probing: list[list[tuple[int, float]]]
    stored: list[list[tuple[int, float]]]
    ranges: list[tuple[int, int]]
    at_most: int


@st.composite
def cases(draw: st.DrawFn) -> Case:
    universe = draw(st.sampled_from([1, 4, 100, 130, 5000]))
    # Few different items, so that rows have many in common; some of them far apart.
    known = st.sampled_from(sorted({0, universe // 3, universe // 2, universe - 1, *range(min(universe, 5))}))
    rows = st.lists(st.lists(st.tuples(known, WEIGHTS), max_size=8), max_size=12)
    probing, stored = draw(rows), draw(rows)
    edge = st.integers(0, len(stored))
    ranges = [draw(st.one_of(st.just((0, len(stored))), st.tuples(edge, edge))) for _ in probing]
    return Case(universe, probing, stored, ranges, draw(st.sampled_from([1, 2, 3, 1000])))


def packed(rows: list[list[tuple[int, float]]], universe: int) -> ItemSets:
    bounds = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    items = np.array([item for row in rows for item, _ in row], np.int64)
    weights = np.array([weight for row in rows for _, weight in row], np.float64)
    return item_sets(bounds, items, universe, weights)


def as_set(row: list[tuple[int, float]]) -> Row:
    weights: Row = {}
    for item, weight in row:
        weights[item] = weights[item] + weight if item in weights else weight
    return weights


def matches(condition: SetCondition, a: Row, b: Row) -> bool:
    common = sorted(a.keys() & b.keys())
    if isinstance(condition, Overlap):
        return len(common) >= condition.at_least
    if isinstance(condition, Jaccard):
        union = len(a.keys() | b.keys())
        return union > 0 and len(common) / union >= condition.at_least
    total = 0.0
    for item in common:
        total += a[item] * b[item]
    return total >= condition.at_least


def naive(condition: SetCondition, case: Case) -> list[tuple[int, int]]:
    probing, stored = [as_set(row) for row in case.probing], [as_set(row) for row in case.stored]
    return [
        (row, place)
        for row, (start, end) in enumerate(case.ranges)
        for place in range(start, end)
        if matches(condition, probing[row], stored[place])
    ]


def ways(condition: SetCondition) -> list[PairFinder]:
    plain: PairFinder = Weighted(condition) if isinstance(condition, InnerProduct) else Bitsets(condition)
    return [plain, InvertedLists(condition, "time"), InvertedLists(condition, "identifier")]


CONDITIONS: dict[str, st.SearchStrategy[SetCondition]] = {
    "overlap": st.sampled_from([Overlap(k) for k in (1, 2, 3, 9)]),
    "jaccard": st.sampled_from([Jaccard(x) for x in (1e-9, 0.25, 1 / 3, 0.5, 0.6, 2 / 3, 1.0)]),
    "inner": st.sampled_from([InnerProduct(x) for x in (1e-12, 0.03, 0.7, 1.0, 1e300, float("inf"))]),
}


@pytest.mark.parametrize("kind", CONDITIONS)
@given(data=st.data(), case=cases())
def test_pairs_are_those_of_a_double_loop_in_its_order(kind: str, data: st.DataObject, case: Case) -> None:
    condition = data.draw(CONDITIONS[kind])
    starts, ends = (np.array([pair[k] for pair in case.ranges], np.int64) for k in (0, 1))
    probing, stored = packed(case.probing, case.universe), packed(case.stored, case.universe)
    expected = naive(condition, case)
    for matcher in ways(condition):
        chunks = list(matcher.prepare(stored).find(probing, starts, ends, case.at_most))
        assert [len(rows) for rows, _ in chunks[:-1]] == [case.at_most] * (len(chunks) - 1)
        assert all(0 < len(rows) == len(places) <= case.at_most for rows, places in chunks)
        found = [pair for rows, places in chunks for pair in zip(rows.tolist(), places.tolist(), strict=True)]
        assert found == expected, matcher


@pytest.mark.parametrize("condition", [Overlap(3), Jaccard(0.4), InnerProduct(1.5)], ids=str)
@pytest.mark.parametrize("universe", [60, 100, 700])
def test_long_runs_are_searched_block_by_block(condition: SetCondition, universe: int) -> None:
    random = np.random.default_rng(universe)
    sides = []
    for rows in (40, 5_000):
        sizes = random.integers(0, 9, rows)
        bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        items = np.minimum(random.geometric(0.1, bounds[-1]), universe) - 1
        sides.append(item_sets(bounds, items, universe, random.normal(0.5, 0.5, bounds[-1])))
    probing, stored = sides
    starts, ends = random.integers(0, 2_000, 40), random.integers(1_000, 5_001, 40)
    dense = [np.zeros((len(side), universe)) for side in sides]
    for side, out in zip(sides, dense, strict=True):
        row = np.repeat(np.arange(len(side)), np.diff(side.bounds))
        out[row, side.items] = side.weights if isinstance(condition, InnerProduct) else 1.0
    common = dense[0] @ dense[1].T
    if isinstance(condition, Jaccard):
        common /= np.maximum(probing.sizes[:, None] + stored.sizes - common, 1)
    inside = (np.arange(5_000) >= starts[:, None]) & (np.arange(5_000) < ends[:, None])
    expected = np.argwhere((common >= condition.at_least) & inside)
    assert len(expected) > 100
    for matcher in ways(condition):
        prepared = matcher.prepare(stored)
        chunks = list(prepared.find(probing, starts, ends, 77))
        assert np.array_equal(
            np.column_stack([np.concatenate(side) for side in zip(*chunks, strict=True)]), expected
        )
        assert prepared.nbytes > stored.items.nbytes


@pytest.mark.parametrize("condition", [Overlap(300), Jaccard(0.9)], ids=str)
def test_sets_of_hundreds_of_items_are_counted_in_full(condition: SetCondition) -> None:
    """300 common items do not fit into a byte."""
    random = np.random.default_rng(5)
    rows = [np.sort(random.choice(400, size, replace=False)) for size in (400, 300, 299, 310, 400)]
    sets = item_sets(np.concatenate([[0], np.cumsum([row.size for row in rows])]), np.concatenate(rows), 400)
    expected = [
        (a, b)
        for a in range(5)
        for b in range(5)
        if matches(condition, dict.fromkeys(rows[a].tolist(), 1.0), dict.fromkeys(rows[b].tolist(), 1.0))
    ]
    for matcher in ways(condition):
        ((left, right),) = matcher.prepare(sets).find(sets, np.zeros(5, np.int64), np.full(5, 5), 100)
        assert list(zip(left.tolist(), right.tolist(), strict=True)) == expected
