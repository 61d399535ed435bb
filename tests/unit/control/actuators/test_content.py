"""When rows choose by content, what of the budget they get, and what is learnt of it."""

from __future__ import annotations

from dataclasses import replace
from math import log

import numpy as np
import pytest

from tidegate.control.actuators.content import BEND_FIRST, bend_after, chosen_by_content, price_share
from tidegate.control.actuators.paper_rate import FixedRate
from tidegate.control.actuators.policy import Work
from tidegate.control.actuators.selective import ContentDecision, SelectivePolicy
from tidegate.control.planning import first_manifest
from tidegate.join.selective.selection import GROUPS
from tidegate.model.manifest import Manifest
from tidegate.model.plan import LateRows, Plan, ShedPlan
from tidegate.model.reports import ProbeCounts, TaskReport
from tidegate.model.skip_plan import Skipping
from tidegate_lab.simulate.join.basic_windows import Windows

DECISION = ContentDecision(0.2, 0.02, 0.3)
#: Ages of the left and the right window; of the oldest nothing is stored.
PLAN = Skipping(0.25, ((1.0, 0.2, 0.0), (1.0, 0.5, 0.0)), 0.1, 0.1, orders=((0, 1, 2), (1, 0, 2)))


def work(rows: float) -> Work:
    return np.array([rows, rows, 0.0]), np.array([rows, rows, 0.0])


@pytest.mark.parametrize("fraction", [0.001, 0.1, 0.5, 0.9])
def test_exploring_is_part_of_what_rows_may_choose(fraction: float) -> None:
    decision = SelectivePolicy(Windows((4, 4), 1), FixedRate(fraction)).by_content
    chosen = (1 - decision.full_share) * decision.fraction
    assert chosen + decision.full_share * decision.full_depth == pytest.approx(fraction)
    assert 0 < decision.full_share < 0.1


def test_rows_choose_where_basic_windows_are_large() -> None:
    chosen = chosen_by_content(PLAN, DECISION, work(5000.0), instances=2)
    assert chosen.content == 0.2
    assert chosen.shares == ((0.0,) * 3, (0.0,) * 3)
    assert (chosen.explore_share, chosen.explore_depth) == (0.02, 0.3)
    assert chosen.fraction == PLAN.fraction


def test_where_estimates_would_eat_up_the_budget_the_plan_goes_by_time() -> None:
    assert chosen_by_content(PLAN, DECISION, work(200.0), instances=2) is PLAN
    # A row of each side: four cells at each of two instances, and the upkeep of two rows.
    assert price_share(0.25, work(200.0), 2) == pytest.approx((7 * 8 + 50 * 2) / (0.25 * 800))
    assert price_share(0.25, work(0.0), 2) == np.inf


def test_nobody_chooses_while_everything_is_done() -> None:
    everything = Skipping(1.0, ((1.0,) * 3, (1.0,) * 3))
    assert chosen_by_content(everything, DECISION, work(1e6), instances=1) is everything


def manifest(**control: object) -> Manifest:
    return replace(first_manifest({}, [], {}, 0), control=control)


def report(found: float, sampled: int) -> TaskReport:
    """160 of 1600 rows explored, each saw half of what there was, and found so many per group."""
    groups = (sampled,) * GROUPS
    window = ProbeCounts((1000,), (0,), (found,), (0,), (0.0,), 1600, (10,) * GROUPS, (groups,))
    nothing = ProbeCounts((0,), (0,), (0.0,), (0,), (0.0,))
    return TaskReport("join1", 0, probes=(window, nothing))


def plan(content: float | None) -> Plan:
    skipping = Skipping(0.25, ((0.0,), (0.0,)), 0.1, 0.5, content=content)
    return Plan(1, 0, LateRows({}), {}, {}, shed=ShedPlan(skipping={"join1": skipping}))


def test_how_much_is_found_at_a_rate_is_learnt_from_estimated_recall() -> None:
    # The sample says 10 · 32 / 0.5 = 640 matches; half of them were found with a quarter of the work.
    bends = [BEND_FIRST]
    for _ in range(20):
        bends.append(bend_after(manifest(bends={"join1": bends[-1]}), plan(0.2), [report(320, 2)], "join1"))
    assert bends[1] != bends[0]
    assert bends[-1] == pytest.approx(log(0.5) / log(0.25), rel=1e-3)


def test_a_batch_without_choice_or_without_matches_teaches_nothing() -> None:
    before = manifest(bends={"join1": 0.4})
    assert bend_after(before, plan(None), [report(320, 2)], "join1") == 0.4
    assert bend_after(before, plan(0.2), [report(0, 0)], "join1") == 0.4
    assert bend_after(manifest(), plan(0.2), [], "join1") == BEND_FIRST
