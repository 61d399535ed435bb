"""The goal of a query around real join tasks, on a machine on which rows alone can be too much."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from tests.oracle.expected import Flat, naive
from tests.oracle.plain_engine import PlainEngine, Row
from tests.oracle.plain_join import PlainJoin
from tests.simulation.rates import counts

from tidegate.api.goal import Shed
from tidegate.control.actuators import join_shedding, stale_rows
from tidegate.control.actuators.join_shedding import OverloadSettings
from tidegate.control.goal import goal_loop
from tidegate.control.goal.goal_step import KeepSettings, Ran
from tidegate.control.goal.goal_values import GoalSettings
from tidegate.join.within import Within
from tidegate.model.plan import LateRows, Plan, ShedPlan
from tidegate.model.reports import TaskReport
from tidegate.window.drop.network import DropJoinNode, DropOutputNode, DropSourceNode, Network

SECOND = 1_000_000
WITHIN = Within(-SECOND, SECOND)
JOIN = PlainJoin("join1", "a", "b", "inner", WITHIN, ("a_n", "a_v"), ("b_n", "b_v"))
NETWORK = Network(
    (
        DropSourceNode("a"),
        DropSourceNode("b"),
        DropJoinNode("join1", "a", "b", -SECOND, SECOND),
        DropOutputNode("pairs", "join1"),
    )
)
#: A batch may take a second. With 5 rows a second of each stream it takes a third, with 60 more than three.
OVERHEAD_SECONDS, ROW_SECONDS = 0.1, 0.025
CALM, FLOOD = 5, 60
COLD_BATCHES = 3


@dataclass
class Run:
    """What came of all batches."""

    seconds: list[float] = field(default_factory=list)
    offered: list[int] = field(default_factory=list)
    stale: list[int] = field(default_factory=list)
    emitted: Counter[Flat] = field(default_factory=Counter)
    all_pairs: Counter[Flat] = field(default_factory=Counter)

    def between(self, first: int, last: int) -> tuple[np.ndarray[tuple[int], np.dtype[np.float64]], float]:
        """Seconds of some batches, and the part of their rows that was stale."""
        stale, offered = sum(self.stale[first:last]), sum(self.offered[first:last])
        return np.array(self.seconds[first:last]), stale / offered


def play(rates: list[int], delay_seconds: float, seed: int, trigger_seconds: float = 1.0) -> Run:
    """A batch a second, or when the one before is over, with so many rows a second of each stream."""
    goal = GoalSettings(1.0, 2.0, trigger_seconds=trigger_seconds, freshest=frozenset({"join1"}))
    joins = OverloadSettings(Shed(), ("join1",), 1.0, trigger_seconds)
    settings = KeepSettings(goal, trigger_seconds, NETWORK, overload=joins)
    lateness = round(delay_seconds * SECOND)
    engine = PlainEngine([JOIN], {"a": lateness, "b": lateness}, partitions=1, instances=1)
    random, done = np.random.default_rng(seed), Run()
    came: dict[str, list[Row]] = {"a": [], "b": []}
    before, now, number = 0.0, 1.0, 0
    while now < len(rates):
        rows: dict[str, list[Row]] = {"a": [], "b": []}
        for begin, end, count in counts(rates, before, now):
            for stream in "ab":
                for at in random.uniform(begin, end, count) - delay_seconds * random.random(count):
                    rows[stream].append((round((10 + at) * SECOND), int(random.integers(4)), number, 0))
                    number += 1
        first, previous, now_us = len(engine.reports), engine.manifest, round((10 + now) * SECOND)
        skipping = join_shedding.decide(joins, previous, engine.operators)
        cold = len(done.seconds) < COLD_BATCHES
        fresh_us = {} if cold else stale_rows.decide(previous, now_us)
        skipping = stale_rows.applied(skipping, fresh_us, engine.operators, settings.freshest)
        engine.run(rows, now_us=now_us, skipping=skipping)
        reports = [_measured(report) for report in engine.reports[first:]]
        seconds = OVERHEAD_SECONDS + sum(report.seconds.cpu for report in reports)
        plan = Plan(engine.manifest.batch, now_us, LateRows({}), {}, {}, shed=ShedPlan(skipping=skipping))
        ran = Ran(reports, (), {}, seconds, cold)
        learnt = goal_loop.learn(settings, previous, plan, ran, engine.manifest, engine.operators)
        engine.manifest = replace(engine.manifest, control=learnt)
        done.seconds.append(seconds)
        done.offered.append(sum(sum(report.rows.offered) for report in reports))
        done.stale.append(sum(sum(report.rows.stale) for report in reports))
        for stream, some in rows.items():
            came[stream] += some
        before, now = now, now + max(trigger_seconds, seconds)
    done.emitted = engine.emitted["join1"]
    left, right = ([(*cells, time) for time, *cells in came[stream]] for stream in "ab")
    done.all_pairs = naive(left, right, WITHIN, "inner", (2, 2))
    engine.close()
    return done


def _measured(report: TaskReport) -> TaskReport:
    """On this machine rows cost time, and pairs next to none."""
    rows = sum(report.rows.offered) - sum(report.rows.late) - sum(report.rows.stale)
    looked = 1e-5 * sum(map(join_shedding.probed_pairs, report.probes))
    return replace(report, seconds=replace(report.seconds, cpu=ROW_SECONDS * rows + looked, probing=looked))


@pytest.mark.parametrize("trigger_seconds", [1.0, 0.0])
@pytest.mark.parametrize("delay_seconds", [0.0, 3.0])
def test_a_flood_of_rows_is_kept_on_time_and_the_freshest_of_them_kept(
    delay_seconds: float, trigger_seconds: float
) -> None:
    done = play([CALM] * 8 + [FLOOD] * 36 + [CALM] * 10, delay_seconds, 3, trigger_seconds)
    begin = next(number for number, rows in enumerate(done.offered) if rows > 3 * CALM)
    first = next(number for number, rows in enumerate(done.stale) if rows)
    assert 2 <= first - begin <= 4, "in the flood, and not with its first batch"
    end = max(number for number, rows in enumerate(done.stale) if rows)
    seconds, lost = done.between(first + 2, end - 1)
    assert np.median(seconds) <= 1
    assert np.quantile(seconds, 0.9) <= 1.25
    # All of the time is used: three batches' worth of rows come in the time of one.
    assert np.median(seconds) >= 0.6
    assert 0.5 < lost < 0.85
    assert end <= len(done.seconds) - 4, "all rows are let in again"
    assert done.emitted <= done.all_pairs


def test_no_row_is_stale_while_all_of_them_fit() -> None:
    # Rows for four seconds out of five, whatever pairs there are.
    done = play([CALM] * 8 + [14] * 20, 1.0, 5)
    assert not any(done.stale)
