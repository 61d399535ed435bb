"""Sources that hold more than a batch has time for, around real join tasks on a machine with known costs."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from tests.oracle.expected import Flat, naive
from tests.oracle.plain_engine import PlainEngine, Row
from tests.oracle.plain_join import PlainJoin

from tidegate.api.goal import Shed
from tidegate.control.actuators import join_shedding
from tidegate.control.actuators.join_shedding import OverloadSettings
from tidegate.control.goal import goal_loop
from tidegate.control.goal.backpressure import TakenRows
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
#: A batch may take a second, which is enough for 36 rows; both streams together bring 10 a second.
OVERHEAD_SECONDS, ROW_SECONDS, FITS = 0.1, 0.025, 36
RATES = {"a": 4, "b": 6}
COLD_BATCHES = 3


@dataclass
class Feed:
    """A source: rows in units (a file of some rows, or a row), oldest first."""

    rate: int
    unit: int
    random: np.random.Generator
    units: deque[list[Row]] = field(default_factory=deque)
    made_until: float = 0.0
    newest_us: int | None = None

    def come(self, until: float) -> None:
        """All rows with times up to a moment."""
        step = self.unit / self.rate
        while self.made_until + step <= until:
            times = self.made_until + step * np.sort(self.random.random(self.unit))
            self.units.append([(round(SECOND * at), int(self.random.integers(3)), 0, 0) for at in times])
            self.made_until += step

    def give(self, limit: int | None) -> tuple[list[Row], TakenRows]:
        count = len(self.units) if limit is None else min(limit, len(self.units))
        rows = [row for _ in range(count) for row in self.units.popleft()]
        self.newest_us = (
            max([self.newest_us or 0, *(row[0] or 0 for row in rows)]) if rows else self.newest_us
        )
        return rows, TakenRows(len(rows), self.newest_us, count, len(self.units), limit)


@dataclass
class BatchOutcome:
    """One batch, as it went."""

    now: float
    seconds: float
    rows: int
    waiting: int
    #: Seconds of event time between the streams, and from the older one to now.
    apart: float
    behind: float
    #: The probe ratio.
    fraction: float


@dataclass
class Story:
    """`behind`: seconds of each stream that wait when the query starts; `silent`: the sources stand still."""

    behind: dict[str, float]
    seconds: float
    silent: tuple[float, float] = (0.0, 0.0)
    unit: int = 1
    #: Of the time of a row: what is spent before it comes to a task, on reading and parsing.
    reading: float = 0.0
    #: Seconds of a batch without rows, and how many times the usual rows come.
    overhead: float = OVERHEAD_SECONDS
    times: int = 1
    #: Sources say what waits.
    says: bool = True
    shed: Shed = field(default_factory=Shed)
    #: Time of a pair, and of a row before and after it is probed.
    pair: float = 1e-5
    row: float = ROW_SECONDS


def play(story: Story, seed: int = 3) -> tuple[list[BatchOutcome], Counter[Flat], Counter[Flat]]:
    """Batch after batch; what was found, and what there was to be found."""
    # Nothing here lets in the freshest rows alone.
    goal = GoalSettings(1.0, 2.0, trigger_seconds=1.0, freshest=frozenset())
    joins = OverloadSettings(story.shed, ("join1",), 1.0, 1.0)
    settings = KeepSettings(goal, 1.0, NETWORK, overload=joins)
    engine = PlainEngine([JOIN], {"a": 10**9, "b": 10**9}, partitions=1, instances=1)
    begin = max(story.behind.values())
    feeds = {
        name: Feed(
            story.times * rate,
            story.unit,
            np.random.default_rng([seed, rate]),
            made_until=begin - story.behind[name],
        )
        for name, rate in RATES.items()
    }
    came: dict[str, list[Row]] = {name: [] for name in feeds}
    #: Before anything is known: what fits in any case.
    limits: dict[str, int] = dict.fromkeys(feeds, max(1, 10 // story.unit))
    done: list[BatchOutcome] = []
    now = begin
    for feed in feeds.values():
        feed.come(begin)
    while now < begin + story.seconds:
        silent = story.silent[0] <= now - begin < story.silent[1]
        given = {}
        for name, feed in feeds.items():
            if not silent:
                feed.come(now)
            given[name] = feed.give(limits.get(name))
        rows = {name: some for name, (some, _) in given.items()}
        first, previous, now_us = len(engine.reports), engine.manifest, round(now * SECOND)
        skipping = join_shedding.decide(joins, previous, engine.operators)
        engine.run(rows, now_us=now_us, skipping=skipping)
        reports = [_measured(report, story) for report in engine.reports[first:]]
        reading = story.reading * story.row * sum(map(len, rows.values()))
        seconds = story.overhead + reading + sum(report.seconds.cpu for report in reports)
        plan = Plan(engine.manifest.batch, now_us, LateRows({}), {}, {}, shed=ShedPlan(skipping=skipping))
        taken = {name: one if story.says else replace(one, waiting=None) for name, (_, one) in given.items()}
        ran = Ran(reports, (), {}, seconds, len(done) < COLD_BATCHES, taken=taken)
        learnt = goal_loop.learn(settings, previous, plan, ran, engine.manifest, engine.operators)
        engine.manifest = replace(engine.manifest, control=learnt)
        limits |= goal_loop.limits(engine.manifest)
        newest = [(feed.newest_us or 0) / SECOND for feed in feeds.values()]
        waiting = sum(len(feed.units) for feed in feeds.values())
        taken_rows = sum(map(len, rows.values()))
        done.append(
            BatchOutcome(
                now,
                seconds,
                taken_rows,
                waiting,
                max(newest) - min(newest),
                now - min(newest),
                skipping["join1"].fraction,
            )
        )
        for name, some in rows.items():
            came[name] += some
        now += max(1.0, seconds)
    emitted = engine.emitted["join1"]
    left, right = ([(*cells, time) for time, *cells in came[name]] for name in "ab")
    engine.close()
    return done, emitted, naive(left, right, WITHIN, "inner", (2, 2))


def _measured(report: TaskReport, story: Story) -> TaskReport:
    looked = story.pair * sum(map(join_shedding.probed_pairs, report.probes))
    rows = (1 - story.reading) * story.row * sum(report.rows.offered)
    return replace(report, seconds=replace(report.seconds, cpu=rows + looked, probing=looked))


@pytest.mark.parametrize("unit", [1, 5])
def test_a_history_is_worked_off_in_batches_that_are_on_time_and_nothing_is_left_out(unit: int) -> None:
    done, found, possible = play(Story({"a": 60.0, "b": 60.0}, 60.0, unit=unit))
    # A file more or less is what a batch can be off by.
    longest = 1.0 + unit * ROW_SECONDS
    assert max(one.seconds for one in done) <= longest
    assert found == possible
    # All of the time is used: 600 rows and 10 more a second, 36 of which fit.
    cleared = next(one for one in done if not one.waiting)
    assert cleared.now - done[0].now <= 1.5 * 600 / (FITS - 10)
    assert done[-1].behind <= 2 + unit / min(RATES.values())


@pytest.mark.parametrize("reading", [0.5, 0.95])
def test_rows_that_take_long_to_read_are_let_in_as_there_is_time_for_them(reading: float) -> None:
    done, found, possible = play(Story({"a": 60.0, "b": 60.0}, 60.0, reading=reading))
    assert max(one.seconds for one in done) <= 1.1
    assert found == possible
    cleared = next(one for one in done if not one.waiting)
    assert cleared.now - done[0].now <= 1.5 * 600 / (FITS - 10)


def test_a_history_that_nothing_follows_is_worked_off_as_fast() -> None:
    done, found, possible = play(Story({"a": 60.0, "b": 60.0}, 40.0, silent=(0.0, 60.0)))
    assert max(one.seconds for one in done) <= 1.1
    assert found == possible
    cleared = next(one for one in done if not one.waiting)
    assert cleared.now - done[0].now <= 1.5 * 600 / FITS


def test_what_gathered_while_sources_stood_still_is_caught_up_with_in_time() -> None:
    done, found, possible = play(Story({"a": 1.0, "b": 1.0}, 60.0, silent=(15.0, 30.0)))
    assert max(one.seconds for one in done) <= 1.1
    assert done[-1].waiting == 0
    assert found <= possible
    assert found.total() >= 0.8 * possible.total()


def test_the_stream_that_is_behind_is_let_in_until_they_meet() -> None:
    done, found, possible = play(Story({"a": 5.0, "b": 60.0}, 60.0))
    assert max(one.seconds for one in done) <= 1.1
    assert found == possible
    assert done[0].apart > 40
    together = next(one for one in done if one.apart <= 2)
    # Only the one that is behind takes up the time: 360 rows and what comes meanwhile.
    assert together.now - done[0].now <= 25
    assert done[-1].waiting == 0


@pytest.mark.parametrize("unit", [1, 5])
@pytest.mark.parametrize("behind", [1.0, 10.0])
def test_rows_that_come_are_let_in_though_a_batch_of_them_is_a_little_long(unit: int, behind: float) -> None:
    """16 rows fit into a second and 20 come: batches of 1.2 s keep up, and ones of a second never would."""
    story = Story(dict.fromkeys("ab", behind), 90.0, unit=unit, reading=0.95, overhead=0.6, times=2)
    done, _, _ = play(story)
    assert max(one.seconds for one in done) <= 2
    settled = done[-20:]
    assert max(one.behind for one in settled) <= 3.5
    assert np.mean([one.seconds for one in settled]) <= 1.5


def test_what_is_more_than_any_batch_keeps_up_with_makes_no_batch_endless() -> None:
    done, _, _ = play(Story({"a": 1.0, "b": 1.0}, 60.0, reading=0.95, overhead=0.6, times=6))
    assert max(one.seconds for one in done) <= 2.3


def test_what_a_source_gives_is_not_what_comes_where_it_does_not_say_what_waits() -> None:
    """Or all that is let in would have to be kept up with, and batches would become ever longer."""
    done, _, _ = play(Story({"a": 60.0, "b": 60.0}, 40.0, reading=0.95, overhead=0.4, says=False))
    assert any(one.waiting for one in done[10:])
    assert max(one.seconds for one in done[10:]) <= 1.2


@pytest.mark.parametrize("says", [True, False])
def test_the_papers_rule_counts_the_rows_that_wait_at_their_sources(says: bool) -> None:
    """1.5 times the pairs that fit. Backpressure keeps batches short, so time alone shows no overload."""
    pairs_a_second = 4 * 6 * 10**2 * 2
    story = Story(
        {"a": 1.0, "b": 1.0},
        80.0,
        times=10,
        says=says,
        shed=Shed(join="partial", rate="paper"),
        pair=1.5 * (1 - OVERHEAD_SECONDS) / pairs_a_second,
        row=1e-4,
    )
    done, found, possible = play(story)
    settled = done[len(done) // 2 :]
    assert max(one.behind for one in settled) <= 6, "the backlog grew"
    assert 0.4 <= np.mean([one.fraction for one in settled]) <= 0.85
    assert np.mean([one.seconds for one in settled]) >= 0.7, "there was more time than was used"
    assert found <= possible
