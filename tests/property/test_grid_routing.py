"""A hot key in a grid: rows have few copies, stored ones are lent, and every pair is found once.

One key has most rows, rows live for several batches, pieces are merged in nearly every one, and grids change:
stored rows are found where they are lent, also those that were stored before the key was split.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from tests.oracle.expected import naive
from tests.oracle.plain_engine import PlainEngine, Row, small_steps
from tests.oracle.plain_join import well_mixed
from tests.oracle.plain_routing import copies
from tests.oracle.stories import HOWS
from tests.property.test_join_results import finish, join_of

from tidegate.control.balance.rerouting import first_routing
from tidegate.join.within import Within
from tidegate.model.routing import Routing
from tidegate.route.assignment import Assignment
from tidegate.route.hash_routing import partition_of
from tidegate.route.targets import STORE, Tables

PARTITIONS, HOT = 3, well_mixed(1)
WITHIN = (Within(-3, 3), Within(1, 3), Within(-4, -2), Within(-3, 3), Within(-5, -1))


@pytest.fixture(autouse=True, scope="module")
def merges_early_and_small_chunks() -> Iterator[None]:
    with small_steps():
        yield


def grids(draw: np.random.Generator, instances: int) -> Assignment:
    """The hot key in a grid drawn at random, or (seldom) whole."""
    size = int(draw.choice([1, 2, 3, 4, 4, 4]))
    places = tuple(draw.permutation(instances)[:size].tolist())
    columns = int(draw.choice([c for c in range(1, size + 1) if size % c == 0]))
    table = tuple(draw.integers(0, instances, PARTITIONS).tolist())
    return Assignment(instances, table, 1, {HOT: places}, {HOT: columns})


def batch_of(draw: np.random.Generator, number: int) -> dict[str, list[Row]]:
    return {
        stream: [
            (int(number + draw.integers(0, 3)), int(draw.choice([1, 1, 1, 2])), 100 * number + at, 0)
            for at in range(draw.integers(0, 3))
        ]
        for stream in "ab"
    }


@pytest.mark.parametrize(
    ("how", "apart"), [*((how, False) for how in HOWS), ("inner", True), ("full", True), ("left_semi", True)]
)
def test_rows_that_are_lent_are_found_once_and_known_to_have_matched(how: str, apart: bool) -> None:
    for seed in range(5):
        draw = np.random.default_rng([seed, apart])
        first = [Assignment(4, (0, 1, 2))] * (1 + apart)
        within = WITHIN[seed]
        engine = PlainEngine([join_of(how, within)], {"a": 3, "b": 3}, partitions=PARTITIONS, first=first)
        story = [batch_of(draw, number) for number in range(16)]
        for number, batch in enumerate(story):
            if number % 4 == 2 or draw.random() < 0.2:
                engine.assign("join1", *(grids(draw, 4) for _ in first))
            elif number % 4 == 0:
                engine.assign("join1", *first)
            engine.run(batch)
        finish(engine, flush=bool(seed % 2))
        joined = engine.emitted["join1"]
        engine.close()
        left, right = (
            [(key, n, v, time) for batch in story for time, key, n, v in batch[stream]] for stream in "ab"
        )
        assert joined == naive(left, right, within, how, (2, 2)), seed


@pytest.mark.parametrize("known", [False, True])
def test_a_row_that_is_lent_and_merged_is_known_to_have_matched(known: bool) -> None:
    """Row n comes to lie in one piece with row 1, just when a right row finds both at another instance.

    `known`: row 1 has an identity, as it came after the key was split.
    """
    split = Assignment(2, (0,), 1, {HOT: (0, 1)}, {HOT: 2})
    for n, found_by in [(n, m) for n in range(2, 6) for m in range(10, 14)]:
        engine = PlainEngine([join_of("full", Within(-50, 50))], {"a": 0, "b": 0}, partitions=1, instances=1)
        engine.assign("join1", split if known else Assignment(2, (0,)))
        engine.run({"a": [(0, 1, 1, 0)]})
        engine.assign("join1", split)
        engine.run({"a": [(0, 1, n, 0)]})
        engine.run({"b": [(0, 1, found_by, 0)]})
        finish(engine, flush=True)
        left, right = [(1, 1, 0, 0), (1, n, 0, 0)], [(1, found_by, 0, 0)]
        assert engine.emitted["join1"] == naive(left, right, Within(-50, 50), "full", (2, 2))
        engine.close()


@pytest.mark.parametrize("semi", [False, True])
@pytest.mark.parametrize("apart", [False, True])
def test_tables_say_what_the_plain_loop_does(semi: bool, apart: bool) -> None:
    draw = np.random.default_rng(3)
    codes = np.array([HOT, HOT, HOT, HOT, well_mixed(2), well_mixed(3)] * 4, np.uint64)
    lots = draw.integers(0, 2**40, codes.size)
    for _ in range(40):
        spread = Assignment(4, (0, 1, 2), spread=int(draw.integers(1, 5)))
        routing = first_routing([draw.choice([grids(draw, 4), spread]) for _ in range(1 + apart)])  # type: ignore[arg-type]
        for side in (0, 1):
            made = copies(codes, lots, side, routing, PARTITIONS, semi=semi)
            plain = Counter(
                zip(*(part.tolist() for part in (made.rows, made.instances, made.roles)), strict=True)
            )
            assert told(Tables.of(routing, side, PARTITIONS, semi=semi), routing, side, codes, lots) == plain


def told(
    tables: Tables, routing: Routing, side: int, codes: np.ndarray, lots: np.ndarray
) -> Counter[tuple[int, int, int]]:
    """(row, instance, role) as the tables have it."""
    found: Counter[tuple[int, int, int]] = Counter()
    homes = partition_of(codes, PARTITIONS).tolist()
    for row, (code, home, lot) in enumerate(zip(codes.tolist(), homes, lots.tolist(), strict=True)):
        own, other = (
            PARTITIONS if code in placement.keys else home
            for placement in (routing.sides[side], routing.sides[1 - side])
        )
        store = tables.stores[own][lot % len(tables.stores[own])]
        taken = [tables.own[own][lot % len(tables.own[own])]]
        taken += [groups[lot % len(groups)] for groups in tables.other[other : other + 1]]
        for group in taken:
            for instance in group.instances:
                found[row, instance, group.role | (STORE if instance == store else 0)] += 1
    return found
