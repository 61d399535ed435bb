"""Operators that come and go between two runs: what stays, what begins, and a batch that was begun before."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tidegate.control import planning
from tidegate.control.identity.flow_change import FlowChange
from tidegate.control.identity.renames import Renames
from tidegate.control.watermarks import unheard
from tidegate.errors import StateError
from tidegate.join.within import Unbounded, Within
from tidegate.model.codec import to_json_values
from tidegate.model.graph import FlowNames, OperatorTraits
from tidegate.model.manifest import Manifest, StreamClock
from tidegate.model.plan import PlanDecisions
from tidegate.model.routing import together
from tidegate.model.times import BEGINNING_US
from tidegate.window.lifetime import Lifetime
from tidegate.window.spec import WindowSpec

SEEN_US = 1_234
ROUTING = together(0, 2, (0, 1))


def join(name: str, left: str, right: str, within: Any = None) -> OperatorTraits:
    within = within or Within(-50, 50)
    return OperatorTraits(name, (left, right), within, (False, False), (False, False))


def window(name: str, source: str, size: int = 100) -> OperatorTraits:
    spec = WindowSpec(size, size)
    return OperatorTraits(name, (source, source), Lifetime(spec), (True, False), (True, False))


def flow(*operators: OperatorTraits) -> dict[str, OperatorTraits]:
    return {one.name: one for one in operators}


def names(operators: dict[str, OperatorTraits]) -> FlowNames:
    return FlowNames(("a", "b"), tuple(operators), tuple(operators))


def manifest(operators: dict[str, OperatorTraits]) -> Manifest:
    first = planning.first_manifest(
        {"names": to_json_values(names(operators))}, ["a", "b"], dict.fromkeys(operators, ROUTING), 0
    )
    clocks = {"a": StreamClock(SEEN_US, 1_000, 0), "b": StreamClock(900, 800, 0)}
    return replace(first, batch=3, clocks=clocks, settled_us=dict.fromkeys(operators, 700))


def changed(
    before: dict[str, OperatorTraits], after: dict[str, OperatorTraits], **asked: str
) -> tuple[FlowChange, Manifest]:
    found = manifest(before)
    change = FlowChange.between(found.flow, names(after), Renames(asked))
    return change, change.manifest(found, {"new": True}, dict.fromkeys(after, ROUTING), after)


NEAR = join("near", "a", "b")


def test_an_added_operator_begins_empty_and_the_others_go_on() -> None:
    _, after = changed(flow(NEAR), flow(NEAR, join("more", "a", "b")))
    assert after.settled_us == {"near": 700, "more": BEGINNING_US}
    assert after.routing.keys() == {"near", "more"}
    assert after.begins_us == {}
    assert (after.flow, after.batch) == ({"new": True}, 3)


def test_an_added_window_begins_after_the_newest_row_of_its_streams() -> None:
    near, more = flow(NEAR), join("more", "a", "b")
    # The newest rows are of 1234 and 900; the window from 900 to 1000 lacks rows, or may lack some.
    for source, begins_us in (("a", 1300), ("b", 1000), ("near", 1300)):
        _, after = changed(near, flow(NEAR, window("busy", source)))
        assert after.begins_us == {"busy": begins_us}
    # 1234 and the 50 that pairs lie apart, rounded up to a window.
    _, after = changed(near, flow(NEAR, more, window("busy", "more", size=10)))
    assert after.begins_us == {"busy": 1290}
    _, after = changed(near, flow(NEAR, join("all", "a", "b", Unbounded()), window("busy", "all", size=10)))
    assert after.begins_us == {"busy": 1240}


def test_an_added_window_begins_after_all_pairs_with_rows_that_were_dropped() -> None:
    before, after = flow(NEAR), flow(NEAR, window("busy", "near", size=10), window("by a", "a", size=10))
    found = replace(manifest(before), control={"receipts": {"near": SEEN_US}})
    change = FlowChange.between(found.flow, names(after), Renames())
    carried = change.manifest(found, {}, dict.fromkeys(after, ROUTING), after)
    # A row after 1234 may lack pairs with rows up to 50 before it.
    assert carried.begins_us == {"busy": 1290, "by a": 1240}


def test_an_added_window_on_streams_without_rows_sees_all_there_are() -> None:
    found = manifest(flow(NEAR))
    blank = replace(found, clocks=planning.first_manifest({}, ["a", "b"], {}, 0).clocks)
    after = flow(NEAR, window("busy", "a"))
    change = FlowChange.between(found.flow, names(after), Renames())
    assert change.manifest(blank, {}, dict.fromkeys(after, ROUTING), after).begins_us == {}


def test_a_removed_operator_leaves_nothing_behind() -> None:
    change, after = changed(flow(NEAR, window("busy", "a")), flow(window("busy", "a")))
    assert change.removed == ("near",)
    assert after.settled_us.keys() == after.routing.keys() == {"busy"}


def begun(operators: dict[str, OperatorTraits]) -> Any:
    return planning.next_plan(4, manifest(operators), operators, 5, PlanDecisions(seed=7))


def test_a_batch_that_was_begun_runs_under_its_plan_with_the_added_operators() -> None:
    before, after = flow(NEAR), flow(join("close", "a", "b"), join("more", "a", "b"))
    change, carried = changed(before, after, near="close")
    known = begun(before)
    plan = change.plan(known, carried, lambda: planning.next_plan(4, carried, after, 99))
    assert plan.routing.keys() == plan.settle_us.keys() == plan.late.next_us.keys() == {"close", "more"}
    assert (plan.seed, plan.now_us) == (7, 5)
    assert plan.settle_us["close"] == known.settle_us["near"]
    assert plan.late.inputs["close"] == known.late.inputs["near"]


def test_a_plan_that_has_the_new_names_already_is_obeyed_as_it_is() -> None:
    before, after = flow(NEAR), flow(join("close", "a", "b"))
    change, carried = changed(before, after, near="close")
    known = begun(after)
    assert change.plan(known, carried, lambda: known) == known


def test_a_plan_of_other_names_is_refused() -> None:
    _, carried = changed(flow(NEAR), flow(NEAR))
    with pytest.raises(StateError, match=r"CHECKPOINT_PLAN_OF_OTHER_NAMES.*batch 4 without near"):
        FlowChange().plan(begun(flow(join("close", "a", "b"))), carried, lambda: begun(flow(NEAR)))


def test_streams_come_and_go_where_spark_knows_them_by_name() -> None:
    found = manifest(flow(NEAR))
    after = flow(NEAR, window("busy", "c"))
    current = FlowNames(("a", "c"), tuple(after), tuple(after))
    change = FlowChange.between(found.flow, current, Renames())
    assert (change.removed_streams, change.added_streams) == (("b",), ("c",))
    carried = change.manifest(found, {}, dict.fromkeys(after, ROUTING), after, now_us=9)
    assert carried.clocks == {"a": found.clocks["a"], "c": unheard(9)}
    assert carried.begins_us == {}
