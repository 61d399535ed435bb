from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tidegate.edge.node_counts import NodeCounts, NodeRows, by_region, since
from tidegate.model.codec import decode, encode


def counts(node: str, offered: int, dropped: int = 0, incarnation: str = "a", **more: Any) -> NodeCounts:
    more = {"epoch": 1, "version": 1, **more}
    return NodeCounts(node, incarnation, offered=offered, kept=offered - dropped, dropped=dropped, **more)


def test_rows_are_those_since_the_last_batch() -> None:
    _, known = since({}, [counts("east", 100, 40), counts("west", 10)])
    more, _ = since(known, [counts("east", 130, 45), counts("west", 10)])
    assert more == NodeRows({"east": 30, "west": 0}, 5)
    assert more.total == 30


def test_what_was_counted_before_a_query_began_is_not_offered_to_it() -> None:
    first, known = since(None, [counts("east", 10**9, 10**8)])
    assert first == NodeRows()
    later, _ = since(known, [counts("east", 10**9 + 7, 10**8 + 1), counts("new", 5, 2)])
    assert later == NodeRows({"east": 7, "new": 5}, 3)


def test_a_node_that_begins_anew_adds_only_what_it_has_counted_since() -> None:
    _, known = since({}, [counts("east", 10**9), counts("west", 5_000)])
    more, known = since(known, [counts("east", 10**9 + 1_000), counts("west", 1_000, incarnation="b")])
    assert more == NodeRows({"east": 1_000, "west": 1_000}, lacking=frozenset({"west"}))
    more, _ = since(known, [counts("east", 10**9 + 1_000), counts("west", 6_000)])
    assert more == NodeRows({"east": 0, "west": 1_000}), "the file of its former incarnation is back"


def test_a_node_that_was_killed_lacks_counts_once() -> None:
    _, known = since({}, [counts("east", 10, broken=2), counts("west", 10)])
    more, known = since(known, [counts("east", 15, broken=2), counts("west", 17, broken=1)])
    assert more.lacking == {"west"}
    assert since(known, [counts("east", 16, broken=2), counts("west", 18, broken=1)])[0].lacking == set()


def test_an_older_copy_of_a_file_counts_nothing_twice() -> None:
    _, known = since({}, [counts("east", 100)])
    more, known = since(known, [counts("east", 60)])
    assert more.total == 0
    assert since(known, [counts("east", 110)])[0].total == 10


def test_a_node_whose_file_is_gone_for_a_while_is_remembered() -> None:
    _, known = since({}, [counts("east", 100)])
    more, known = since(known, [])
    assert more == NodeRows()
    assert since(known, [counts("east", 103)])[0].total == 3


def test_nodes_that_have_gone_are_forgotten_when_there_are_too_many() -> None:
    _, known = since({}, [counts(f"host-{i}", 1) for i in range(1000)])
    assert len(known) == 1000
    _, known = since(known, [counts("east", 1)])
    assert list(known) == ["east"]


def test_regions_are_added_up_over_the_nodes_that_run_the_sifter() -> None:
    lists: dict[str, Any] = {"regions_offered": (4, 6), "regions_dropped": (1, 2), "regions_sampled": (0, 1)}
    nodes = [
        counts("east", 10, 3, version=7, sampled=1, **lists),
        counts("west", 99, 3, version=7, sampled=1, **lists),
        counts("old", 10, 3, version=6, sampled=1, **lists),
        counts("other run", 10, 3, epoch=0, version=7, sampled=1, **lists),
    ]
    found = by_region(nodes, (1, 7), 2)
    assert [c.tolist() for c in (found.offered, found.dropped, found.sampled)] == [[8, 12], [2, 4], [0, 2]]
    assert by_region(nodes, (1, 7), 3).offered.tolist() == [0, 0, 0]


def test_a_node_that_lost_counts_weighs_as_much_beside_the_others_as_before() -> None:
    def run(node: str, *regions: int) -> NodeCounts:
        none = (0,) * len(regions)
        return counts(node, sum(regions), regions_offered=regions, regions_dropped=none, regions_sampled=none)

    nodes = [run("east", 10, 30), run("west", 300, 100), run("north", 100, 100)]
    usual = {"east": 200, "west": 200, "north": 100}
    found = by_region(nodes, (1, 1), 2, {"east"}, usual)
    # West and north have counted twice the usual: so has east, a quarter of it in the first region.
    assert found.offered.tolist() == [100 + 400, 300 + 200]
    # All have lost some: north the least.
    assert by_region(nodes, (1, 1), 2, {"east", "west", "north"}, usual).offered.tolist() == [500, 500]
    for unknown in ({}, {"west": 5, "north": 5}):
        assert by_region(nodes, (1, 1), 2, {"east"}, unknown).offered.tolist() == [0, 0]
    assert by_region([run("east", 0, 0), *nodes[1:]], (1, 1), 2, {"east"}, usual).offered.sum() == 0


@pytest.mark.parametrize(
    "change",
    [
        {"offered": -1},
        {"offered": 10**30},
        {"offered": 11},
        {"dropped": 4},
        {"sampled": 8},
        {"bad": -2},
        {"broken": -1},
        {"epoch": -1},
        {"version": 2**64},
        {"regions_offered": (4, 5, 1)},
        {"regions_offered": (11, -1)},
        {"regions_offered": (4, 7)},
        {"regions_dropped": (3, 3)},
        {"regions_sampled": (4, 0)},
        {"regions_sampled": (0, 2)},
    ],
)
def test_counts_that_cannot_be_are_refused(change: dict[str, Any]) -> None:
    lists: dict[str, Any] = {"regions_offered": (4, 6), "regions_dropped": (1, 2), "regions_sampled": (0, 1)}
    right = counts("east", 10, 3, sampled=1, **lists)
    assert decode(NodeCounts, encode(right)) == right
    text = encode(vars(right) | change)
    with pytest.raises(ValueError, match=r"\w"):
        decode(NodeCounts, text)
    with pytest.raises(ValueError, match=r"\w"):
        replace(right, **change)
