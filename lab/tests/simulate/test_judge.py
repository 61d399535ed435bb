"""The judge of the goal controller: who cheats is found out, and who knows the machine is not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidegate_lab.simulate.goal import judge as judge_module
from tidegate_lab.simulate.goal.arrivals import CELLS, GRAIN, KINDS, SECONDS, profiles, shape
from tidegate_lab.simulate.goal.cheaters import AlwaysSheds, Knowing, LeavesRows, NeverSheds, Oscillates
from tidegate_lab.simulate.goal.judge import (
    BARS,
    Maker,
    bars,
    count_a_play,
    headline,
    judge,
    times_judged,
)
from tidegate_lab.simulate.goal.machine import Machine
from tidegate_lab.simulate.goal.metrics import APART, IN_TIME, LATE, lateness
from tidegate_lab.simulate.goal.played import play
from tidegate_lab.simulate.goal.product import GoalLoop
from tidegate_lab.simulate.goal.scenario import DISTURBANCES, UNLIMITED, scenario

#: A few scenarios of which together every metric says something.
SEEDS = (8, 24, 33, 52)


def missed(maker: Maker, seeds: tuple[int, ...] = SEEDS) -> set[str]:
    """Bars that a controller misses over some scenarios."""
    return {bar.id for bar in bars(headline([judge(seed, maker) for seed in seeds])) if not bar.holds}


def test_who_always_sheds_is_found_out_by_needless_loss_and_by_recall() -> None:
    found = missed(AlwaysSheds)
    assert {
        "control.needless_loss.median",
        "control.of_fixed.share",
        "control.of_clairvoyant.median",
    } <= found
    assert "control.budget_use.median" in found
    assert "control.on_time.median" not in found, "it is on time: that is how it looks good"


def test_who_never_sheds_is_found_out_by_lateness_alone() -> None:
    found = missed(NeverSheds)
    assert "control.on_time.median" in found
    assert "control.needless_loss.median" not in found
    assert "control.of_clairvoyant.median" not in found


def test_who_oscillates_is_found_out_by_reversals_and_on_neither_side_by_being_right_on_average() -> None:
    found = missed(Oscillates)
    assert {"control.reversals.median", "control.on_time.median", "control.of_clairvoyant.median"} <= found


def test_who_leaves_rows_at_the_source_is_late_with_them() -> None:
    limited = tuple(seed for seed in range(40) if scenario(seed).sources.kind != UNLIMITED)[:3]
    told = [judge(seed, LeavesRows).verdict for seed in limited]
    assert all(one.on_time is not None and one.on_time < 0.5 for one in told)
    assert all(one.of_clairvoyant < 0.5 for one in told)


def test_who_knows_costs_and_noise_is_within_the_bars() -> None:
    """So the bars ask for nothing impossible; reversals apart, because it fits every batch anew."""
    assert missed(Knowing) <= {"control.reversals.median"}


def test_the_goal_loop_beats_every_cheater_in_a_few_scenarios() -> None:
    found = headline([judge(seed, GoalLoop) for seed in SEEDS])
    assert set(BARS) <= set(found)
    assert found["on_time.median"] >= 0.97
    assert found["needless_loss.median"] <= 0.02
    assert found["of_clairvoyant.median"] >= 0.8


def test_the_same_seed_is_the_same_run() -> None:
    assert judge(20).row() == judge(20).row()


def test_scenarios_in_a_row_have_all_rates_and_all_disturbances() -> None:
    found = [scenario(seed) for seed in range(len(KINDS) * len(DISTURBANCES))]
    assert len({(one.rate.kind, one.disturbance) for one in found}) == len(found)
    assert {one.sources.kind for one in found} == {"unlimited", "says what waits", "limited"}
    joins = {sum(operator.kind == "join" for operator in one.operators) for one in found}
    assert joins == {1, 2, 3, 4}
    assert all(rows.size == CELLS + 1 and np.all(np.diff(rows) >= 0) for rows in found[0].rows.values())


def test_a_batch_is_excused_for_a_pause_and_not_for_its_own_length() -> None:
    told = replace(scenario(24), trigger_seconds=1.0, latency_seconds=2.0)
    # A pause of three seconds in the middle; nobody sheds, and there is more work than time at the end.
    machine = Machine(1, 0.1, noise=0.0, pauses=((30.2, 3.0),))
    calm = {name: (rows * 0.3).astype(np.int64) for name, rows in told.rows.items()}
    run = play(replace(told, machine=machine, rows=calm), NeverSheds(told))
    kinds = lateness(run)
    assert APART in kinds
    assert LATE not in kinds
    assert all(
        30 < run.batches[number].end < 30.2 + 3 + 10 for number, kind in enumerate(kinds) if kind == APART
    )
    rushed = {name: rows * 4 for name, rows in told.rows.items()}
    late = lateness(play(replace(told, machine=machine, rows=rushed), NeverSheds(told)))
    assert late.count(LATE) > late.count(IN_TIME)


@pytest.mark.parametrize("cold_seconds", [3.0, 30.0])
def test_a_cold_process_is_warm_after_the_seconds_that_it_takes(cold_seconds: float) -> None:
    machine = Machine(1, 0.1, cold_times=4.0, cold_seconds=cold_seconds)
    assert machine.coldness(0.0) == 4.0
    assert machine.coldness(cold_seconds) == pytest.approx(1.05)


def test_every_play_of_the_seeds_that_are_held_back_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judge_module, "COUNTED", tmp_path / "judged.json")
    assert times_judged() == 0
    assert [count_a_play(), count_a_play()] == [1, 2]
    assert times_judged() == 2


def test_a_recorded_profile_is_played_where_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng
    assert shape("recorded", random(1)).source == "generated"
    begin = np.datetime64("2026-11-19T00:00:00", "us")
    at = begin + np.arange(0, 600_000_000, 1_000_000).astype("timedelta64[us]")
    # Nothing comes for half of the time, as in an outage.
    counts = np.where(np.arange(600) < 300, 0, np.arange(600) % 7 + 1)
    counts[0] = 1
    rows = pa.table({"ts": pa.array(at), "n": pa.array(counts, pa.int16())})
    pq.write_table(rows, tmp_path / "rate_twitter_2021.parquet")
    monkeypatch.setenv("TIDEGATE_DATA", str(tmp_path))
    profiles.cache_clear()
    try:
        found = [shape("recorded", random(seed)) for seed in range(10)]
    finally:
        profiles.cache_clear()
    assert {one.source for one in found} == {"rate_twitter_2021.parquet"}
    assert all(np.mean(one.tenths > 0) >= 0.3 for one in found)
    assert all(one.tenths.max() <= 4 for one in found)


def test_the_clock_is_a_whole_number_of_cells() -> None:
    assert CELLS * GRAIN == pytest.approx(SECONDS)
