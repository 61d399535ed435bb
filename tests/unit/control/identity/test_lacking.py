"""What may be added behind operators that lack rows, and what must wait."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.control.identity.test_flow_change import NEAR, flow, join, manifest, window

from tidegate.control import planning
from tidegate.control.identity.lacking import refuse_lacking
from tidegate.errors import StateError
from tidegate.join.within import Unbounded
from tidegate.model.graph import FlowGraph, FlowTraits, OperatorTraits
from tidegate.model.plan import Plan, PlanDecisions, ShedPlan
from tidegate.model.skip_plan import Skipping

WHOLE = Skipping(1.0, ((1.0,), (1.0,)))
OPERATORS = flow(NEAR, window("busy", "near"), join("all", "near", "b"), join("more", "near", "b"))


def graph(*added: str, **fewer: bool) -> FlowGraph:
    """Near and what is added behind it; `fewer`: whether fewer rows make fewer, still correct, rows."""
    traits = {"near": FlowTraits("join", True)}
    traits |= {
        name: FlowTraits("window" if name == "busy" else "join", fewer.get(name, False)) for name in added
    }
    inputs = {"near": ("a", "b"), "busy": ("near",), "all": ("near", "b"), "more": ("near", "b")}
    inputs["behind"] = ("more",)
    return FlowGraph(("a", "b"), traits, inputs, {})


def added(
    graph: FlowGraph,
    gaps: dict[str, int] | None = None,
    begun: Plan | None = None,
    **operators: OperatorTraits,
) -> None:
    names = [name for name in graph.operators if name != "near"]
    found = replace(manifest(flow(NEAR)), control={"receipts": gaps or {}})
    refuse_lacking(names, graph, {**OPERATORS, **operators}, found, begun)


def begun(skipping: Skipping, **shed: Any) -> Plan:
    decided = PlanDecisions(seed=7, shed=ShedPlan({"near": skipping}, **shed))
    return planning.next_plan(4, manifest(flow(NEAR)), flow(NEAR), 5, decided)


def test_where_nothing_lacks_everything_may_be_added() -> None:
    added(graph("busy", "all"))
    added(graph("busy", "all"), {"other": 7}, begun(WHOLE))


def test_behind_rows_that_were_dropped_only_windows_of_time_and_what_stays_correct_begin() -> None:
    added(graph("busy", "more", more=True), {"near": 7})
    with pytest.raises(StateError, match=r"CHECKPOINT_ROWS_DROPPED.*'all'.*results of near.*EXACT again"):
        added(graph("all"), {"near": 7})
    # Over the full history a row that was dropped is missing for ever.
    with pytest.raises(StateError, match=r"CHECKPOINT_ROWS_DROPPED.*'busy'"):
        added(graph("busy"), {"near": 7}, near=join("near", "a", "b", Unbounded()))
    # Also behind what is added itself.
    with pytest.raises(StateError, match=r"'behind'.*results of more"):
        added(graph("more", "behind", more=True), {"near": 7})


@pytest.mark.parametrize(
    "left_out",
    [
        replace(WHOLE, shares=((1.0,), (0.5,))),
        replace(WHOLE, keep_share=0.5),
        replace(WHOLE, content=0.5),
        replace(WHOLE, fresh_us=(0, 7)),
        replace(WHOLE, forget_us=(7, 0)),
    ],
    ids=["shares", "keep", "content", "fresh", "forget"],
)
def test_behind_a_batch_that_was_begun_windows_wait_until_it_is_committed(left_out: Skipping) -> None:
    added(graph("more", more=True), begun=begun(left_out))
    for flow_of in (graph("busy"), graph("more", "behind", more=True)):
        with pytest.raises(StateError, match=r"CHECKPOINT_ROWS_DROPPED.*until the batch"):
            added(flow_of, begun=begun(left_out), behind=window("behind", "more"))
