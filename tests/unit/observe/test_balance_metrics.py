"""What is told of a migration: the rows whose owner changed, and nothing else."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.control.balance.test_balancing import KEY, manifest, piece, report

from tidegate.model.plan import LateRows, Plan, Rewrites
from tidegate.model.reports import StateChange, TaskSeconds
from tidegate.model.routing import Cut, Place, Placement, Routing
from tidegate.observe.balance_metrics import balance_metrics

OLD = Routing(3, 2, Placement((0, 0, 1, 1)))


def plan(routing: Routing, *cuts: Cut) -> Plan:
    return Plan(6, 0, LateRows({}), {}, {"near": routing}, rewrites=Rewrites(cuts={"near": cuts}))


def test_partitions_that_change_their_owner_are_told_with_their_rows_and_bytes() -> None:
    before = manifest(OLD, piece(0, (0, 1, 2), (0, 4, 4, 5, 5, 10)), piece(1, (0,), (0, 3)))
    moved = Routing(4, 2, Placement((1, 0, 1, 1)))
    metrics = balance_metrics(before, plan(moved), [report(0, ()), report(1, ())])["near"]
    assert metrics["moved"] == {
        "partitions": 1,
        "keys": 0,
        "rows": 7,
        "bytes": 40 + 100,
        "recut_seconds": 0.0,
    }
    assert (metrics["version"], metrics["instances"], metrics["entries"]) == (4, 2, 4)


def test_of_a_key_that_is_split_only_the_rows_that_go_elsewhere_have_moved() -> None:
    before = manifest(OLD, piece(0, (2, 3), (0, 4, 4, 10)))
    places = Placement((0, 0, 1, 1, 0, 1), keys={KEY: Place((4, 5), (4, 5))})
    cut = ((2, 0, 4), (3, 4, 5), (4, 5, 7), (5, 7, 9), (3, 9, 10))
    metrics = balance_metrics(
        before,
        plan(Routing(4, 2, places), Cut(0, KEY, (3,), (4, 5))),
        [
            replace(
                report(0, ()),
                state=StateChange(recut={before.pieces[0].name: cut}),
                seconds=TaskSeconds(recut=0.25),
            ),
            replace(report(1, ()), seconds=TaskSeconds(recut=0.5)),
        ],
    )["near"]
    assert metrics["moved"] == {"partitions": 1, "keys": 1, "rows": 2, "bytes": 20, "recut_seconds": 0.5}
    assert (metrics["placed_keys"], metrics["split_keys"], metrics["entries"]) == (1, 1, 7)


def test_a_plan_that_changes_nothing_moves_nothing() -> None:
    metrics = balance_metrics(
        manifest(OLD, piece(0, (0,), (0, 4))), plan(OLD), [report(0, ()), report(1, ())]
    )
    assert metrics["near"]["moved"] is None
    assert metrics["near"]["imbalance"] == 1.0
