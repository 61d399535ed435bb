"""A window of which rows were left out is an estimate, also if a later run takes all rows."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.simulation.restarting import traits_of

from tidegate.control import planning
from tidegate.control.actuators import sampling
from tidegate.control.actuators.sampling import EstimateSettings
from tidegate.control.balance.rerouting import first_routing
from tidegate.control.outcome import manifest_after
from tidegate.control.receipts.receipts import ESTIMATED
from tidegate.control.watermarks import ClockSettings
from tidegate.model.plan import Plan, PlanDecisions, ShedPlan
from tidegate.model.reports import SideRows, TaskReport
from tidegate.route.assignment import Assignment
from tidegate.window.drop.network import DropSourceNode, DropWindowNode
from tidegate.window.estimate.strata import STRATA
from tidegate.window.spec import WindowSpec


class Story:
    """One approximate window over one stream, run after run with another share of rows that are kept."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        slide = int(self.rng.choice([10, 30]))
        self.spec = WindowSpec(slide + int(self.rng.choice([0, 20])), slide)
        self.operators = traits_of([DropSourceNode("rows"), DropWindowNode("w", "rows", self.spec)])
        routing = {"w": first_routing([Assignment(1, (0,))])}
        self.manifest = planning.first_manifest({}, ["rows"], routing, 0)
        self.left_out: list[int] = []
        self.closed: dict[bool, int] = {True: 0, False: 0}

    def tell(self) -> None:
        begun: Plan | None = None
        for _ in range(4):
            fixed = [None, 1.0, 0.5][self.rng.integers(0, 3)]
            run = EstimateSettings({"w": self.spec}, fixed)
            clock = ClockSettings(int(self.rng.choice([0, 8, 40])), None)
            for _ in range(int(self.rng.integers(1, 6))):
                self.batch(run, clock, begun or self.plan(run))
                begun = None
            begun = self.plan(run) if self.rng.random() < 0.3 else None

    def plan(self, run: EstimateSettings) -> Plan:
        """The plan of the next batch, which a later run may find."""
        decided = json.loads(json.dumps(sampling.decide(run, self.manifest, self.operators)))
        shed = PlanDecisions(shed=ShedPlan(estimating=decided))
        return planning.next_plan(self.manifest.batch + 1, self.manifest, self.operators, 0, shed)

    def batch(self, run: EstimateSettings, clock: ClockSettings, plan: Plan) -> None:
        before, count = self.manifest, int(self.rng.integers(0, 9))
        times = 25 * plan.batch + self.rng.integers(0, 25, count) - self.rng.integers(0, 8, count)
        on_time = times[times >= plan.late.inputs["w"][0]]
        shares = np.array(plan.shed.estimating["w"]["shares"])
        kept = self.rng.random(on_time.size) < shares[0]
        self.left_out += on_time[~kept].tolist()
        newest = int(times.max()) if count else None
        rows = SideRows(offered=(count, 0), dropped=(int((~kept).sum()), 0), seen_us=(newest, None))
        strata = (int(kept.sum()), *(0,) * (STRATA - 1))
        reports = [TaskReport("w", 0, rows, strata=strata)]
        after = manifest_after(before, plan, (), {"rows": newest}, {"rows": clock}, self.operators)
        learnt = sampling.learn(run, before, plan, reports, after, {"w": float(self.rng.random())})
        said = sampling.mode(run, plan, before, after)["w"] == ESTIMATED
        first, beyond = (self.spec.first_open(one.settled_us["w"]) for one in (before, after))
        for window in range(max(first, -10), beyond):
            lacks = [at for at in self.left_out if self.spec.start(window) <= at < self.spec.end(window)]
            assert said or not lacks
            self.closed[bool(lacks)] += 1
        control = json.loads(json.dumps({sampling.CONTROL: learnt}))
        self.manifest = replace(after, control=control)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=200)
def test_a_window_that_lacks_rows_is_an_estimate_through_restarts(seed: int) -> None:
    Story(seed).tell()


def test_stories_have_windows_of_both_kinds() -> None:
    stories = [Story(seed) for seed in range(20)]
    for one in stories:
        one.tell()
    assert min(sum(one.closed[kind] for one in stories) for kind in (True, False)) > 50
