"""The controller of sifters on a simulated machine: rows cost time, and there is only so much of it."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tidegate.api.goal import Shed
from tidegate.control import planning
from tidegate.control.actuators.sifting import CONTROL, Offered, SiftSettings, decide, learn
from tidegate.control.goal import goal_loop
from tidegate.control.goal.goal_step import KeepSettings, Ran
from tidegate.control.goal.goal_values import GoalSettings
from tidegate.model.codec import decode, encode_exactly
from tidegate.model.manifest import Manifest
from tidegate.model.plan import PlanDecisions, ShedPlan
from tidegate.model.reports import MatchReport
from tidegate.model.samples import Sampled
from tidegate.observe.shed_metrics import sift_metrics
from tidegate.sift.filter.decision import keep_by_hash
from tidegate.sift.filter.lookup import Lookup
from tidegate.sift.filter.sifter import Sifter
from tidegate.window.drop.network import DropOutputNode, DropSourceNode, DropStepNode, Network
from tidegate_lab.workloads.sifters import Workload, draw_queries, draw_rows, hits

#: Seconds: of a batch whatever it does, per row that is offered, per row that passes.
FIXED, ROW, PASSED = 0.1, 2e-6, 40e-6
BATCH_SECONDS = 1.0
NETWORK = Network((DropSourceNode("s"), DropStepNode("match1", "s"), DropOutputNode("found", "match1")))


class Machine:
    """One match under the controller; a batch a second, or when the last one is over."""

    def __init__(self, workload: Workload, **shed: Any) -> None:
        self.workload = workload
        self.queries = draw_queries(workload)
        self.settings = SiftSettings(Shed(**shed), {"match1": self.queries}, BATCH_SECONDS, BATCH_SECONDS)
        goal = GoalSettings(BATCH_SECONDS, trigger_seconds=BATCH_SECONDS)
        self.keep = KeepSettings(goal, BATCH_SECONDS, NETWORK, sifting=self.settings)
        self.manifest = planning.first_manifest({}, ["s"], {}, 0)
        self.batches: list[dict[str, Any]] = []
        self.now_us = 0

    def run(
        self,
        rate: int,
        workload: Workload | None = None,
        noise: float = 0.0,
        planned: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """One batch of what came, at so many rows a second, since the last one began; what became of it.

        `planned`: the sifters of a plan that stands already.
        """
        batch = self.manifest.batch + 1
        rng = np.random.default_rng([7, batch])
        last = self.batches[-1]["seconds"] if self.batches else 0.0
        interval = max(BATCH_SECONDS, last)
        rows, self.now_us = int(rate * interval), self.now_us + int(interval * 1_000_000)
        sifters = planned or decide(self.settings, self.manifest)
        plan = planning.next_plan(
            batch, self.manifest, {}, self.now_us, PlanDecisions(shed=ShedPlan(sifters=sifters))
        )
        sifter = Sifter.from_json(plan.shed.sifters["match1"])
        data = draw_rows(workload or self.workload, rows, part=batch)
        region = Lookup.of(sifter.regions).regions(list(data.T))
        bits = rng.integers(-(2**63), 2**63 - 1, rows)
        sampled = rng.random(rows) < sifter.sample_share
        passes = keep_by_hash(region, bits, sifter.thresholds) | sampled
        seconds = (FIXED + ROW * rows + PASSED * passes.sum()) * (1 + noise * rng.standard_normal())
        told = Sampled(data[sampled], hits(data[sampled], self.queries.boxes).astype(np.int32))
        kept = np.bincount(region[passes & ~sampled], minlength=sifter.regions.count)
        report = MatchReport(
            operator="match1",
            received=int(passes.sum()),
            late=0,
            rejected=0,
            seen_us=None,
            matched=0,
            emitted=0,
            cpu_seconds=0.0,
            kept=tuple(kept.tolist()),
            tried=int(passes.sum()),
            sampled=int(sampled.sum()),
            sample=told,
        )
        ran = Ran([], [report], {"match1": rows}, seconds, cold=False)
        learnt = goal_loop.learn(self.keep, self.manifest, plan, ran, self.manifest, {})
        self.manifest = replace(self.manifest, batch=batch, control=learnt)
        found = {"z": sifter.z, "passed": passes.mean(), "seconds": seconds, "sifter": sifter}
        self.batches.append({**found, "why": learnt[CONTROL]["matches"]["match1"]["why"]})
        return self.batches[-1]


def test_nothing_is_dropped_while_there_is_time() -> None:
    machine = Machine(Workload(query_count=50))
    for _ in range(5):
        assert machine.run(5_000)["passed"] == 1.0
    assert not machine.batches[-1]["sifter"].thresholds.any()


@pytest.mark.parametrize("sift", ["flexp", "random"])
def test_batches_are_on_time_three_batches_after_a_rush_begins_and_z_then_rests(sift: str) -> None:
    machine = Machine(Workload(query_count=200), sift=sift)
    for _ in range(4):
        machine.run(10_000)
    for _ in range(12):
        machine.run(60_000)
    rush = machine.batches[4:]
    assert rush[0]["seconds"] > BATCH_SECONDS, "there was no rush"
    assert all(batch["seconds"] <= BATCH_SECONDS for batch in rush[3:])
    settled = rush[5:]
    assert all(batch["seconds"] > 0.6 * BATCH_SECONDS for batch in settled), "more is dropped than must be"
    # A new sifter is corrected by what it let through, from its second batch on.
    assert all(abs(batch["passed"] - batch["z"]) < 0.02 for batch in settled), "the sifter misses its z"
    kept = [batch for before, batch in pairwise(rush[4:]) if before["z"] == batch["z"]]
    assert all(abs(batch["passed"] - batch["z"]) < 0.01 for batch in kept), "nothing corrects the sifter"
    assert len({batch["z"] for batch in settled[-6:]}) <= 2, "z does not rest"


def test_everything_passes_again_when_the_rush_is_over() -> None:
    machine = Machine(Workload(query_count=200))
    for rows in [10_000] * 3 + [60_000] * 6 + [10_000] * 6:
        machine.run(rows)
    assert machine.batches[8]["passed"] < 0.6
    assert machine.batches[-1]["passed"] == 1.0


def test_noisy_times_do_not_shake_the_throttle() -> None:
    machine = Machine(Workload(query_count=200))
    for _ in range(25):
        machine.run(50_000, noise=0.05)
    passed = [batch["passed"] for batch in machine.batches[8:]]
    assert max(passed) - min(passed) < 0.25
    assert np.median([batch["seconds"] for batch in machine.batches[8:]]) <= BATCH_SECONDS


def test_data_that_move_elsewhere_bring_a_new_sifter_though_z_stays() -> None:
    here, there = Workload(query_count=200, seed=1), Workload(query_count=200, seed=2)
    machine = Machine(here)
    for _ in range(8):
        machine.run(50_000)
    steady = machine.batches[-1]["sifter"].version
    for _ in range(3):
        machine.run(50_000, workload=there)
    whys = [batch["why"] for batch in machine.batches[-3:]]
    assert any("elsewhere" in why for why in whys), whys
    assert machine.batches[-1]["sifter"].version > steady


def test_what_was_learnt_with_other_queries_is_forgotten() -> None:
    machine = Machine(Workload(query_count=200))
    for _ in range(8):
        machine.run(60_000)
    other = Machine(Workload(query_count=150))
    manifest = machine.manifest
    assert decide(machine.settings, manifest)["match1"]["version"] > 0
    assert decide(other.settings, manifest)["match1"]["version"] == 0


def test_a_batch_that_was_planned_for_other_queries_is_learnt_from_all_the_same() -> None:
    machine, other = Machine(Workload(query_count=200)), Machine(Workload(query_count=150))
    for _ in range(8):
        machine.run(60_000)
    planned = decide(machine.settings, machine.manifest)
    assert len(planned["match1"]["thresholds"]) > 1
    # Killed behind its plan, and begun again with other queries.
    other.manifest = machine.manifest
    other.run(10_000, planned=planned)
    assert decide(other.settings, other.manifest)["match1"]["version"] <= 1


def test_a_sifter_over_other_columns_is_not_asked_and_counts_nothing() -> None:
    machine, other = Machine(Workload(query_count=200)), Machine(Workload(query_count=150, axes=3))
    for _ in range(8):
        machine.run(60_000)
    planned = decide(machine.settings, machine.manifest)
    plan = planning.next_plan(
        9, machine.manifest, {}, machine.now_us, PlanDecisions(shed=ShedPlan(sifters=planned))
    )
    report = MatchReport("match1", 1000, 0, 0, None, 0, 0, 0.0)
    learnt = learn(other.settings, machine.manifest, plan, [report], Offered({"match1": 1000}, 0.2))
    after = replace(machine.manifest, batch=9, control={CONTROL: learnt})
    assert decide(other.settings, after)["match1"]["version"] <= 1
    told = sift_metrics(plan, [report], {"match1": 1000}, after)["match1"]
    assert told["dropped"] == 0
    assert sum(told["kept"]) == 0


def test_the_controller_says_the_same_after_a_restart() -> None:
    machine = Machine(Workload(query_count=100))
    for _ in range(4):
        machine.run(60_000)
    again = decode(Manifest, encode_exactly(machine.manifest))
    assert decide(machine.settings, again) == decide(machine.settings, machine.manifest)
