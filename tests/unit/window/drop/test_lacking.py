from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.simulation.window_stories import BEGIN, LENGTH, Story, joined_story, story

from tidegate.model.times import END_US
from tidegate.window.drop.intervals import Intervals, between, merged
from tidegate.window.drop.lacking import closed_over
from tidegate.window.drop.network import (
    DropJoinNode,
    DropOutputNode,
    DropSourceNode,
    DropWindowNode,
    Network,
    time_window,
)
from tidegate.window.spec import RowsSpec, WindowSpec
from tidegate_lab.simulate.windows.window_network import evaluate


def gaps_of(rng: np.random.Generator, network: Network) -> dict[tuple[str, str], Intervals]:
    """Times that are missing in front of some windows and joins, from anywhere to anywhere."""
    found = {}
    for node in network.nodes:
        if time_window(node) is not None or isinstance(node, DropJoinNode):
            for parent in node.parents:
                low = rng.integers(BEGIN - 20, BEGIN + LENGTH, int(rng.integers(0, 3)))
                found[parent, node.name] = merged(low, low + rng.integers(1, 30, low.size))
    return found


@pytest.mark.parametrize("offsets", [False, True])
@pytest.mark.parametrize("make", [story, joined_story])
def test_a_result_outside_of_all_gaps_is_as_with_all_rows(make: Callable[..., Story], offsets: bool) -> None:
    changed = 0
    for seed in range(40):
        told = make(seed, offsets=offsets)
        gaps = gaps_of(np.random.default_rng(seed), told.network)
        exact = evaluate(told.program, told.arrivals)
        kept = {arrow: one.others() for arrow, one in gaps.items()}
        partial = evaluate(told.program, told.arrivals, kept)
        closed = closed_over(told.network, gaps)
        for output in told.network.outputs:
            different = exact[output.name] ^ partial[output.name]
            times = np.array([row.time for row in different], np.int64)
            changed += times.size
            gap = closed.get((output.parent, output.name), between(0, 0))
            assert gap.contain(times).all(), f"seed {seed}"
    assert changed > 50


def test_behind_windows_gaps_go_from_the_first_start_to_the_last() -> None:
    nodes = (
        DropSourceNode("rows"),
        DropWindowNode("inner", "rows", WindowSpec(30, 10, 3)),
        DropWindowNode("outer", "inner", WindowSpec(100, 100)),
        DropOutputNode("out", "outer"),
    )
    closed = closed_over(Network(nodes), {("rows", "inner"): between(200, 215)})
    # Windows that start from 173 to 213 touch it, and these lie in the outer windows 100 and 200.
    assert closed["inner", "outer"].to_json() == {"low": [173], "high": [214]}
    assert closed["outer", "out"].to_json() == {"low": [100], "high": [201]}


def test_rows_that_are_missing_change_all_later_windows_of_rows() -> None:
    nodes = (
        DropSourceNode("rows"),
        DropWindowNode("sums", "rows", WindowSpec(10, 10)),
        DropWindowNode("tens", "sums", RowsSpec(10, 10)),
        DropOutputNode("out", "tens"),
    )
    closed = closed_over(Network(nodes), {("rows", "sums"): between(200, 215)})
    assert closed["tens", "out"].to_json() == {"low": [200], "high": [END_US]}
