"""Canaries: an engine broken on purpose must disagree with the oracle, or the oracle is worth nothing."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest
from tests.oracle.expected import Flat, duckdb_join, naive
from tests.oracle.plain_engine import PlainEngine, Row
from tests.oracle.plain_join import PlainJoin

from tidegate.join.within import Within
from tidegate.worker.join import pair_finder
from tidegate.worker.join.settle import Settling

WITHIN = Within(-10, 10)
#: Pairs at the very edge of the window across batches, a pair in one batch, lonely rows of each side.
BATCHES: list[dict[str, list[Row]]] = [
    {"a": [(0, 1, 0, 0)]},
    {"b": [(10, 1, 1, 0)]},
    {"a": [(20, 2, 2, 0), (21, 1, 3, 0)], "b": [(20, 2, 4, 0), (22, None, 5, 0)]},
    {"a": [(30, 3, 6, 0)], "b": [(30, 4, 7, 0)]},
    {},
    {"b": [(31, 1, 8, 0)]},
    {"a": [(50, 3, 9, 0)], "b": [(50, 4, 10, 0)]},
]


def outcome(how: str) -> tuple[bool, list[Flat]]:
    """Does the engine agree with the oracle? And what the oracle says."""
    columns = (("a_n", "a_v"), ("b_n", "b_v"))
    engine = PlainEngine([PlainJoin("join1", "a", "b", how, WITHIN, *columns)], {"a": 0, "b": 0})
    for batch in BATCHES:
        engine.run(batch)
    engine.run({}, flush=True)
    joined = engine.emitted["join1"]
    engine.close()
    left, right = ([(*r[1:], r[0]) for batch in BATCHES for r in batch.get(s, [])] for s in "ab")
    expected = naive(left, right, WITHIN, how, (2, 2))
    assert expected == duckdb_join(left, right, WITHIN, how)
    return joined == expected, list(expected.elements())


def forgets_early(self: Within, side: int, watermark_us: int) -> int:
    return watermark_us


def misses_the_edge(self: Within, side: int, times: Any) -> Any:
    return times - 9, times + 9


def forgets_matches(self: Settling, run: Any, rows: Any) -> None:
    return None


def test_the_engine_and_both_oracles_agree_on_the_story() -> None:
    agrees, rows = outcome("full")
    assert agrees
    assert len(rows) == 8


@pytest.mark.parametrize(
    ("owner", "name", "broken"),
    [
        (Within, "dead_before", forgets_early),
        (Within, "partner_range", misses_the_edge),
        (Settling, "set", forgets_matches),
        (pair_finder.Finder, "_opposite", lambda self, probing: iter(())),
    ],
)
def test_a_broken_engine_is_noticed(owner: Any, name: str, broken: Any) -> None:
    with patch.object(owner, name, broken):
        agrees, _ = outcome("full")
    assert not agrees
