from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.state.samples import a_manifest, a_piece, a_plan, a_range

from tidegate.model.codec import decode, encode, encode_exactly
from tidegate.model.debts import Debt, DebtCell, DebtRepair, RepairCell
from tidegate.model.manifest import Manifest, SparkBatch, StreamClock
from tidegate.model.pieces import Piece
from tidegate.model.plan import Plan
from tidegate.model.reports import (
    MatchReport,
    PartitionLoad,
    Repaired,
    SideRows,
    StateChange,
    TaskReport,
    TaskSeconds,
    WorkCounts,
    report_text,
    reports_in,
)
from tidegate.model.routing import together
from tidegate.model.skip_plan import Skipping
from tidegate.model.times import BEGINNING_US, END_US


def spread(*partitions: tuple[int, int, int]) -> Piece:
    """A piece with these (partition, first row, end)."""
    return replace(
        a_piece("s/1"),
        partitions=tuple(p for p, _, _ in partitions),
        bounds=tuple(bound for _, start, stop in partitions for bound in (start, stop)),
        matched={"0": a_range("s/2")},
    )


def a_report() -> TaskReport:
    return TaskReport(
        operator="near",
        instance=3,
        rows=SideRows((10, 20), (1, 2), (0, 3), (4, 0), seen_us=(END_US, None)),
        work=WorkCounts(stored=24, probed=30, comparisons=100, matches=7),
        seconds=TaskSeconds(0.1),
        state=StateChange(
            1 << 40,
            0,
            (a_piece("s/3", 64, level=2, matched={"1": a_range("s/4", 8)}),),
            ("s/1@0", "s/2@64"),
            {"s/3@64": a_range("s/5")},
        ),
        emitted=5,
        partitions=(PartitionLoad(1, (2, 3), 3, 4, 5), PartitionLoad(9)),
    )


def a_debt(batch: int) -> Debt:
    skipping = Skipping(0.5, ((1.0, 0.5), (0.0, 1.0)), explore_share=0.1, filled_us=(3, END_US))
    cells = (DebtCell(0, 1, 100, 2.5), DebtCell(1, 0, 7, 0.0, repaired=0.5))
    return Debt("near", batch, skipping, 9, ((1, 2), (END_US, BEGINNING_US)), cells)


# -- what is written comes back equal ------------------------------------------------------------------------


def test_a_plan_comes_back_equal_from_json() -> None:
    payment = DebtRepair(2, (RepairCell(0, 1, 0.0, 0.5), RepairCell(1, 0, 0.25, 1.0)))
    taken = SparkBatch(4, "0123456789abcdef")
    plan = replace(a_plan(5), flush=True, spark_batch=taken, settle_us={"near": END_US})
    plan = replace(
        plan, repair=replace(plan.repair, bytes_max=7, repairs={"near": (payment,)}, repair_all=True)
    )
    assert decode(Plan, encode(plan)) == plan
    settling = replace(plan, spark_batch=None)
    assert decode(Plan, encode(settling)) == settling
    assert (plan.settles, settling.settles) == (False, True)


def test_a_manifest_comes_back_equal_from_json() -> None:
    pieces = [a_piece("s/1", matched={"0": a_range("s/2")}), replace(a_piece("s/1", 64), slot=None)]
    manifest = replace(
        a_manifest(7, *pieces),
        clocks={
            "orders": StreamClock(END_US, END_US, 1),
            "drivers": StreamClock(BEGINNING_US, BEGINNING_US, 2),
        },
        debts=(a_debt(4), a_debt(5)),
        written_off=(a_debt(3),),
    )
    assert decode(Manifest, encode(manifest)) == manifest


def test_reports_come_back_equal_and_those_of_matches_apart() -> None:
    report, match = (
        replace(a_report(), repaired=Repaired(5, 2, 0.25)),
        MatchReport("m", 9, 1, 0, None, 3, 4, 0.5),
    )
    texts = [report_text(report), report_text(match), report_text(report)]
    assert reports_in(texts) == ([report, report], [match])


@pytest.mark.parametrize("text", ["{}", '{"operator":"near"}', '{"task":null,"match":null}'])
def test_a_line_without_a_report_is_not_passed_over(text: str) -> None:
    with pytest.raises(ValueError, match="exactly one of task and match"):
        reports_in([text])


@pytest.mark.parametrize(
    ("kind", "value"),
    [(Plan, a_plan(5)), (Manifest, a_manifest(5, a_piece("s/1"))), (TaskReport, a_report())],
)
def test_what_comes_back_writes_the_same_text_again(kind: Any, value: Any) -> None:
    assert encode(decode(kind, encode(value))) == encode(value) == encode_exactly(value)


def test_other_values_write_another_text() -> None:
    assert encode(a_plan(5)) != encode(replace(a_plan(5), seed=8))
    assert encode(a_manifest(5)) != encode(a_manifest(5, a_piece("s/1")))


# -- pieces --------------------------------------------------------------------------------------------------


def test_a_piece_is_named_after_its_place() -> None:
    assert a_piece("s/1", 64).name == "s/1@64"


def test_slices_are_the_rows_of_the_owned_partitions() -> None:
    piece = spread((1, 0, 4), (4, 10, 12), (6, 20, 21))
    assert piece.slices({1, 6}) == [(0, 4), (20, 21)]
    assert piece.slices({2, 5}) == []


def test_neighbouring_slices_become_one() -> None:
    piece = spread((1, 0, 4), (2, 4, 10), (5, 10, 12), (6, 13, 20))
    assert piece.slices(range(10)) == [(0, 12), (13, 20)]
    assert piece.slices({1, 5}) == [(0, 4), (10, 12)]


def test_a_partition_that_leaves_takes_its_bounds_and_nothing_else() -> None:
    piece = spread((1, 0, 4), (2, 4, 10), (5, 10, 12))
    assert piece.without({2}) == spread((1, 0, 4), (5, 10, 12))
    assert piece.without({9}) == piece


def test_a_piece_that_loses_its_last_partition_is_gone() -> None:
    assert spread((1, 0, 4), (2, 4, 10)).without({1, 2, 3}) is None


# -- routing -------------------------------------------------------------------------------------------------


def test_every_partition_is_owned_by_the_instance_in_the_table() -> None:
    routing = together(0, 3, (0, 2, 0, 2))
    assert [routing.left.owned_by(instance) for instance in range(3)] == [{0, 2}, set(), {1, 3}]


def test_the_ends_of_time_are_the_ends_of_int64() -> None:
    assert (BEGINNING_US, END_US) == (-0x8000_0000_0000_0000, 0x7FFF_FFFF_FFFF_FFFF)
