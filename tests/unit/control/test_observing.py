"""A goal that only observes: the plan that runs sheds nothing, and forgets nothing that was shed before."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tidegate.control import observing
from tidegate.control.identity.translation import Translation
from tidegate.control.planning import first_manifest
from tidegate.control.receipts.roll_up import combined
from tidegate.model.plan import LateRows, Plan, ShedPlan
from tidegate.model.skip_plan import Skipping
from tidegate.model.times import BEGINNING_US
from tidegate.sift.filter.sifter import Sifter
from tidegate.sift.queries.axes import Axis
from tidegate.sift.regions import Domain
from tidegate.window.drop import dropped_windows

EMPTY = first_manifest({}, [], {}, 0)
SHED = Skipping(
    fraction=0.3,
    shares=((0.5, 0.0), (1.0, 0.25)),
    explore_share=0.1,
    keep_share=0.5,
    fresh_us=(7, 8),
    forget_us=(90, 95),
    content=0.4,
    fractions=(0.2, 0.4),
)


def test_a_join_probes_everything_and_gives_up_no_more_than_before() -> None:
    before = replace(EMPTY, control={"forget_us": {"near": [40, 50]}})
    (one,) = observing.skips_nothing({"near": SHED}, before).values()
    assert (one.fraction, one.shares) == (1.0, ((1.0, 1.0), (1.0, 1.0)))
    assert (one.explore_share, one.keep_share, one.content) == (0.0, 1.0, None)
    assert one.fresh_us == (BEGINNING_US, BEGINNING_US)
    assert one.forget_us == (40, 50)


def test_a_sifter_keeps_its_regions_and_samples_and_drops_nothing() -> None:
    axes = (Axis("x"),)
    sifter = Sifter.passing_everything(axes, Domain(np.zeros(1), np.ones(1)), 0.1, "m")
    sifter = replace(sifter, thresholds=np.array([0.7]), z=0.37, version=5)
    (raw,) = observing.opened({"m": sifter.to_json()}).values()
    opened = Sifter.from_json(raw)
    assert opened.thresholds.tolist() == [0.0]
    assert (opened.z, opened.sample_share, opened.version) == (1.0, 0.1, 5)


def test_windows_that_would_be_dropped_are_remembered_apart_from_those_that_are() -> None:
    would = ShedPlan({"near": SHED}, dropping={"drops": {"busy": {}}, "windows": {"w": 1}})
    plan = Plan(3, 0, LateRows({}), {}, {}, shed=ShedPlan(would=would))
    kept = observing.remembered(plan)
    assert kept == {observing.CONTROL: {"windows": {"w": 1}}, observing.FORGET: {"near": [90, 95]}}
    after = replace(EMPTY, control={dropped_windows.CONTROL: {"windows": {}}, **kept})
    assert observing.as_if_dropped(after).control[dropped_windows.CONTROL] == {"windows": {"w": 1}}
    # Where the goal begins to observe, what is dropped is what would be.
    assert observing.as_if_dropped(EMPTY) is EMPTY
    assert observing.as_if(plan).shed == would
    assert observing.remembered(replace(plan, shed=would)) == {}


def test_a_rename_reaches_what_would_have_been_shed() -> None:
    plan = Plan(3, 0, LateRows({}), {}, {}, shed=ShedPlan(would=ShedPlan({"near": SHED})))
    renamed = Translation({"near": "close"}).plan(plan)
    assert renamed.shed.would is not None
    assert list(renamed.shed.would.skipping) == ["close"]


def test_what_would_be_lost_adds_up_over_the_batches_that_were_observed() -> None:
    def line(batch: int, lost: list[float] | None) -> dict[str, object]:
        row: dict[str, object] = {
            **{f"rows_{of}": 5 for of in ("offered", "processed", "shed", "late", "rejected", "written")},
            **{"kind": "output", "name": "out", "mode": "EXACT", "complete": True, "shed_reasons": {}},
            **{"windows_missing": 0, "missing_windows": [], "loss_reasons": []},
            "estimate": {"found": 10.0, "certain": 10.0},
        }
        if lost is not None:
            ratio = lost[0] / lost[1]
            row |= {"would_pairs_skipped": 100, "would_windows_missing": 1, "would_lost": lost}
            row |= {"would_loss_ratio": ratio, "would_recall": 1 - ratio}
        return {"batch_id": batch, "started_at": "2026-01-01T00:00:00+00:00", "latency": None, "rows": [row]}

    lines = [line(0, None), line(1, [5.0, 10.0]), line(2, [0.0, 30.0]), line(3, None)]
    (row,) = combined(lines)["rows"]
    assert (row["would_loss_ratio"], row["would_recall"]) == (0.125, 0.875)
    assert (row["would_pairs_skipped"], row["would_windows_missing"]) == (200, 2)
    (again,) = combined([combined(lines[:2]), combined(lines[2:])])["rows"]
    assert again["would_loss_ratio"] == 0.125
    (none,) = combined([lines[0], lines[3]])["rows"]
    assert none.get("would_loss_ratio") is None
