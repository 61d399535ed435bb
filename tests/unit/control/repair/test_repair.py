"""Which owed work a batch does, from the manifest alone."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.control.repair.test_debts import HALF, debt, manifest, plan
from tests.unit.control.test_outcome import a_report

from tidegate.control.goal.cost_model import CostModel, Effort
from tidegate.control.repair import repair
from tidegate.control.repair.repair import RepairSettings, choose, everything, learn
from tidegate.model.codec import from_plain, to_plain
from tidegate.model.debts import Debt, DebtCell, DebtRepair, RepairCell
from tidegate.model.reports import Repaired, SideRows
from tidegate.model.skip_plan import Skipping

SETTINGS = RepairSettings("idle", 1000, batch_seconds=2.0, parallelism=2)
ALL = replace(HALF, fraction=1.0)


def owing(batch: int, *cells: tuple[int, float]) -> Debt:
    """A debt with these comparisons and matches by age."""
    return replace(debt(batch), cells=tuple(DebtCell(0, age, *cell) for age, cell in enumerate(cells)))


def chosen(
    *debts: Debt,
    ordinary: float = 0.5,
    rows: int = 10,
    known: float = 10**9,
    took: float | None = None,
    per_comparison: float = 0.0,
    skipping: Skipping = ALL,
    settings: RepairSettings = SETTINGS,
) -> list[tuple[Any, ...]]:
    """(batch, age, since, until) of what is paid."""
    model = CostModel()
    model.costs[2] = per_comparison
    control: dict[str, Any] = {"rows": rows, "ordinary": [0.1, ordinary], "comparisons": known}
    control |= {"seconds": took, "model": to_plain(model)}
    paid = choose(settings, replace(manifest(*debts), control={repair.CONTROL: control}), {"near": skipping})
    return [
        (one.batch, cell.age, cell.since, cell.until) for one in paid.get("near", ()) for cell in one.cells
    ]


def test_spare_time_takes_the_most_valuable_cells_and_the_last_in_part() -> None:
    debts = owing(1, (1000, 1.0), (1000, 9.0)), owing(2, (1000, 5.0))
    # 0.75 of 2 s less 0.5 s: there is a second, for 1,500 comparisons.
    assert chosen(*debts, per_comparison=1 / 1500) == [(1, 1, 0.0, 1.0), (2, 0, 0.0, pytest.approx(0.5))]


def test_of_equal_value_the_older_debt_is_paid_first() -> None:
    assert chosen(owing(4, (10, 1.0)), owing(3, (10, 1.0)), per_comparison=0.1) == [(3, 0, 0.0, 1.0)]


def test_what_was_paid_in_part_goes_on_from_there() -> None:
    begun = replace(debt(1), cells=(DebtCell(0, 2, 1000, 1.0, 0.5),))
    assert chosen(begun, per_comparison=0.004) == [(1, 2, 0.5, pytest.approx(0.75))]


def test_nothing_is_paid_without_spare_time_or_while_work_is_left_out() -> None:
    assert chosen(debt(1), ordinary=1.7) == []
    assert chosen(debt(1), skipping=HALF) == []
    assert chosen(debt(1), settings=replace(SETTINGS, when="on_stop")) == []
    assert chosen() == []


def test_when_nothing_arrives_something_is_paid_whatever_the_models_say() -> None:
    begun = chosen(owing(1, (10**6, 1.0)), ordinary=9.0, rows=0, skipping=HALF, per_comparison=1.0)
    assert begun == [(1, 0, 0.0, pytest.approx(repair.FIRST_COMPARISONS / 10**6))]


def test_when_nothing_arrives_there_is_time_even_where_overhead_takes_all_of_it() -> None:
    debts = owing(1, (4_000_000, 9.0))
    assert chosen(debts, ordinary=5.0, per_comparison=1e-6) == []
    # A quarter of two seconds.
    assert chosen(debts, ordinary=5.0, per_comparison=1e-6, rows=0) == [(1, 0, 0.0, pytest.approx(0.125))]


def test_a_model_that_knows_little_is_not_believed_at_once() -> None:
    (first,) = chosen(owing(1, (10**7, 1.0)), known=0)
    assert first[3] == pytest.approx(repair.FIRST_COMPARISONS / 10**7)
    (later,) = chosen(owing(1, (10**7, 1.0)), known=10**6)
    assert later[3] == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("took", "rise"),
    [(0.5, repair.RISE_MAX), (0.05, 10.0), (1e-6, repair.RISE_FAR), (0.0, repair.RISE_MAX)],
)
def test_what_took_next_to_no_time_is_multiplied_sooner(took: float, rise: float) -> None:
    """There is a second to spare: as many times as many as would fill half of it."""
    (paid,) = chosen(owing(1, (10**9, 1.0)), known=10**6, took=took)
    assert paid[3] == pytest.approx(rise * 1e-3)


def test_cells_for_which_nothing_was_counted_are_paid_too() -> None:
    assert chosen(owing(1, (0, 0.0)), per_comparison=1.0) == [(1, 0, 0.0, 1.0)]


def test_a_batch_takes_on_so_many_debts_at_most() -> None:
    paid = chosen(*(owing(batch, (1, 1.0)) for batch in range(100)))
    assert [batch for batch, *_ in paid] == list(range(repair.DEBTS_PER_BATCH_MAX))


def test_everything_is_what_is_left_of_all_debts() -> None:
    begun = replace(debt(1), cells=(DebtCell(1, 2, 10, 1.0, 0.5),))
    other = replace(debt(5), operator="far")
    assert everything([debt(3), other, begun]) == {
        "near": (
            DebtRepair(1, (RepairCell(1, 2, 0.5, 1.0),)),
            DebtRepair(3, (RepairCell(0, 1, 0.0, 1.0), RepairCell(0, 2, 0.0, 1.0))),
        ),
        "far": (DebtRepair(5, (RepairCell(0, 1, 0.0, 1.0), RepairCell(0, 2, 0.0, 1.0))),),
    }


def test_what_paying_costs_is_learnt_and_survives_json() -> None:
    known = manifest(debt(1))
    for size in (1000, 2000, 4000, 500):
        report = replace(a_report(), repaired=Repaired(size, 10, size / 1000))
        paid = plan(repairs={"near": (DebtRepair(1, ()),)})
        learnt = learn(SETTINGS, known, paid, [report, replace(report, instance=1)], 0.3, cold=False)
        known = replace(known, control={repair.CONTROL: json.loads(json.dumps(learnt))})
    # Two instances that take a second each, on two cores: a second.
    model = from_plain(CostModel, learnt["model"])
    assert model.fixed + float(model.rates @ Effort(1, 6000, 20).parts) == pytest.approx(3.0, rel=0.1)
    assert (learnt["comparisons"], learnt["seconds"]) == (1000, 0.5)
    assert learnt["ordinary"] == [0.3] * repair.ORDINARY_KEPT


def test_cold_batches_and_batches_that_pay_nothing_teach_no_costs() -> None:
    report = replace(a_report(), repaired=Repaired(1000, 10, 1.0), rows=SideRows(offered=(3, 4)))
    for paid, cold in ((plan(), False), (plan(repairs={"near": (DebtRepair(1, ()),)}), True)):
        learnt = learn(SETTINGS, manifest(), paid, [report], 0.3, cold=cold)
        model = from_plain(CostModel, learnt["model"])
        assert model.fixed + float(model.rates @ Effort(1, 1000, 10).parts) == 0
        assert (learnt["rows"], learnt["comparisons"]) == (7, 0)
