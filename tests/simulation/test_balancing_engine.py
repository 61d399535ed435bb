"""Strategies around the engine without Spark: the work evens out, and what comes out stays the same."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from tests.oracle.expected import naive
from tests.oracle.plain_engine import PlainEngine, Row
from tests.oracle.plain_join import PlainJoin

from tidegate.api.balance import Balance, StrategyName
from tidegate.control.balance import balancing
from tidegate.control.balance.balancing import Balanced, BalanceSettings
from tidegate.join.within import Within
from tidegate.model.codec import from_plain
from tidegate.route.assignment import Assignment
from tidegate.route.auto.strategy import Auto

WINDOW = Within(-30, 30)
INSTANCES, PARTITIONS, BATCHES = 4, 16, 8
Batches = list[dict[str, list[Row]]]


def streams(seed: int, keys: int, hot: float) -> Batches:
    """Batches in which one key has that part of the rows."""
    rng = np.random.default_rng(seed)
    batches: Batches = []
    for batch in range(BATCHES):
        rows: dict[str, list[Row]] = {}
        for name in "ab":
            drawn = np.where(rng.random(120) < hot, 7, rng.integers(0, keys, 120))
            times = np.sort(rng.integers(10 * batch, 10 * batch + 10, 120))
            rows[name] = [
                (int(at), int(key), 1000 * batch + i, 0)
                for i, (at, key) in enumerate(zip(times, drawn, strict=True))
            ]
        batches.append(rows)
    return batches


def played(
    strategy: StrategyName, how: str, batches: list[dict[str, list[Row]]]
) -> tuple[PlainEngine, list[list[int]]]:
    """The engine at the end, and the comparisons of each instance in each batch."""
    join = PlainJoin("join1", "a", "b", how, WINDOW, ("a_n", "a_v"), ("b_n", "b_v"))
    settings = BalanceSettings(Balance(strategy=strategy), PARTITIONS, {"join1": Balanced()})
    first = [balancing.strategy_of(settings.balance).first(PARTITIONS, INSTANCES)]
    engine = PlainEngine([join], {"a": 0, "b": 0}, partitions=PARTITIONS, first=first, balance=settings)
    work = []
    for batch in batches:
        done = len(engine.reports)
        engine.run(batch)
        work.append([report.work.comparisons for report in engine.reports[done:]])
    return engine, work


@pytest.mark.parametrize("strategy", ["auto", "fastjoin", "ls_stream", "contrand", "random", "hash"])
def test_every_strategy_finds_the_pairs_of_one_instance(strategy: StrategyName) -> None:
    batches = streams(1, 40, hot=0.3)
    engine, _ = played(strategy, "inner", batches)
    left, right = ([(k, n, v, at) for batch in batches for at, k, n, v in batch[name]] for name in "ab")
    assert engine.emitted["join1"] == naive(left, right, WINDOW, "inner", (2, 2))
    engine.close()


@pytest.fixture
def free_splits(monkeypatch: pytest.MonkeyPatch) -> None:
    """No split of batches this small would pay for what scattering takes."""
    monkeypatch.setattr(balancing, "Auto", partial(Auto, scattering=0.0))


@pytest.mark.usefixtures("free_splits")
def test_auto_splits_a_hot_key_and_the_work_evens_out() -> None:
    batches = streams(2, 400, hot=0.5)
    engine, work = played("auto", "inner", batches)
    _, still = played("hash", "inner", batches)
    settled, unmoved = np.array(work[4:], float), np.array(still[4:], float)
    assert (settled.sum(axis=1) == unmoved.sum(axis=1)).all(), "the same comparisons, at other instances"
    assert np.median(unmoved.max(axis=1) / unmoved.mean(axis=1)) > 3
    assert np.median(settled.max(axis=1) / settled.mean(axis=1)) < 1.6
    keys = engine.manifest.routing["join1"].left.keys
    assert any(len(engine.manifest.routing["join1"].left.on(place)) > 1 for place in keys.values())
    engine.close()


@pytest.mark.usefixtures("free_splits")
def test_the_time_to_cut_keys_out_of_stored_runs_is_told_where_they_are_cut() -> None:
    engine, _ = played("auto", "inner", streams(2, 400, hot=0.5))
    cutting = [report for report in engine.reports if report.state.recut]
    assert cutting
    assert all(report.seconds.recut > 0 for report in cutting)
    still, _ = played("hash", "inner", streams(2, 400, hot=0.5))
    assert all(report.seconds.recut == 0 for report in still.reports)
    engine.close()
    still.close()


def test_what_another_strategy_wanted_is_forgotten() -> None:
    engine, _ = played("auto", "inner", streams(2, 400, hot=0.5))
    settings = BalanceSettings(Balance(strategy="hash"), PARTITIONS, {"join1": Balanced()})
    loads = balancing.measured(settings, (), engine.manifest)
    routing, cuts, known = balancing.reroute(settings, engine.manifest, None, loads)
    assert known["join1"]["strategy"] == "hash"
    assert from_plain(Assignment, known["join1"]["wanted"][0]).keys == {}
    # What lies in partitions of its own has not drained, but lies at home.
    placement = routing["join1"].left
    assert not cuts
    assert all(len(placement.on(place)) == 1 for place in placement.keys.values())
    engine.close()
