"""The ledger: what is written down, what is left after a payment, what is needed for it, what is forgiven."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from tests.unit.control.test_outcome import OPERATORS, a_report
from tests.unit.state.samples import a_piece

from tidegate.control.planning import first_manifest
from tidegate.control.repair.debts import NOTHING, Ledger, Needs, debts_after, within_limit, without_given_up
from tidegate.model.debts import Debt, DebtCell, DebtRepair, RepairCell
from tidegate.model.manifest import Manifest
from tidegate.model.pieces import Piece
from tidegate.model.plan import LateRows, Plan, RepairPlan, ShedPlan
from tidegate.model.reports import ProbeCounts, StateChange
from tidegate.model.routing import together
from tidegate.model.skip_plan import Skipping

HALF = Skipping(0.5, ((1.0, 0.5, 0.0), (1.0, 1.0, 1.0)), orders=((0, 1, 2), (0, 1, 2)))


def debt(batch: int, spans: tuple[tuple[int, int], tuple[int, int]] = ((0, 9), (0, 9))) -> Debt:
    return Debt("near", batch, HALF, 0, spans, (DebtCell(0, 1, 100, 5.0), DebtCell(0, 2, 50, 1.0)))


def piece(side: int, first_us: int, last_us: int, batch: int, file: str = "s/1") -> Piece:
    made = replace(a_piece(file), side=side, first_us=first_us, last_us=last_us, keyless=False, level=0)
    return replace(made, batches=(batch, batch))


def manifest(*debts: Debt, batch: int = 6) -> Manifest:
    first = first_manifest({}, ["a", "b"], {"near": together(0, 1, (0,))}, 0)
    return replace(first, batch=batch, debts=debts)


def plan(
    skipping: Mapping[str, Skipping] | None = None,
    repairs: Mapping[str, tuple[DebtRepair, ...]] | None = None,
    repair_bytes: int | None = 1000,
) -> Plan:
    repair = RepairPlan(repair_bytes, repairs or {})
    return Plan(7, 0, LateRows({}), {}, {}, seed=3, shed=ShedPlan(skipping or {}), repair=repair)


def looks() -> tuple[ProbeCounts, ProbeCounts]:
    seen = ProbeCounts((100, 100, 100), (100, 50, 0), (8.0, 2.0, 0.0), (0, 0, 10), (0.0, 0.0, 3.0))
    return seen, ProbeCounts((0, 0, 0), (0, 0, 0), (0.0, 0.0, 0.0), (0, 0, 0), (0.0, 0.0, 0.0))


def test_what_the_shares_leave_out_is_owed_with_what_it_would_give() -> None:
    new = piece(1, 40, 44, 7)
    report = replace(a_report(), probes=looks(), state=StateChange(added=(new,)))
    (owed,) = debts_after(manifest(), plan(skipping={"near": HALF}), [report], OPERATORS).debts
    assert (owed.operator, owed.batch, owed.seed) == ("near", 7, 3)
    assert [(cell.window, cell.age, cell.comparisons) for cell in owed.cells] == [(0, 1, 50), (0, 2, 90)]
    # Of the second age 2 in 50 matched, of the third 3 in 10; a little of what all gave is mixed in.
    assert owed.cells[0].matches == pytest.approx(2, rel=0.1)
    assert owed.cells[1].matches == pytest.approx(27, rel=0.1)
    assert owed.skipping == replace(HALF, orders=((), ()))


def test_a_debt_needs_its_rows_and_what_they_had_in_reach_as_far_as_it_was_there() -> None:
    before = replace(manifest(), pieces=(piece(0, 20, 38, 5),))
    report = replace(a_report(), probes=looks(), state=StateChange(added=(piece(1, 40, 44, 7),)))
    (owed,) = debts_after(before, plan(skipping={"near": HALF}), [report], OPERATORS).debts
    assert owed.spans == ((30, 38), (40, 44))


@pytest.mark.parametrize(
    ("skipping", "rows"), [(HALF, False), (replace(HALF, shares=((1.0,) * 3, (1.0,) * 3)), True)]
)
def test_who_looks_at_everything_or_brings_nothing_owes_nothing(skipping: Skipping, rows: bool) -> None:
    report = replace(
        a_report(), probes=looks(), state=StateChange(added=(piece(1, 40, 44, 7),) if rows else ())
    )
    assert not debts_after(manifest(), plan(skipping={"near": skipping}), [report], OPERATORS).debts


def test_a_payment_moves_lots_on_and_a_paid_cell_is_gone() -> None:
    paid = DebtRepair(2, (RepairCell(0, 1, 0.0, 0.25), RepairCell(0, 2, 0.0, 1.0)))
    ledger = debts_after(manifest(debt(2), debt(4)), plan(repairs={"near": (paid,)}), [], OPERATORS)
    first, second = ledger.debts
    assert first.cells == (DebtCell(0, 1, 100, 5.0, 0.25),)
    assert (first.comparisons, first.matches) == (75, 3.75)
    assert second == debt(4)
    rest = DebtRepair(2, (RepairCell(0, 1, 0.25, 1.0),))
    left = debts_after(
        replace(manifest(), debts=ledger.debts), plan(repairs={"near": (rest,)}), [], OPERATORS
    )
    assert left.debts == (debt(4),)


def test_without_repair_everything_is_forgiven_and_what_was_in_this_batch_is_not_forgotten() -> None:
    ledger = debts_after(manifest(debt(2)), plan(repair_bytes=None), [], OPERATORS)
    assert ledger == Ledger((), (debt(2),))
    again = replace(manifest(batch=7), written_off=(debt(2),))
    assert debts_after(again, plan(), [], OPERATORS).written_off == (debt(2),)
    earlier = replace(manifest(batch=6), written_off=(debt(2),))
    assert debts_after(earlier, plan(), [], OPERATORS).written_off == ()


def test_pieces_that_touch_a_span_are_needed() -> None:
    needs = Needs([debt(1, ((0, 9), NOTHING)), debt(2, ((5, 20), (3, 4))), debt(3, ((40, 50), NOTHING))])
    for first, last, needed in (
        (-5, -1, False),
        (-5, 0, True),
        (20, 30, True),
        (21, 39, False),
        (45, 99, True),
    ):
        assert needs.has(piece(0, first, last, 0)) == needed
    assert needs.has(piece(1, 4, 8, 0))
    assert not needs.has(piece(1, 5, 8, 0))
    assert (needs.since_us("near", 0), needs.since_us("near", 1)) == (0, 3)
    assert not needs.has(replace(piece(0, 0, 5, 0), operator="far"))


def test_the_oldest_are_forgiven_until_what_outlives_its_window_fits() -> None:
    debts = tuple(debt(i, ((10 * i, 10 * i + 5), NOTHING)) for i in range(4))
    pieces = [piece(0, 10 * i, 10 * i + 5, i, f"s/{i}") for i in range(4)]
    each = pieces[0].data.length
    ledger = within_limit(Ledger(debts), pieces, lambda one: one.first_us < 30, 2 * each)
    assert ledger == Ledger(debts[1:], debts[:1])
    assert within_limit(Ledger(debts), pieces, lambda one: True, 4 * each) == Ledger(debts)
    assert within_limit(Ledger(debts), pieces, lambda one: False, 0) == Ledger(debts)
    assert within_limit(Ledger(debts), pieces, lambda one: True, 0) == Ledger((), debts)


def test_debts_that_need_rows_which_are_given_up_are_forgiven_and_new_ones_do_not_ask_for_them() -> None:
    forgetting = replace(HALF, forget_us=(35, 0))
    old, young = debt(5, ((20, 38), (20, 38))), debt(6, ((36, 40), (36, 40)))
    stored = (piece(0, 20, 34, 5), piece(0, 35, 38, 6, "s/2"))
    ledger = without_given_up(Ledger((old, young)), stored, {"near": forgetting})
    assert ledger == Ledger((young,), (old,))
    report = replace(a_report(), probes=looks(), state=StateChange(added=(piece(1, 40, 44, 7),)))
    before = replace(manifest(), pieces=stored)
    (owed,) = debts_after(before, plan(skipping={"near": forgetting}), [report], OPERATORS).debts
    assert owed.spans == ((35, 38), (40, 44))
