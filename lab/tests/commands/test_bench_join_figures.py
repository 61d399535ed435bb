"""What `tidegate bench join` makes of its runs: figures, bars and complaints, without Spark."""

from __future__ import annotations

from typing import Any

import pytest

from tidegate_lab.bench.join.bars import fixed_cost_bars, long_stream_bars, long_window_bar, speed_bars
from tidegate_lab.bench.join.process import Outcome
from tidegate_lab.bench.join.rounds import Entry, Line, disagreements, unconfirmed
from tidegate_lab.bench.join.scenarios import NAMED, Options
from tidegate_lab.bench.join.summary import batch_time_ratio, rows_of_report, speedup
from tidegate_lab.workloads.join_data import JoinData

MILLION = JoinData(rows_per_batch=1_000_000, batches=4, keys=10_000_000)


def run(engine: str, seconds: list[float], *, checksum: int = 5, **more: Any) -> Outcome:
    events = [
        {"event": "batch", "at": 10.0 + i, "pause_ms": 100 * i, "pairs": 1, **more}
        for i, _ in enumerate(seconds)
    ]
    batches = [{"seconds": s, "state_rows": 10, "state_bytes": 480} for s in seconds]
    done = {"batches": batches, "rows": 100, "counted": 100, "pairs": 7, "checksum": checksum}
    return Outcome(engine, "", tuple(events), 1.0, 1000, done=done)


def line(engine: str, *rounds: list[float], data: JoinData = MILLION, checksum: int = 5) -> Line:
    found = Line(Entry(engine, data, window_ms=10_000, warmup=1))
    found.outcomes = [run(engine, seconds, checksum=checksum) for seconds in rounds]
    return found


def dead(engine: str) -> Line:
    found = Line(Entry(engine, MILLION, window_ms=10_000, warmup=1))
    found.outcomes = [Outcome(engine, "OutOfMemoryError", (), 1.0, 9000)]
    return found


def test_the_warm_up_is_not_counted() -> None:
    row = rows_of_report("x", [line("tidegate", [99.0, 1.0, 2.0, 3.0])])[0]
    assert row["rows_per_second"] == pytest.approx(500_000)
    assert row["batch_seconds_median"] == 2.0
    assert row["batch_seconds_p95"] == 3.0
    assert row["samples"]["batch_seconds"] == [[1.0, 2.0, 3.0]]


def test_state_per_row_and_the_share_of_garbage_collection_are_reported() -> None:
    row = rows_of_report("x", [line("spark-memory", [9.0, 1.0, 1.0])])[0]
    assert row["state_bytes_per_row"] == 48
    assert row["gc_share"] == pytest.approx(0.1)


def test_a_speedup_is_taken_within_each_round() -> None:
    us = line("tidegate", [9.0, 1.0], [9.0, 2.0])
    found = speedup(us, line("spark-memory", [9.0, 10.0], [9.0, 60.0]))
    assert found is not None
    assert (found.min, found.median, found.max) == pytest.approx((10.0, 20.0, 30.0))


def test_a_dead_contender_is_compared_by_its_largest_surviving_rate() -> None:
    us, other = line("tidegate", [9.0, 1.0]), dead("spark-memory")
    half = JoinData(rows_per_batch=500_000, batches=4, keys=10_000_000)
    assert speedup(us, other) is None
    other.survivor = line("spark-memory", [9.0, 5.0], data=half)
    found = speedup(us, other)
    assert found is not None
    assert found.median == pytest.approx(10.0)
    rows = rows_of_report("x", [us, other])
    assert [(row["engine"], row["died"], row["rows_per_batch"]) for row in rows] == [
        ("tidegate", None, 1_000_000),
        ("spark-memory", "OutOfMemoryError", 1_000_000),
        ("spark-memory", None, 500_000),
    ]
    assert rows[2]["died_at_rows"] == 1_000_000


def test_bars_are_found_by_their_setting_and_say_what_was_measured() -> None:
    lines = [
        line("tidegate", [9.0, 1.0]),
        line("spark-memory", [9.0, 21.0]),
        line("spark-rocksdb-4", [9.0, 29.0]),
        line("floor", [9.0, 0.8]),
    ]
    bars = {bar.id: bar for bar in speed_bars(lines, 1.0)}
    assert bars["join.vs_spark_memory_1m"].holds
    assert not bars["join.vs_spark_rocksdb4_1m"].holds
    assert bars["join.vs_spark_rocksdb4_1m"].value == pytest.approx(29.0)
    assert bars["join.over_floor_1m"].value == pytest.approx(1.25)
    assert bars["join.over_floor_1m"].holds
    assert len(bars) == 3


def test_skewed_keys_answer_no_bar() -> None:
    skewed = JoinData(rows_per_batch=1_000_000, batches=4, keys=10_000_000, zipf=1.0)
    lines = [line("tidegate", [9.0, 1.0], data=skewed), line("spark-memory", [9.0, 99.0], data=skewed)]
    assert speed_bars(lines, 1.0) == []


