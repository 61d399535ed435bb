"""How time passes through chained joins, and what a batch is planned to do with it.

a ─┐
   ├─▶ near ─┐
b ─┘         ├─▶ far
c ───────────┘
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from tests.unit.state.samples import a_piece

from tidegate.control.merging import CLOSED_MIN, TIER
from tidegate.control.planning import (
    first_manifest,
    next_plan,
    output_watermark,
    settle_plan,
)
from tidegate.join.within import Tumbling, Unbounded, Within
from tidegate.model.graph import OperatorTraits
from tidegate.model.manifest import Manifest, SparkBatch, StreamClock
from tidegate.model.plan import LateRows, Plan, PlanDecisions
from tidegate.model.routing import Routing, together
from tidegate.model.times import BEGINNING_US, END_US
from tidegate.window.lifetime import Lifetime, RowsLifetime
from tidegate.window.spec import WindowSpec

NEITHER, LEFT_ONLY, BOTH = (False, False), (True, False), (True, True)


def near(waiting: tuple[bool, bool], within: Within | Tumbling | Unbounded | None = None) -> OperatorTraits:
    return OperatorTraits("near", ("a", "b"), within or Within(-25, 10), waiting, waiting)


def far(waiting: tuple[bool, bool] = NEITHER) -> OperatorTraits:
    return OperatorTraits("far", ("near", "c"), Within(-100, 100), waiting, waiting)


def named(*operators: OperatorTraits) -> dict[str, OperatorTraits]:
    return {operator.name: operator for operator in operators}


EVEN = together(0, 2, (0, 0, 1, 1))


def manifest(settled_us: dict[str, int], **watermarks_us: int) -> Manifest:
    start = first_manifest({}, list(watermarks_us), dict.fromkeys(settled_us, EVEN), now_us=0)
    clocks = {name: StreamClock(at_us, at_us, 0) for name, at_us in watermarks_us.items()}
    return replace(start, clocks=clocks, settled_us=settled_us)


def late_in(given: Manifest, *operators: OperatorTraits) -> LateRows:
    return next_plan(given.batch + 1, given, named(*operators), 0).late


def test_rows_are_late_by_the_watermark_of_the_batch_before() -> None:
    late = late_in(manifest({"near": 290}, a=500, b=300), near(BOTH))
    assert late == LateRows({"a": 290, "b": 290}, {"near": (290, 290)}, {"near": 300})


def test_rows_of_windows_that_are_open_are_not_late() -> None:
    tumbling = near(BOTH, Tumbling(60))
    assert late_in(manifest({"near": 179}, a=500, b=300), tumbling).inputs == {"near": (120, 120)}
    hopping = OperatorTraits("near", ("a", "a"), Lifetime(WindowSpec(20, 10)), LEFT_ONLY, LEFT_ONLY)
    # The window from 150 to 170 is over, that from 160 on is open.
    assert late_in(manifest({"near": 179}, a=500), hopping).inputs == {"near": (160, 160)}


def test_each_operator_judges_a_stream_that_several_read() -> None:
    other = replace(near(NEITHER), name="other", inputs=("a", "c"))
    late = late_in(manifest({"near": 290, "other": 150}, a=500, b=300, c=200, d=70), near(BOTH), other)
    assert late.inputs == {"near": (290, 290), "other": (150, 150)}
    # An output or a match of the stream takes what all of them take; a stream that none reads has its own.
    assert late.streams == {"a": 290, "b": 290, "c": 150, "d": 70}


def test_an_operator_goes_by_the_slowest_of_its_group_or_the_fastest() -> None:
    given = manifest({"near": 0}, a=500, b=300, c=200)
    grouped = replace(near(BOTH), group=("a", "b", "c"))
    assert settled_by(given, grouped) == {"near": 200}
    assert settled_by(given, replace(grouped, rule="fastest")) == {"near": 500}


def test_streams_may_be_judged_each_by_its_own_newest_watermark() -> None:
    late = late_in(manifest({"near": 290}, a=500, b=300), replace(near(BOTH), rule="own"))
    assert late == LateRows({"a": 500, "b": 300}, {"near": (500, 300)}, {"near": 300})


def test_a_union_drops_only_what_all_its_readers_drop() -> None:
    unions = {"a_c": ("a", "c")}
    first = replace(near(NEITHER), inputs=("a_c", "b"), unions=unions)
    second = replace(first, name="second", inputs=("a_c", "a_c"))
    late = late_in(manifest({"near": 30, "second": 50}, a=90, b=90, c=90), first, second)
    assert late.inputs == {"near": (30, 30), "second": (50, 50), "a_c": (30, 30)}
    assert late.streams == {"a": 50, "b": 30, "c": 50}


def test_where_keys_are_split_unmatched_rows_are_settled_one_batch_later() -> None:
    split = Routing(1, 2, EVEN.left, EVEN.left)
    given = replace(manifest({"near": 290}, a=500, b=300), routing={"near": split})
    operators = named(near(BOTH))
    rows = next_plan(0, given, operators, 0)
    assert (rows.settle_us, rows.late.next_us) == ({"near": 290}, {"near": 300})
    after = replace(given, settled_us=rows.settle_us, late_us=rows.late.next_us)
    assert next_plan(1, after, operators, 0).settle_us == {"near": 300}
    # No row comes with a commit that settles, so it need not wait.
    settling = PlanDecisions(spark_batch=None)
    assert next_plan(0, given, operators, 0, settling).settle_us == {"near": 300}
    assert next_plan(0, given, named(near(NEITHER)), 0).settle_us == {"near": 300}


def settled_by(given: Manifest, *operators: OperatorTraits) -> Mapping[str, int]:
    return next_plan(given.batch + 1, given, named(*operators), 0).settle_us


def test_the_watermark_of_a_union_is_that_of_its_slowest_stream() -> None:
    united = replace(near(NEITHER), inputs=("a_c", "b"), unions={"a_c": ("a", "c")})
    for slowest in "abc":
        marks = {name: 40 if name == slowest else 70 for name in "abc"}
        at = manifest({"near": 0}, **marks)
        assert settled_by(at, united) == {"near": 40}


# -- before the first batch ----------------------------------------------------------------------------------


def test_the_first_manifest_knows_nothing_yet() -> None:
    first = first_manifest({"partitions": 4}, ["a", "b"], {"near": EVEN}, now_us=9)
    assert first == Manifest(
        batch=-1,
        flow={"partitions": 4},
        clocks={name: StreamClock(BEGINNING_US, BEGINNING_US, 9) for name in ("a", "b")},
        settled_us={"near": BEGINNING_US},
        routing={"near": EVEN},
    )


def test_the_first_plan_judges_no_row_late_and_settles_none() -> None:
    operators = named(near(BOTH), far(BOTH))
    first = first_manifest({}, ["a", "b", "c"], dict.fromkeys(operators, EVEN), now_us=9)
    assert next_plan(0, first, operators, now_us=11) == Plan(
        batch=0,
        now_us=11,
        late=LateRows(
            dict.fromkeys(("a", "b", "c"), BEGINNING_US),
            dict.fromkeys(operators, (BEGINNING_US, BEGINNING_US)),
            dict.fromkeys(operators, BEGINNING_US),
        ),
        settle_us=dict.fromkeys(("near", "far"), BEGINNING_US),
        routing=first.routing,
    )


# -- watermarks ----------------------------------------------------------------------------------------------


def test_what_enters_a_join_is_as_old_as_the_slower_input() -> None:
    assert settled_by(manifest({"near": 0}, a=500, b=300), near(NEITHER)) == {"near": 300}
    assert settled_by(manifest({"near": 0}, a=200, b=300), near(NEITHER)) == {"near": 200}


def test_pairs_are_no_older_than_what_enters() -> None:
    assert output_watermark(near(NEITHER), manifest({"near": 300}, a=500, b=400)) == 300


@pytest.mark.parametrize(
    ("waiting", "expected_us"), [(LEFT_ONLY, 290 - 10), ((False, True), 290 - 25), (BOTH, 290 - 25)]
)
def test_waiting_rows_may_be_a_window_older_than_what_is_settled(
    waiting: tuple[bool, bool], expected_us: int
) -> None:
    assert output_watermark(near(waiting), manifest({"near": 290}, a=500, b=300)) == expected_us


def test_a_tumbling_join_waits_until_its_window_is_over() -> None:
    operator = near(BOTH, Tumbling(60))
    assert output_watermark(operator, manifest({"near": 179}, a=500, b=300)) == 120
    assert output_watermark(operator, manifest({"near": 180}, a=500, b=300)) == 180


def test_a_semi_join_over_the_full_history_may_emit_any_old_row() -> None:
    operator = near(LEFT_ONLY, Unbounded())
    assert output_watermark(operator, manifest({"near": 290}, a=500, b=300)) == BEGINNING_US


@pytest.mark.parametrize(
    ("waiting", "expected_us"),
    [(NEITHER, 300), (LEFT_ONLY, 290), (BOTH, 275)],
)
def test_a_chained_join_sees_the_first_one_s_output_watermark(
    waiting: tuple[bool, bool], expected_us: int
) -> None:
    # The batch settles the first one up to 300, and the second one up to what comes out after that.
    given = manifest({"near": 290, "far": 0}, a=500, b=300, c=400)
    assert settled_by(given, near(waiting), far()) == {"near": 300, "far": expected_us}


def test_a_chained_join_waits_for_its_own_stream_too() -> None:
    given = manifest({"near": 290, "far": 0}, a=500, b=300, c=200)
    assert settled_by(given, near(BOTH), far()) == {"near": 300, "far": 200}


def a_count_window(*pieces: tuple[int, int], settled_us: int) -> tuple[dict[str, OperatorTraits], Manifest]:
    """Windows of rows over stream a, whose watermark is 300, with pieces from … to …"""
    operators = named(OperatorTraits("near", ("a", "a"), RowsLifetime(), LEFT_ONLY, LEFT_ONLY))
    stored = tuple(
        replace(a_piece(f"segments/{i}"), operator="near", first_us=first, last_us=last).with_ranges(
            [(0, 0, 5)]
        )
        for i, (first, last) in enumerate(pieces)
    )
    return operators, replace(manifest({"near": settled_us}, a=300), pieces=stored)


@pytest.mark.parametrize(
    ("pieces", "expected_us"), [([], 290), ([(310, 320)], 290), ([(310, 320), (20, 250), (30, 400)], 20)]
)
def test_a_window_of_rows_may_begin_with_the_oldest_row_that_is_stored(
    pieces: list[tuple[int, int]], expected_us: int
) -> None:
    operators, given = a_count_window(*pieces, settled_us=290)
    assert output_watermark(operators["near"], given) == expected_us


@pytest.mark.parametrize(
    ("first", "last", "settled_us", "frees"),
    [
        (20, 250, 260, False),
        (20, 250, 251, False),
        (20, 250, 250, True),
        (20, 400, 290, True),
        (20, 400, 300, False),
        (299, 299, 290, True),
        (300, 400, 290, False),
    ],
)
def test_only_rows_that_the_watermark_passes_can_make_a_window_of_rows_complete(
    first: int, last: int, settled_us: int, frees: bool
) -> None:
    operators, given = a_count_window((first, last), settled_us=settled_us)
    plan = next_plan(1, given, operators, now_us=0)
    assert (settle_plan(plan, given, operators) is not None) == frees


def test_windows_add_up_along_a_chain_of_outer_joins() -> None:
    operators = named(near(BOTH), far(BOTH))
    given = manifest({"near": 290, "far": 265}, a=500, b=300, c=400)
    assert output_watermark(operators["far"], given) == 265 - 100


def test_watermarks_stop_at_the_ends_of_time() -> None:
    operators = named(near(BOTH), far(BOTH))
    young = manifest({"near": BEGINNING_US + 5, "far": BEGINNING_US}, a=BEGINNING_US + 9, b=0, c=0)
    assert output_watermark(operators["near"], young) == BEGINNING_US
    over = manifest({"near": END_US, "far": END_US}, a=END_US, b=END_US, c=END_US)
    assert output_watermark(operators["far"], over) == END_US


# -- plans ---------------------------------------------------------------------------------------------------


def test_a_plan_settles_what_no_new_row_can_meet() -> None:
    operators = named(near(BOTH), far(BOTH))
    given = manifest({"near": 290, "far": 0}, a=500, b=300, c=400)
    plan = next_plan(
        3, given, operators, now_us=77, decided=PlanDecisions(flush=True, spark_batch=SparkBatch(2), seed=5)
    )
    assert plan.settle_us == {"near": 300, "far": 275}
    assert plan.late.next_us == plan.settle_us
    assert plan.late.inputs == {"near": (290, 290), "far": (BEGINNING_US, 0)}
    assert plan.late.streams == {"a": 290, "b": 290, "c": 0}
    assert (plan.batch, plan.now_us, plan.flush, plan.seed) == (3, 77, True, 5)
    assert plan.spark_batch == SparkBatch(2)


def test_what_is_settled_stays_settled() -> None:
    operators = named(near(BOTH), far(BOTH))
    given = manifest({"near": 350, "far": 340}, a=500, b=300, c=400)
    assert next_plan(3, given, operators, now_us=77).settle_us == {"near": 350, "far": 340}


def test_the_same_arguments_give_the_same_plan() -> None:
    operators = named(near(BOTH), far(BOTH))
    given = manifest({"near": 290, "far": 0}, a=500, b=300, c=400)
    assert next_plan(3, given, operators, now_us=77) == next_plan(3, given, operators, now_us=77)


def test_a_plan_merges_each_operator_s_own_pieces() -> None:
    def stored(operator: str, count: int) -> list[str]:
        return [f"{operator}@{number}" for number in range(count)]

    operators = named(near(BOTH), far(BOTH))
    pieces = tuple(
        replace(a_piece(operator, number), operator=operator, partitions=(0,), bounds=(0, 2))
        for operator, count in (("near", TIER), ("far", TIER - 1))
        for number in range(count)
    )
    given = replace(manifest({"near": 0, "far": 0}, a=0, b=0, c=0), pieces=pieces)
    assert next_plan(3, given, operators, now_us=77).rewrites.merges == {
        "near": {"0": (tuple(sorted(stored("near", TIER))),)}
    }


@pytest.mark.parametrize(("last_us", "merged"), [(289, False), (290, True)])
def test_a_plan_does_not_merge_what_it_is_about_to_drop(last_us: int, merged: bool) -> None:
    # Left rows below 300 - 10 are dead; the slots of a window of 10 are 1 long.
    pieces = tuple(
        replace(a_piece("s", n), partitions=(0,), bounds=(0, 2), slot=last_us, last_us=last_us)
        for n in range(TIER)
    )
    given = replace(manifest({"near": 0}, a=500, b=300), pieces=pieces)
    assert bool(next_plan(3, given, named(near(BOTH)), now_us=77).rewrites.merges) is merged


@pytest.mark.parametrize(
    ("side", "slot", "merged"), [(0, 299, True), (0, 300, False), (1, 99, True), (1, 100, False)]
)
def test_a_plan_closes_each_side_s_slots_by_their_own_length(side: int, slot: int, merged: bool) -> None:
    # A tenth of each window, rounded up: slots of the left side are 1 long, of the right side 3.
    pieces = tuple(
        replace(a_piece("s", n), side=side, slot=slot, partitions=(0,), bounds=(0, 2))
        for n in range(CLOSED_MIN)
    )
    # Rows of the batch may be as old as what the batch before settled.
    given = replace(manifest({"near": 300}, a=500, b=400), pieces=pieces)
    assert bool(next_plan(3, given, named(near(BOTH)), now_us=77).rewrites.merges) is merged


# -- another pass without rows -------------------------------------------------------------------------------


def settled_plan(operators: dict[str, OperatorTraits], before: Manifest, after: Manifest) -> Plan | None:
    return settle_plan(
        next_plan(3, before, operators, now_us=77, decided=PlanDecisions(spark_batch=None)), after, operators
    )


def test_another_pass_settles_up_to_where_the_rows_moved_time() -> None:
    operators = named(near(BOTH), far())
    before = manifest({"near": 290, "far": 265}, a=300, b=300, c=400)
    after = replace(manifest({"near": 300, "far": 265}, a=450, b=420, c=430), batch=3)
    plan = settled_plan(operators, before, after)
    assert plan is not None
    assert plan.settle_us == {"near": 420, "far": 395}
    first = next_plan(3, before, operators, now_us=77, decided=PlanDecisions(spark_batch=None))
    assert plan.late.next_us == plan.settle_us
    assert replace(plan, settle_us={}, late=first.late) == replace(first, settle_us={})


def test_another_pass_merges_nothing() -> None:
    operators = named(near(BOTH))
    pieces = tuple(replace(a_piece("s", n), partitions=(0,), bounds=(0, 2)) for n in range(TIER))
    before = replace(manifest({"near": 290}, a=300, b=300), pieces=pieces)
    assert next_plan(3, before, operators, now_us=77).rewrites.merges
    again = settled_plan(operators, before, replace(before, clocks=manifest({}, a=400, b=400).clocks))
    assert again is not None
    assert again.rewrites.merges == {}


def test_no_other_pass_when_time_has_not_moved() -> None:
    operators = named(near(BOTH), far(BOTH))
    still = manifest({"near": 300, "far": 265}, a=300, b=300, c=400)
    assert settled_plan(operators, still, replace(still, settled_us={"near": 300, "far": 275})) is None


def test_no_other_pass_when_no_row_waits() -> None:
    operators = named(near(NEITHER), far(NEITHER))
    before = manifest({"near": 300, "far": 300}, a=300, b=300, c=300)
    after = manifest({"near": 300, "far": 300}, a=900, b=900, c=900)
    assert settled_plan(operators, before, after) is None


def test_rows_that_wait_behind_an_inner_join_are_set_free() -> None:
    operators = named(near(NEITHER), far(LEFT_ONLY))
    before = manifest({"near": 300, "far": 300}, a=300, b=300, c=300)
    after = manifest({"near": 300, "far": 300}, a=900, b=900, c=900)
    plan = settled_plan(operators, before, after)
    assert plan is not None
    assert plan.settle_us == {"near": 900, "far": 900}


def test_no_other_pass_while_time_moves_inside_one_tumbling_window() -> None:
    operators = named(near(BOTH, Tumbling(60)))
    before = manifest({"near": 130}, a=130, b=130)
    assert settled_plan(operators, before, manifest({"near": 130}, a=179, b=179)) is None
    assert settled_plan(operators, before, manifest({"near": 130}, a=180, b=180)) is not None


def test_no_other_pass_for_rows_that_wait_for_ever() -> None:
    operators = named(near(LEFT_ONLY, Unbounded()))
    before = manifest({"near": 130}, a=130, b=130)
    assert settled_plan(operators, before, manifest({"near": 130}, a=179, b=179)) is None


def test_one_pass_settles_a_chain() -> None:
    operators = named(near(BOTH), far(BOTH))
    start = manifest({"near": 290, "far": 265}, a=450, b=420, c=430)
    plan = next_plan(3, start, operators, now_us=77, decided=PlanDecisions(spark_batch=None))
    assert plan.settle_us == {"near": 420, "far": 395}
    assert settle_plan(plan, replace(start, settled_us=plan.settle_us), operators) is None


def test_no_other_pass_for_rows_that_wait_for_a_partner() -> None:
    semi = OperatorTraits("near", ("a", "b"), Within(-25, 10), waiting=LEFT_ONLY, unmatched=NEITHER)
    before = manifest({"near": 300}, a=300, b=300)
    moved = manifest({"near": 300}, a=500, b=500)
    assert settled_plan(named(semi), before, moved) is None
    assert settled_plan(named(near(LEFT_ONLY)), before, moved) is not None
