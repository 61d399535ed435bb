from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from tidegate.errors import FlowError
from tidegate_lab.workloads.day import (
    COMMON,
    KEYS,
    SCRIPT,
    SCRIPT_SECONDS,
    SKEW,
    SPIKE,
    TICK_SECONDS,
    Day,
    Segment,
    Stream,
    rate_of,
    scripted,
    streams_of,
)
from tidegate_lab.workloads.day_answer import CHECKSUM_SQL, exact_answer

SMALL = scripted(24, calm_rate=40)


def table(stream: Stream) -> pa.Table:
    return pa.table(
        {
            "n": np.arange(stream.key.size),
            "k": stream.key,
            "us": stream.times_us,
            "bits": stream.bits.view(np.int64),
            "tick": stream.tick,
        }
    )


def test_the_script_has_everything_that_a_day_is_made_of() -> None:
    assert sum(segment.seconds for segment in SCRIPT) == SCRIPT_SECONDS
    assert max(segment.rate for segment in SCRIPT) == 10
    assert any(segment.rate_end is not None for segment in SCRIPT)
    assert any(segment.skew != SCRIPT[0].skew and segment.turned for segment in SCRIPT)
    assert any(segment.sink_seconds for segment in SCRIPT)
    # What was left out in the spike is to be made up for before the day ends.
    assert SCRIPT[-1].rate == 1


def test_a_shorter_day_is_the_same_day_in_less_time() -> None:
    short = scripted(SCRIPT_SECONDS / 4, calm_rate=10)
    assert short.seconds == SCRIPT_SECONDS / 4
    assert short.window_seconds == 2.5
    assert short.begin_of(SPIKE) == pytest.approx(82 / 4)
    assert short.at(82 / 4 + 0.1).name == SPIKE
    assert short.at(1e9) == short.segments[-1]
    assert short.begin_of("night") is None


def test_every_tick_has_the_rows_that_the_script_says_in_both_streams() -> None:
    left, right = (np.bincount(stream.tick, minlength=SMALL.ticks) for stream in streams_of(SMALL))
    assert left.tolist() == right.tolist()
    begin = SMALL.begin_of(SPIKE)
    assert begin is not None
    calm, spike = left[0], left[int(np.ceil(begin / TICK_SECONDS)) + 1]
    assert (calm, spike) == (20, 200)


def test_a_ramp_rises_from_tick_to_tick() -> None:
    day = Day(100.0, (Segment("ramp", 4.0, rate=1.0, rate_end=5.0),))
    rates = [rate for _, rate in day.rate.levels]
    assert rates == sorted(rates)
    assert np.mean(rates) == pytest.approx(300)


def test_other_keys_are_hot_after_the_skew_jump() -> None:
    day = scripted(60, calm_rate=400)
    (left, _), begin = streams_of(day), day.begin_of(SKEW)
    assert begin is not None
    jumped = np.array([day.at(tick * TICK_SECONDS).name == SKEW for tick in left.tick])
    before, after = (np.bincount(left.key[some], minlength=KEYS) for some in (~jumped, jumped))
    assert before.argmax() == 0
    assert after.argmax() == KEYS // 2
    assert after.max() / after.sum() > 2 * before.max() / before.sum()


def test_the_same_seed_gives_the_same_rows_and_another_one_others() -> None:
    one, again = streams_of(SMALL)[0], streams_of(SMALL)[0]
    other = streams_of(scripted(24, 40, seed=8))[0]
    assert np.array_equal(one.bits, again.bits)
    assert np.array_equal(one.key, again.key)
    assert not np.array_equal(one.key, other.key)


def test_the_exact_answer_is_that_of_duckdb() -> None:
    day = scripted(24, calm_rate=160)
    left, right = streams_of(day)
    answer = exact_answer(day, left, right)
    with duckdb.connect() as database:
        database.register("l", table(left))
        database.register("r", table(right))
        near = f"from l join r on l.k = r.k and abs(l.us - r.us) <= {day.window_us}"
        found = database.execute(
            f"select greatest(tick, tick_right) t, count(*), {CHECKSUM_SQL} from "
            f"(select l.n, l.tick, r.n n_right, r.tick tick_right {near} "
            f"where bit_count(l.bits & r.bits) >= {COMMON}) group by t"
        ).fetchall()
        pairs = database.execute(f"select count(*) {near}").fetchone()
    assert sum(answer.results) > 100
    expected = np.zeros((2, day.ticks), np.int64)
    for tick, results, checksum in found:
        expected[:, tick] = results, checksum
    assert np.array_equal(answer.results, expected[0])
    assert np.array_equal(answer.checksums, expected[1])
    assert pairs == (answer.pairs.sum(),)


def test_the_rate_for_so_many_pairs_brings_them() -> None:
    day = Day(rate_of(8_000, window_seconds=2.0), (Segment("calm", 20.0),), window_seconds=2.0)
    counted = exact_answer(day, *streams_of(day)).pairs
    assert counted[int(4 / TICK_SECONDS) :].sum() / 16 == pytest.approx(8_000, rel=0.05)


@pytest.mark.parametrize("wrong", [{"segments": ()}, {"calm_rate": 0.0}, {"window_seconds": 0.0}])
def test_a_day_without_rows_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(FlowError, match="A day needs"):
        Day(**{"calm_rate": 1.0, **wrong})  # type: ignore[arg-type]
