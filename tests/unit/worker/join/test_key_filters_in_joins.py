"""Rows whose key is not stored are not searched for, are stored all the same, and nothing is missed."""

from __future__ import annotations

import pytest
from tests.oracle.expected import Flat, naive
from tests.oracle.plain_engine import PlainEngine, Row
from tests.oracle.plain_join import PlainJoin

from tidegate.join.within import Within

SECOND = 1_000_000
WITHIN = Within(-10 * SECOND, 10 * SECOND)
#: The first batch stores many rows of each stream; the second brings strangers, and two keys that are known.
STORED, STRANGERS = 400, 50


def rows(second: int, keys: range | list[int], value: int) -> list[Row]:
    return [(second * SECOND + n, key, n, value) for n, key in enumerate(keys)]


def batches() -> list[dict[str, list[Row]]]:
    many, some = range(STORED), range(STRANGERS)
    return [
        {"a": rows(1, many, 0), "b": rows(1, [10_000 + n for n in many], 0)},
        {
            "a": rows(2, [10_007, *(20_000 + n for n in some)], 1),
            "b": rows(2, [7, *(30_000 + n for n in some)], 1),
        },
        # Partners of those that had none.
        {"a": rows(3, [30_003], 2), "b": rows(3, [20_004, 20_004], 2)},
    ]


def played(how: str) -> PlainEngine:
    join = PlainJoin("join1", "a", "b", how, WITHIN, ("a_n", "a_v"), ("b_n", "b_v"))
    engine = PlainEngine([join], {"a": 0, "b": 0}, partitions=4, instances=1)
    for batch in batches():
        engine.run(batch)
    engine.run({"a": [], "b": []}, flush=True)
    return engine


def flat(stream: str) -> list[Flat]:
    return [(*cells, time) for batch in batches() for time, *cells in batch[stream]]


@pytest.mark.parametrize("how", ["inner", "left", "right", "full", "left_semi", "left_anti"])
def test_results_are_those_of_the_finished_data(how: str) -> None:
    assert played(how).emitted["join1"] == naive(flat("a"), flat("b"), WITHIN, how, (2, 2))


def test_strangers_are_spared_the_search() -> None:
    spared = [report.work.spared for report in played("inner").reports]
    # Two streams' strangers look at the other one's stored rows; a few are let through in vain.
    assert spared[0] == 0
    assert 0.75 * 2 * STRANGERS <= spared[1] <= 2 * STRANGERS
    assert spared[2] > 0


def test_rows_that_are_as_many_as_the_stored_ones_search_at_once() -> None:
    join = PlainJoin("join1", "a", "b", "inner", WITHIN, ("a_n", "a_v"), ("b_n", "b_v"))
    engine = PlainEngine([join], {"a": 0, "b": 0}, partitions=4, instances=1)
    for number in range(2):
        engine.run({"a": rows(1, range(STORED), number), "b": rows(1, [9_000], number)})
    assert (
        engine.reports[-1].work.spared == 1
    )  # The one right row; left rows are more than stored right ones.
