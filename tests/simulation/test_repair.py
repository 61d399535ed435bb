"""A rush, then calm: what was left out is made up for in spare time, and no batch is late because of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import pytest
from tests.oracle.expected import naive
from tests.oracle.plain_engine import PlainEngine, Row
from tests.oracle.plain_join import Cell, PlainJoin

from tidegate.api.goal import Shed
from tidegate.control.actuators.join_shedding import OverloadSettings, decide, probed_pairs
from tidegate.control.goal import goal_loop
from tidegate.control.goal.goal_step import KeepSettings, Ran
from tidegate.control.goal.goal_values import GoalSettings
from tidegate.control.repair import repair
from tidegate.control.repair.repair import RepairSettings
from tidegate.join.within import Within
from tidegate.model.manifest import Manifest
from tidegate.model.plan import LateRows, Plan, RepairPlan, ShedPlan
from tidegate.model.reports import TaskReport
from tidegate.window.drop.network import DropJoinNode, DropOutputNode, DropSourceNode, Network

SECOND = 1_000_000
WITHIN = Within(-5 * SECOND, 5 * SECOND)
NETWORK = Network(
    (
        DropSourceNode("a"),
        DropSourceNode("b"),
        DropJoinNode("join1", "a", "b", *WITHIN.bounds_us),
        DropOutputNode("pairs", "join1"),
    )
)
FIXED_SECONDS, PAIRS_PER_SECOND = 0.2, 1200.0
#: In calm a batch has 250 pairs in reach, which fits by far; in the rush 4,000, which take three seconds.
CALM, RUSH = 5, 20


@dataclass(frozen=True)
class Beat:
    fraction: float
    seconds: float
    paid: int
    owed: float


@dataclass
class Day:
    beats: list[Beat]
    emitted: Counter[tuple[Cell, ...]]
    exact: Counter[tuple[Cell, ...]]
    manifest: Manifest


def play(rates: list[int], when: str = "idle", bytes_max: int = 1 << 30) -> Day:
    """A batch a second, or when the one before is over, with so many rows a second of each stream."""
    join = PlainJoin("join1", "a", "b", "inner", WITHIN, ("a_n", "a_v"), ("b_n", "b_v"))
    engine = PlainEngine([join], {"a": 0, "b": 0}, partitions=1, instances=1)
    overload = OverloadSettings(Shed(), ("join1",), 1.0, 1.0)
    keep = KeepSettings(GoalSettings(1.0, trigger_seconds=1.0), 1.0, NETWORK, overload=overload)
    settings = RepairSettings(when, bytes_max, 1.0)
    random = np.random.default_rng(3)
    everything: dict[str, list[Row]] = {"a": [], "b": []}
    beats: list[Beat] = []
    before, now = 0.0, 1.0
    while now < len(rates):
        rows: dict[str, list[Row]] = {stream: _rows(random, rates, before, now) for stream in "ab"}
        for stream in "ab":
            everything[stream] += rows[stream]
        first, previous = len(engine.reports), engine.manifest
        skipping = decide(overload, previous, engine.operators)
        repairs = repair.choose(settings, previous, skipping)
        engine.run(rows, now_us=int(now * SECOND), skipping=skipping, repair_bytes=bytes_max, repairs=repairs)
        reports = [_at_our_speed(report) for report in engine.reports[first:]]
        paid = repair.repair_seconds(reports, 1)
        ordinary = FIXED_SECONDS + sum(report.seconds.cpu for report in reports)
        plan = Plan(
            engine.manifest.batch,
            int(now * SECOND),
            LateRows({}),
            {},
            {},
            shed=ShedPlan(skipping=skipping),
            repair=RepairPlan(repairs=repairs),
        )
        ran = Ran(reports, (), {}, ordinary, cold=False)
        learnt = goal_loop.learn(keep, previous, plan, ran, engine.manifest, engine.operators)
        learnt[repair.CONTROL] = repair.learn(settings, previous, plan, reports, ordinary, cold=False)
        engine.manifest = replace(engine.manifest, control=learnt)
        owed = sum(debt.comparisons for debt in engine.manifest.debts)
        compared = sum(report.repaired.comparisons for report in reports)
        beats.append(Beat(skipping["join1"].fraction, ordinary + paid, compared, owed))
        before, now = now, now + max(1.0, ordinary + paid)
    flat = {s: [(key, number, value, time) for time, key, number, value in everything[s]] for s in "ab"}
    exact = naive(flat["a"], flat["b"], WITHIN, "inner", (2, 2))
    emitted, manifest = engine.emitted["join1"], engine.manifest
    engine.close()
    return Day(beats, emitted, exact, manifest)


def _rows(random: np.random.Generator, rates: list[int], before: float, now: float) -> list[Row]:
    rows: list[Row] = []
    for second in range(int(before), int(now) + 1):
        begin, end = max(before, second), min(now, second + 1)
        count = round(rates[min(second, len(rates) - 1)] * max(0.0, end - begin))
        for at in np.sort(random.uniform(begin, end, count)):
            rows.append((int(at * SECOND), int(random.integers(4)), int(random.integers(2**40)), 0))
    return rows


def _at_our_speed(report: TaskReport) -> TaskReport:
    paid = replace(report.repaired, cpu_seconds=report.repaired.comparisons / PAIRS_PER_SECOND)
    seconds = sum(map(probed_pairs, report.probes)) / PAIRS_PER_SECOND
    return replace(report, repaired=paid, seconds=replace(report.seconds, cpu=seconds, probing=seconds))


@pytest.fixture(autouse=True)
def small_first_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    # The machine is made up, and slow: so are the comparisons that it takes on before it knows anything.
    monkeypatch.setattr(repair, "FIRST_COMPARISONS", 50.0)


def test_after_a_rush_the_union_becomes_exact_and_no_paying_batch_is_late() -> None:
    day = play([CALM] * 8 + [RUSH] * 8 + [CALM] * 90)
    assert min(beat.fraction for beat in day.beats) < 0.7
    assert max(beat.owed for beat in day.beats) > 3000
    assert day.emitted == day.exact
    assert not day.manifest.debts
    assert not day.manifest.written_off
    paying = [beat for beat in day.beats if beat.paid]
    assert len(paying) > 5
    assert all(beat.seconds <= 1.0 for beat in paying)
    # What was kept beyond its window is gone with the debt.
    dead_us = WITHIN.dead_before(0, day.manifest.settled_us["join1"])
    assert all(piece.last_us >= dead_us for piece in day.manifest.pieces)


def test_while_joins_leave_out_work_nothing_is_paid() -> None:
    day = play([CALM] * 4 + [RUSH] * 20)
    assert all(not beat.paid for beat in day.beats if beat.fraction < 1)
    assert day.beats[-1].owed > 0
    assert day.emitted < day.exact


def test_when_nothing_comes_any_more_everything_is_paid_even_if_the_rush_had_no_end() -> None:
    day = play([CALM] * 4 + [RUSH] * 12 + [0] * 60)
    assert day.emitted == day.exact
    assert not day.manifest.debts


def test_at_the_end_means_not_before() -> None:
    day = play([CALM] * 8 + [RUSH] * 8 + [CALM] * 20, when="on_stop")
    assert not any(beat.paid for beat in day.beats)
    assert day.manifest.debts


def test_what_may_not_be_kept_is_given_up() -> None:
    day = play([CALM] * 8 + [RUSH] * 8 + [CALM] * 60, bytes_max=2000)
    assert day.emitted < day.exact
    assert not day.manifest.debts
