"""What a pass leaves behind: clocks that moved, pieces that came, and pieces whose time is over."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.state.samples import a_piece

from tidegate.control.outcome import changes_nothing, manifest_after, newest_seen
from tidegate.control.planning import first_manifest, next_plan
from tidegate.control.watermarks import ClockSettings
from tidegate.join.within import Within
from tidegate.model.debts import Debt, DebtCell, DebtRepair
from tidegate.model.graph import OperatorTraits
from tidegate.model.manifest import Manifest, SparkBatch
from tidegate.model.plan import Plan, PlanDecisions, RepairPlan, Rewrites
from tidegate.model.reports import SideRows, TaskReport
from tidegate.model.routing import Cut, together
from tidegate.model.skip_plan import Skipping
from tidegate.model.times import END_US

NO = (False, False)
OPERATORS = {
    "near": OperatorTraits("near", ("a", "b"), Within(-10, 10), NO, NO),
    "far": OperatorTraits("far", ("near", "a"), Within(-10, 10), NO, NO),
}
CLOCKS = {"a": ClockSettings(5, None), "b": ClockSettings(0, None)}
#: Pieces of the samples lie in partitions 1 and 7.
ROUTING = together(0, 2, (0,) * 8)
EVEN = together(0, 2, (0,) * 4 + (1,) * 4)


def a_report(operator: str = "near", seen_us: tuple[int | None, int | None] = (None, None)) -> TaskReport:
    """A task that did nothing but see these times."""
    return TaskReport(operator, 0, SideRows(seen_us=seen_us))


def planned(settle_us: int, *, flush: bool = False) -> tuple[Manifest, Plan]:
    """A state with one piece whose newest row is of time 100, and the plan of the batch behind it."""
    first = first_manifest({"x": 1}, list(CLOCKS), dict.fromkeys(OPERATORS, EVEN), now_us=0)
    piece = replace(a_piece("segments/1"), first_us=90, last_us=100)
    before = replace(first, pieces=(piece,), routing=dict.fromkeys(OPERATORS, ROUTING))
    plan = next_plan(0, before, OPERATORS, now_us=7, decided=PlanDecisions(flush=flush))
    return before, replace(plan, settle_us=dict.fromkeys(OPERATORS, settle_us))


def test_the_newest_time_of_a_stream_is_the_newest_of_all_tasks_and_sides() -> None:
    reports = [a_report("near", (3, None)), a_report("near", (1, 9)), a_report("far", (99, 4))]
    # The left input of `far` is a join: what it saw there is not the time of any stream.
    assert newest_seen(reports, OPERATORS) == {"a": 4, "b": 9}


def test_clocks_move_by_what_was_seen_and_the_flow_stays() -> None:
    before, plan = planned(settle_us=0)
    after = manifest_after(before, plan, [], {"a": 50, "b": None}, CLOCKS, OPERATORS)
    assert (after.batch, after.flow) == (0, {"x": 1})
    assert after.clocks["a"].watermark_us == 45
    assert after.clocks["b"] == before.clocks["b"]


def test_a_commit_without_rows_moves_no_clock_and_keeps_the_batch_of_spark() -> None:
    before, plan = planned(settle_us=0)
    heard = {name: replace(clock, seen_us=50) for name, clock in before.clocks.items()}
    before = replace(before, clocks=heard, spark_batch=SparkBatch(3))
    # By the wall clock, `b` has long been silent.
    idle = {"a": ClockSettings(5, None), "b": ClockSettings(0, 1)}
    heard["a"] = replace(heard["a"], watermark_us=45)
    late = replace(plan, now_us=10**9)
    assert manifest_after(before, late, [], {}, idle, OPERATORS).clocks != heard
    after = manifest_after(before, replace(late, spark_batch=None), [], {}, idle, OPERATORS)
    assert after.clocks == heard
    assert after.spark_batch == SparkBatch(3)
    taken = replace(plan, spark_batch=SparkBatch(4))
    assert manifest_after(before, taken, [], {}, CLOCKS, OPERATORS).spark_batch == SparkBatch(4)


def test_a_piece_stays_as_long_as_one_of_its_rows_can_meet_anybody() -> None:
    # A row of time 100 that stays for 10 is met by partners up to 110, so by rows at the watermark 110.
    for settle_us, alive in ((110, 1), (111, 0)):
        before, plan = planned(settle_us)
        assert len(manifest_after(before, plan, [], {}, CLOCKS, OPERATORS).pieces) == alive


def test_after_a_flush_everything_is_settled_and_gone() -> None:
    before, plan = planned(settle_us=0, flush=True)
    after = manifest_after(before, plan, [], {}, CLOCKS, OPERATORS)
    assert after.pieces == ()
    assert set(after.settled_us.values()) == {END_US}


# -- batches that need not run -------------------------------------------------------------------------------


def idle(before: Manifest, plan: Plan) -> bool:
    return changes_nothing(before, plan, CLOCKS, OPERATORS)


def test_a_batch_that_neither_settles_nor_moves_anything_changes_nothing() -> None:
    before, plan = planned(settle_us=0)
    before = replace(before, settled_us=dict(plan.settle_us), late_us=dict(plan.late.next_us))
    assert idle(before, plan)
    cut = Cut(0, 5, (1,), (7,))
    for due in (
        replace(plan, flush=True),
        replace(plan, settle_us=dict.fromkeys(OPERATORS, 1)),
        replace(plan, late=replace(plan.late, next_us=dict.fromkeys(OPERATORS, 1))),
        replace(plan, routing=dict.fromkeys(OPERATORS, EVEN)),
        replace(plan, rewrites=Rewrites(merges={"near": {"0": (("x", "y"),)}})),
        replace(plan, rewrites=Rewrites(cuts={"near": (cut,)})),
        replace(plan, repair=RepairPlan(repairs={"near": (DebtRepair(3, ()),)})),
    ):
        assert not idle(before, due), due


def test_a_batch_in_which_a_silent_stream_gives_up_its_place_is_due() -> None:
    before, plan = planned(settle_us=0)
    heard = {
        "a": replace(before.clocks["a"], seen_us=50, watermark_us=45),
        "b": replace(before.clocks["b"], watermark_us=10),
    }
    before = replace(before, settled_us=dict(plan.settle_us), late_us=dict(plan.late.next_us), clocks=heard)
    silent = {"a": ClockSettings(5, None), "b": ClockSettings(0, 1_000)}
    assert changes_nothing(before, replace(plan, now_us=999), silent, OPERATORS)
    assert not changes_nothing(before, replace(plan, now_us=1_000), silent, OPERATORS)


def test_debts_are_due_only_where_all_of_them_are_repaired() -> None:
    skipping = Skipping(0.5, ((0.5,), (0.5,)))
    debt = Debt("near", 0, skipping, 0, ((90, 100), (0, -1)), (DebtCell(0, 0, 5, 1.0),))
    before, plan = planned(settle_us=0)
    before = replace(before, settled_us=dict(plan.settle_us), late_us=dict(plan.late.next_us), debts=(debt,))
    kept = replace(plan, repair=RepairPlan(bytes_max=10**9))
    assert idle(before, kept)
    assert not idle(before, replace(kept, repair=RepairPlan(bytes_max=10**9, repair_all=True)))
