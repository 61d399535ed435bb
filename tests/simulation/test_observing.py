"""A goal that only observes, around real join tasks on a machine of a made-up speed: does it say what a goal
that sheds would do, and does it go on saying so while nothing is shed?"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from tests.oracle.plain_engine import PlainEngine, Row
from tests.simulation.test_overload_control import (
    CALM,
    FIXED_SECONDS,
    KEYED,
    KEYS,
    NETWORK,
    SECOND,
    _at_our_speed,
    play,
)

from tidegate.api.goal import JoinPolicyName, RateRuleName, Shed
from tidegate.control import observing
from tidegate.control.actuators import stale_rows
from tidegate.control.actuators.join_shedding import OverloadSettings, decide
from tidegate.control.goal import goal_loop
from tidegate.control.goal.backpressure import TakenRows
from tidegate.control.goal.goal_step import KeepSettings, Ran
from tidegate.control.goal.goal_values import GoalSettings
from tidegate.model.plan import LateRows, Plan, ShedPlan

#: So many times the pairs that fit.
RUSH, OVERLOAD = 15, 1.9
#: A batch without a goal takes at most so many seconds of rows; the others wait at the source.
TAKES_SECONDS = 2


@dataclass(frozen=True)
class Observed:
    """One batch: the probe ratio that it would have had, whether it was exact, and its time."""

    would: float
    full: bool
    seconds: float
    #: The safety margin that was learnt.
    margin: float


def observed(
    rates: list[int], policy: JoinPolicyName = "auto", rate: RateRuleName = "auto", batches: int = 28
) -> list[Observed]:
    """Batches back to back that take what waits, up to a limit; the goal only observes."""
    settings = OverloadSettings(Shed(join=policy, rate=rate), ("join1",), 1.0, 1.0)
    keep = KeepSettings(
        GoalSettings(1.0, trigger_seconds=1.0), 1.0, NETWORK, overload=settings, observes=True
    )
    engine = PlainEngine([KEYED], {"a": 0, "b": 0}, partitions=1, instances=1)
    random = np.random.default_rng(7)
    found: list[Observed] = []
    read, now, number = 0.0, 1.0, 0
    for _ in range(batches):
        until = min(now, read + TAKES_SECONDS)
        rows: dict[str, list[Row]] = {"a": [], "b": []}
        for stream in "ab":
            for second in range(int(read * 10), int(until * 10)):
                for _ in range(random.poisson(rates[min(second // 10, len(rates) - 1)] / 10)):
                    key, value = random.integers(KEYS, size=2).tolist()
                    rows[stream].append((int((second + random.random()) / 10 * SECOND), key, number, value))
                    number += 1
        first, previous = len(engine.reports), engine.manifest
        would = decide(settings, previous, engine.operators)
        would = stale_rows.applied(would, {}, engine.operators, ())
        done = observing.skips_nothing(would, previous)
        engine.run(rows, now_us=int(now * SECOND), skipping=done)
        reports = [_at_our_speed(report) for report in engine.reports[first:]]
        seconds = FIXED_SECONDS + sum(report.seconds.cpu for report in reports)
        shed = ShedPlan(done, would=ShedPlan(would))
        plan = Plan(engine.manifest.batch, int(now * SECOND), LateRows({}), {}, {}, shed=shed)
        waiting = round((now - until) * rates[min(int(now), len(rates) - 1)])
        taken = {
            name: TakenRows(len(some), int(until * SECOND), len(some), waiting) for name, some in rows.items()
        }
        ran = Ran(reports, (), {}, seconds, cold=False, taken=taken)
        learnt = goal_loop.learn(keep, previous, plan, ran, engine.manifest, engine.operators)
        engine.manifest = replace(engine.manifest, control={**learnt, **observing.remembered(plan)})
        skipped = sum(sum(one.candidates) - sum(one.chosen) for report in reports for one in report.probes)
        margin = learnt["goal"]["told"]["safety_margin"]
        found.append(Observed(would["join1"].fraction, skipped <= 0, seconds, margin))
        read, now = until, now + max(1.0, seconds)
    engine.close()
    return found


def test_a_load_that_fits_would_shed_nothing() -> None:
    assert all(one.would == 1.0 and one.full for one in observed([CALM] * 30, batches=20))


def test_what_would_be_shed_is_what_a_goal_sheds_and_stays_so() -> None:
    """Batches become longer than they may be, and the backlog grows: neither is held against the next one."""
    seen = observed([CALM] * 8 + [RUSH] * 200)
    assert all(one.full for one in seen)
    late = seen[-12:]
    assert min(one.seconds for one in late) > 2.0, "nothing was shed, so batches were too long"
    sheds = [beat.fraction for beat in play("auto", [CALM] * 8 + [RUSH] * 30)[-12:]]
    would = [one.would for one in late]
    assert np.median(would) == pytest.approx(np.median(sheds), rel=0.25)
    assert min(would) > 0.6 * np.median(would), "a decision that was not applied must not be taken again"
    assert late[-1].margin == seen[0].margin, "predictions of batches that did not run teach nothing"


def test_the_rule_of_the_paper_is_not_applied_to_its_own_decision() -> None:
    """Algorithm 1 multiplies r by the part that fits; a batch in full ran with r = 1."""
    would = [one.would for one in observed([CALM] * 8 + [RUSH] * 200, "partial", "paper")[-12:]]
    assert np.median(would) == pytest.approx(1 / OVERLOAD, rel=0.2)
    assert min(would) > 0.4
