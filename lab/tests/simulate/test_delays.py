"""Counted delays: the same rows are counted as really pass, and the least drop is the least."""

from __future__ import annotations

import pytest

from tidegate.window.drop.decisions import Decisions
from tidegate.window.drop.network import DropOutputNode, DropSourceNode, DropStepNode, DropWindowNode, Network
from tidegate.window.drop.placement import place
from tidegate.window.spec import WindowSpec
from tidegate_lab.reproduce.window_drop.scenarios import fan_out, one_window, pipeline
from tidegate_lab.simulate.windows.delays import (
    Delays,
    all_arrows,
    arrows_behind,
    least_random_drop,
    least_window_drop,
)
from tidegate_lab.simulate.windows.window_network import Program, Row, evaluate, kept_on_arrows

NETWORK = Network(
    (
        DropSourceNode("rows"),
        DropStepNode("before", "rows"),
        DropWindowNode("inner", "before", WindowSpec(4, 2)),
        DropWindowNode("outer", "inner", WindowSpec(6, 6)),
        DropOutputNode("out", "outer", 5),
    )
)


def test_the_rows_that_are_counted_are_those_that_pass() -> None:
    (drop,) = place(NETWORK)
    decisions = Decisions(6, 0, 100, ((3, 8), (9, 12)))
    kept = kept_on_arrows(NETWORK, {drop: decisions})
    delays = Delays(NETWORK, {}, 120)
    results = evaluate(Program(NETWORK), {"rows": [Row(time, 0, 1) for time in range(120)]}, kept)["out"]
    # Windows that begin before the first row are not counted.
    assert delays.rows(("outer", "out"), kept) == len([row for row in results if row.time >= 0]) == 12
    # Of gaps in 18 … 47 and 54 … 71: the last kept windows before need rows up to 17 + 3 and 53 + 3.
    assert delays.rows(("rows", "before"), kept) == 120 - (48 - 20) - (72 - 56)
    assert delays.rows(("rows", "before"), {}) == 120
    assert delays.missing(kept) == pytest.approx(8 / 20)


def test_work_is_rows_times_cost() -> None:
    assert Delays(NETWORK, {"before": 1.0, "inner": 0.5, "outer": 2.0}, 60).full == 60 + 30 + 2 * 30


def test_parts_of_the_papers_queries_are_equally_costly() -> None:
    delays = pipeline(100)
    assert delays.full == 3 * 10_000
    assert delays.behind_windows() == 10_000
    delays = fan_out(100)
    assert delays.full == 5 * 2_000
    assert delays.behind_windows() == 2 * 2_000


def test_the_least_drop_is_just_enough() -> None:
    delays = one_window(25, 25, 1_000)
    (drop,) = place(delays.network)
    loss = least_window_drop(delays, {drop: all_arrows(drop)}, 0.25, seed=1)
    assert loss is not None
    assert loss.missing == pytest.approx(0.2, abs=0.01)
    assert least_window_drop(delays, {drop: all_arrows(drop)}, 0.0, seed=1) is not None
    assert least_window_drop(delays, {drop: all_arrows(drop)}, 11.0, seed=1) is None


def test_a_drop_further_down_saves_less() -> None:
    delays = pipeline(500)
    (drop,) = place(delays.network)
    at_source = least_window_drop(delays, {drop: all_arrows(drop)}, 0.5, seed=1)
    behind_inner = arrows_behind(delays.network, drop, "inner")
    assert ("rows", "before") not in behind_inner
    in_between = least_window_drop(delays, {drop: behind_inner}, 0.5, seed=1)
    assert at_source is not None
    assert in_between is not None
    assert (at_source.missing, in_between.missing) == pytest.approx((1 / 3, 1 / 2), abs=0.01)
    assert least_random_drop(delays, 0.51) is None
