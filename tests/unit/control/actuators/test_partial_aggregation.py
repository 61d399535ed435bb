from __future__ import annotations

from dataclasses import replace

from tidegate.control.actuators.partial_aggregation import CONTROL, by_row, learn
from tidegate.control.planning import first_manifest, next_plan
from tidegate.model.manifest import Manifest
from tidegate.model.plan import PlanDecisions, Shuffles
from tidegate.model.reports import SideRows, TaskReport, WorkCounts


def report(rows: int, stored: int, late: int = 0) -> TaskReport:
    rows_of_it = SideRows(offered=(rows, 0), late=(late, 0))
    return TaskReport("window1", 0, rows_of_it, WorkCounts(stored=stored))


def after(manifest: Manifest, rows: int, stored: int, late: int = 0) -> Manifest:
    plan = next_plan(
        manifest.batch + 1, manifest, {}, 0, PlanDecisions(shuffles=Shuffles(by_row(manifest, ["window1"])))
    )
    learnt = learn(manifest, plan, [report(rows, stored, late)], ["window1"])
    return replace(manifest, batch=manifest.batch + 1, control={CONTROL: learnt})


def test_rows_go_as_they_are_where_adding_up_would_not_make_them_fewer() -> None:
    first = first_manifest({}, ["s"], {}, 0)
    assert by_row(first, ["window1"]) == ()
    assert by_row(after(first, rows=1000, stored=900), ["window1"]) == ("window1",)
    assert by_row(after(first, rows=1000, stored=10), ["window1"]) == ()


def test_between_the_bounds_everything_stays_as_it_is() -> None:
    first = first_manifest({}, ["s"], {}, 0)
    between = {"rows": 3000, "stored": 1000}
    assert by_row(after(first, **between), ["window1"]) == ()
    split = after(after(first, rows=1000, stored=1000), **between)
    assert by_row(split, ["window1"]) == ("window1",)
    assert by_row(after(split, rows=5000, stored=1000), ["window1"]) == ()


def test_late_rows_and_empty_batches_say_nothing() -> None:
    known = after(first_manifest({}, ["s"], {}, 0), rows=1000, stored=500, late=400)
    assert known.control[CONTROL]["ratio"] == {"window1": 1.2}
    assert after(known, rows=0, stored=0).control[CONTROL]["ratio"] == {"window1": 1.2}


def test_rows_that_are_no_larger_as_they_are_always_go_so_where_they_may() -> None:
    many = after(first_manifest({}, ["s"], {}, 0), rows=1000, stored=10)
    assert by_row(many, ["window1", "window2"], always=["window2", "window3"]) == ("window2",)
