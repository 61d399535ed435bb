from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tidegate.api.goal import Shed
from tidegate.control.actuators import window_dropping
from tidegate.control.actuators.window_dropping import DropSettings
from tidegate.driver.frames.drop_frames import Dropping, Passing, output_name, refuse_rows_gone
from tidegate.errors import StateError
from tidegate.model.manifest import Manifest, StreamClock
from tidegate.model.plan import LateRows, Plan, ShedPlan
from tidegate.window.drop import dropped_windows
from tidegate.window.drop.network import (
    DropJoinNode,
    DropOutputNode,
    DropSourceNode,
    DropStepNode,
    DropWindowNode,
    Network,
    Node,
)
from tidegate.window.spec import WindowSpec

PAIRS = (
    DropSourceNode("left"),
    DropSourceNode("right"),
    DropJoinNode("pairs", "left", "right", -5, 5, inner=False),
    DropWindowNode("sums", "pairs", WindowSpec(100, 100)),
)


def output(name: str, parent: str, max_gap: int | None = None) -> DropOutputNode:
    return DropOutputNode(output_name(name), parent, max_gap)


def dropping(nodes: tuple[Node, ...], shed: Shed | None = None) -> DropSettings:
    return DropSettings(shed, Network(nodes))


def manifest(control: Any = None, seen_us: int = 1_000) -> Manifest:
    clocks = {name: StreamClock(seen_us, seen_us, 0) for name in ("left", "right")}
    settled = {"pairs": seen_us, "sums": seen_us - 10}
    return Manifest(0, {}, clocks, settled, {}, control=control or {})


def plan_after(settings: DropSettings, before: Manifest) -> Plan:
    decided = window_dropping.decide(settings, before)
    return Plan(1, 0, LateRows({}), before.settled_us, {}, shed=ShedPlan(dropping=decided))


@pytest.fixture
def after_a_drop() -> Manifest:
    """What a run leaves behind that dropped rows in front of the join, for the windows behind it."""
    settings = dropping((*PAIRS, output("busy", "sums", 9)), Shed(window=0.9))
    before = manifest()
    return replace(before, control=window_dropping.remembered(settings, plan_after(settings, before)))


def test_an_output_of_pairs_is_refused_while_rows_of_the_join_are_missing(after_a_drop: Manifest) -> None:
    settings = dropping((*PAIRS, output("busy", "sums", 9), output("new", "pairs")))
    with pytest.raises(StateError, match=r"CHECKPOINT_ROWS_DROPPED.*'new'.*event time has passed"):
        refuse_rows_gone(settings, after_a_drop)
    refuse_rows_gone(dropping((*PAIRS, output("new", "sums"))), after_a_drop)
    refuse_rows_gone(settings, manifest(after_a_drop.control, seen_us=10_000))


def test_a_run_without_a_goal_drops_what_was_decided_and_says_so(after_a_drop: Manifest) -> None:
    settings = dropping((*PAIRS, output("other", "sums")))
    known = after_a_drop.control[dropped_windows.CONTROL]
    plan = plan_after(settings, after_a_drop)
    passing = Passing(settings, plan)
    arrows = {(parent, child) for parent, children in known["gaps"].items() for child in children}
    assert arrows >= {("left", "pairs"), ("pairs", "sums")}
    assert passing.along("left", "pairs") is not None
    assert passing.into("pairs", "sums", 0) is not None
    assert Passing(settings, plan_after(settings, manifest())).into("pairs", "sums", 0) is None
    (warning,) = Dropping(settings).warnings(after_a_drop)
    assert (warning.code, warning.subject) == ("WINDOWS_DROPPED_EARLIER", "other")
    over = manifest(after_a_drop.control, seen_us=10_000)
    assert not list(Dropping(settings).warnings(over))
    assert window_dropping.decide(settings, over) == {}