def test_a_dry_run_never_reports_under_the_id_of_a_real_bar() -> None:
    small = JoinData(rows_per_batch=1000, batches=4, keys=10_000)
    lines = [line("tidegate", [9.0, 1.0], data=small), line("spark-memory", [9.0, 99.0], data=small)]
    assert [bar.id for bar in speed_bars(lines, 0.001)] == ["join.vs_spark_memory_1m.dry_run"]
    assert speed_bars(lines, 1.0) == []


def test_a_fixed_cost_that_creeps_up_is_seen_even_after_a_slow_start() -> None:
    flat = fixed_cost_bars(line("tidegate", [1.0] + [0.3] * 100))
    assert [(bar.id, bar.holds) for bar in flat] == [
        ("join.fixed_cost_seconds", True),
        ("join.fixed_cost_growth", True),
    ]
    creeping = fixed_cost_bars(line("tidegate", [1.0] + [0.5] * 20 + [0.2 + 0.002 * i for i in range(80)]))
    assert not creeping[1].holds


@pytest.mark.parametrize(
    ("name", "id"),
    [
        ("heap_live_bytes", "join.driver_memory_growth"),
        ("driver_python_bytes", "join.driver_memory_growth"),
        ("workers_bytes", "join.worker_memory_growth"),
        ("disk_bytes", "join.state_disk_growth"),
    ],
)
def test_growth_over_a_long_stream_is_seen(name: str, id: str) -> None:
    names = ("heap_live_bytes", "driver_python_bytes", "workers_bytes", "disk_bytes")
    us = line("tidegate", [1.0] * 100)
    events = [{"event": "batch", **dict.fromkeys(names, 1000)} for _ in range(100)]
    us.outcomes[0] = Outcome("tidegate", "", tuple(events), 1.0, 1, done=us.outcomes[0].done)
    assert all(bar.holds for bar in long_stream_bars(us))
    for number, event in enumerate(events):
        event[name] = 1000 + 30 * number
    assert [bar.id for bar in long_stream_bars(us) if not bar.holds] == [id]


def test_a_longer_window_is_judged_by_time_per_batch() -> None:
    bar = long_window_bar("x", line("tidegate", [9.0, 1.0]), line("tidegate", [9.0, 2.6]))
    assert bar.value == pytest.approx(2.6)
    assert not bar.holds


def test_a_figure_that_could_not_be_measured_does_not_hold() -> None:
    bar = long_window_bar("x", line("tidegate", [9.0, 1.0]), dead("tidegate"))
    assert (bar.value, bar.holds) == (None, False)
    assert batch_time_ratio(dead("tidegate"), line("floor", [9.0, 1.0])) is None


def test_equal_results_raise_no_complaint_and_different_ones_name_the_engines() -> None:
    agreeing = [line("tidegate", [1.0]), line("spark-memory", [1.0]), line("floor", [1.0], checksum=0)]
    assert disagreements(agreeing) == []
    complaints = disagreements([*agreeing, line("duckdb", [1.0], checksum=6)])
    assert len(complaints) == 1
    assert "checksum 6 from duckdb" in complaints[0]
    assert "checksum 5 from spark-memory, tidegate" in complaints[0]


def test_an_engine_that_changes_its_answer_between_rounds_is_caught() -> None:
    us = line("tidegate", [1.0])
    us.outcomes.append(run("tidegate", [1.0], checksum=9))
    assert len(disagreements([us])) == 1


def test_a_floor_that_lost_rows_is_caught() -> None:
    floor = line("floor", [1.0])
    floor.outcomes[0] = Outcome(
        "floor", "", (), 1.0, 1, done={"rows": 100, "counted": 99, "pairs": 0, "checksum": 0}
    )
    assert disagreements([floor]) == ["floor: 99 of 100 rows arrived"]


def test_pairs_that_nobody_confirms_are_named() -> None:
    assert unconfirmed([line("tidegate", [1.0]), line("floor", [1.0])]) == ["tidegate"]
    assert unconfirmed([line("tidegate", [1.0]), line("duckdb", [1.0])]) == []


def test_the_million_scenario_is_the_setting_of_its_bars() -> None:
    scenario = NAMED["million"](Options())
    lines = [Line(entry) for entry in scenario.entries]
    for one in lines:
        one.outcomes = [run(one.entry.engine, [1.0] * one.entry.data.batches)]
    assert [bar.id for bar in scenario.bars(lines)] == [
        "join.vs_spark_memory_1m",
        "join.vs_spark_rocksdb4_1m",
        "join.over_floor_1m",
    ]


def test_a_scenario_without_this_engine_answers_no_bar() -> None:
    for make in NAMED.values():
        assert make(Options(engines=("duckdb",))).bars([]) == []