def test_a_match_that_reads_windows_gets_all_of_them_beside_an_output_that_may_lose_some() -> None:
    nodes = (
        DropSourceNode("left"),
        DropWindowNode("sums", "left", WindowSpec(100, 100)),
        DropStepNode("match", "sums"),
        output("matched", "match"),
        output("busy", "sums", 9),
    )
    settings = dropping(nodes, Shed(window=0.9))
    before = Manifest(0, {}, {"left": StreamClock(1_000, 1_000, 0)}, {"sums": 990}, {})
    passing = Passing(settings, plan_after(settings, before))
    assert passing.along("sums", output_name("busy")) is not None
    assert passing.out_of("sums") is None
    assert passing.along("left", "sums") is None


def test_a_match_that_is_added_lists_the_windows_that_it_does_not_get() -> None:
    windows = DropSourceNode("left"), DropWindowNode("sums", "left", WindowSpec(100, 100))
    before = Manifest(0, {}, {"left": StreamClock(1_000, 1_000, 0)}, {"sums": 990}, {})
    earlier = dropping((*windows, output("busy", "sums", 9)), Shed(window=0.9))
    before = replace(before, control=window_dropping.remembered(earlier, plan_after(earlier, before)))
    settings = dropping((*windows, DropStepNode("match", "sums"), output("matched", "match")))
    plan, after = plan_after(settings, before), replace(before, settled_us={"sums": 5_000})
    (runs,) = Dropping(settings).missing(plan, before, after).values()
    assert runs[0][0] >= 1_000
    assert Passing(settings, plan).out_of("sums") is not None


def test_only_the_output_that_is_shut_off_loses_its_windows() -> None:
    nodes = (
        DropSourceNode("left"),
        DropWindowNode("sums", "left", WindowSpec(100, 100)),
        output("off", "sums", 2),
        output("on", "sums", 2),
    )
    settings = dropping(nodes, Shed())
    (name,) = settings.drops
    known = {"shares": {name: 0.5}, "shut": [output_name("off")], "advance_us": {name: 2_000}}
    clocks, control = {"left": StreamClock(1_000, 1_000, 0)}, {window_dropping.CONTROL: known}
    before = Manifest(0, {}, clocks, {"sums": 990}, {}, control=control)
    plan = plan_after(settings, before)
    passing = Passing(settings, plan)
    off, on = (passing.along("sums", output_name(one)) for one in ("off", "on"))
    assert on is not None
    assert off is not None
    gaps = (on.between().high - on.between().low).tolist()
    assert max(gaps) < 300, "three windows in a row are missing"
    assert (off.between().high - off.between().low).max() > 2_000
    assert Dropping(settings).ratios(plan) == {"off": 1.0, "on": 0.5}
    (warning,) = Dropping(settings).warnings(before)
    assert (warning.code, warning.subject) == ("OUTPUT_SHUT_OFF", "off")


def test_what_a_plan_of_other_groups_dropped_outlives_the_inner_windows() -> None:
    def nested(inner: str | None) -> DropSettings:
        sums = DropWindowNode("sums", "left", WindowSpec(10, 10), ("k",), inner)
        outer = DropWindowNode("outer", "sums", WindowSpec(100, 100), ("k",), "k")
        return dropping((DropSourceNode("left"), sums, outer, output("out", "outer")))

    some = {"cohorts": [3], "low": [0], "high": [1], "from_us": 1_000, "unit_us": 1}
    written = {"gaps": {"left": {"sums": {**some, "high": [10]}}, "sums": {"outer": some}}}
    plan = Plan(1, 0, LateRows({}), {}, {}, shed=ShedPlan(dropping=written))
    # Without groups of the inner windows, this run drops those at 1,000 of all groups.
    control = window_dropping.remembered(nested(None), plan)
    after = Manifest(1, {}, {}, {"sums": 1_010, "outer": 1_010}, {}, control=control)
    again = nested("k")
    gaps = window_dropping.arrows(again, plan_after(again, after))
    cohorts = again.network.cohorts
    assert cohorts is not None
    assert ("left", "sums") not in gaps
    assert set(cohorts.parts(gaps["outer", output_name("out")])[0].tolist()) == set(range(64))
