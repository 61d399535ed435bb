from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf

import numpy as np
import pytest

from tidegate_lab.bench.day.bars import OURS, WITHOUT_GOAL, day_bars, rows_of_report
from tidegate_lab.bench.day.over_time import exact_from, fate_of, overdue, right_share
from tidegate_lab.bench.day.plot import day_plot
from tidegate_lab.bench.day.recorded import BatchOutcome, Recorded, percentile, recorded
from tidegate_lab.bench.day.telling import told_by_spark, told_by_tidegate
from tidegate_lab.bench.day.turns import COLD_SECONDS, Second, seconds_of
from tidegate_lab.workloads.day import CALM, SPIKE, TICK_SECONDS, Day, Segment
from tidegate_lab.workloads.day_answer import Answer

GOAL = 2.0
#: Ten rows a tick, a result a row; the spike brings no more, so that sums stay simple.
DAY = Day(20.0, (Segment(CALM, 10.0), Segment(SPIKE, 14.0), Segment(CALM, 36.0)), window_seconds=2.0)
ROWS = np.full(DAY.ticks, 10)
#: The clock when the day begins.
START = 1_000_000.0


def batches(**changed: dict[int, float]) -> list[BatchOutcome]:
    """One a second that takes the two ticks before it, in 0.6 s; by number of the batch what is different."""
    plain = [
        BatchOutcome(number, START + number, START + number + 0.6, 20 if number else 10, 40, fraction=1.0)
        for number in range(int(DAY.seconds))
    ]
    for name, values in changed.items():
        for number, value in values.items():
            plain[number] = replace(plain[number], **{name: value})  # type: ignore[arg-type]
    return plain


def found(skipped: dict[int, int] | None = None) -> dict[int, tuple[tuple[int, int, int], ...]]:
    """Each batch finds all results of its own ticks, but for some of its last tick."""
    by_batch = {}
    for number in range(int(DAY.seconds)):
        less = (skipped or {}).get(number, 0)
        ticks = [tick for tick in (2 * number - 1, 2 * number) if tick >= 0]
        by_batch[number] = tuple(
            (tick, 10 - less, 7 * (10 - less)) if tick == 2 * number else (tick, 10, 70) for tick in ticks
        )
    return by_batch


def run(
    told: list[BatchOutcome] | None = None, results: dict[int, tuple[tuple[int, int, int], ...]] | None = None
) -> Recorded:
    moments = [START + tick * TICK_SECONDS for tick in range(DAY.ticks)]
    rows = np.concatenate([ROWS[:-1], [0]])  # the last tick would need a batch of its own
    return recorded(OURS, DAY, moments, rows, told or batches(), results or found(), START + 61, TICK_SECONDS)


def answer() -> Answer:
    results = ROWS.copy()
    results[-1] = 0
    return Answer(results, 7 * results, 100 * results)


def bar(id: str, one: Recorded, calm: Sequence[Second] = ()) -> tuple[float | None, bool]:
    bars = day_bars({OURS: one}, answer(), calm, GOAL)
    found = next(bar for bar in bars if bar.id == f"overload.{id}")
    return found.value, found.holds


def test_rows_say_which_ticks_a_batch_took() -> None:
    one = run([BatchOutcome(0, START, START + 1, 10, 20), BatchOutcome(1, START + 1, START + 2, 25, 50)])
    assert one.batches[0].taken == ((0, 10),)
    assert one.batches[1].taken == ((1, 10), (2, 10), (3, 5))
    assert one.left_over()[:2] == [(3, 5), (4, 10)]


def test_a_batch_without_rows_takes_nothing() -> None:
    assert run([BatchOutcome(0, START, START + 1, 0, 0)]).batches[0].taken == ()


def test_waits_are_from_arrival_to_commit_and_the_cold_first_tick_does_not_count() -> None:
    one = run()
    assert one.latency(one.batches[0]) is None
    # Ticks at 0.5 and 1 s, committed at 1.6 s.
    assert one.waits([one.batches[1]])[:, 0].tolist() == pytest.approx([1.1, 0.6])
    assert one.latency(one.batches[1]) == pytest.approx(1.1)


def test_rows_that_nobody_took_waited_until_the_end() -> None:
    one = run(batches()[:30])
    assert percentile(one.waits(), 95) == pytest.approx(30, abs=3)
    assert (percentile(one.waits(one.batches), 95) or inf) < GOAL


def test_percentiles_count_rows() -> None:
    assert percentile(np.array([[1.0, 99], [9.0, 1]]), 95) == 1.0
    assert percentile(np.zeros((0, 2)), 95) is None


def test_late_batches_of_the_spike_say_how_long_it_took_to_come_back() -> None:
    assert bar("p95_after_step_seconds", run()) == (0.0, True)
    late = run(batches(ended={14: START + 17.0}))
    value, holds = bar("p95_after_step_seconds", late)
    assert value == pytest.approx(7.0)
    assert holds


def test_a_late_batch_at_the_end_of_the_spike_is_not_overlooked() -> None:
    late = run(batches(ended={23: START + 25.5}))
    assert bar("p95_after_step_seconds", late)[1] is False


def test_latency_must_hold_to_the_end_of_the_day() -> None:
    value, holds = bar("p95_held", run())
    assert value == pytest.approx(1.1)
    assert holds
    later = {number: START + number + 3.0 for number in range(50, 60)}
    assert bar("p95_held", run(batches(ended=later)))[1] is False


def test_what_is_shed_in_calm_counts_once_the_rush_has_left_the_window() -> None:
    assert bar("calm_shed_rows", run(batches(skipped={15: 40, 25: 40}))) == (0.0, True)
    assert bar("calm_shed_rows", run(batches(skipped={3: 40}, dropped={50: 2}))) == (42.0, False)


def test_results_have_one_of_three_fates() -> None:
    results = found({20: 4})
    results[40] = (*results[40], (40, 3, 21))
    fate = fate_of(run(results=results), answer(), GOAL)
    assert fate.in_time[40] == 6
    assert fate.too_late[40] == 3
    assert fate.never.sum() == 1


def test_the_union_is_exact_only_if_every_result_is_there_once() -> None:
    assert right_share(run(), answer()) == 1.0
    short = found({20: 4})
    assert right_share(run(results=short), answer()) == pytest.approx(1 - 4 / answer().results.sum())
    repaired = {**short, 40: (*short[40], (40, 4, 28))}
    one = run(results=repaired)
    assert right_share(one, answer()) == 1.0
    assert right_share(one, answer(), until=30.0) != 1.0
    twice = {**repaired, 41: (*short[41], (40, 4, 28))}
    assert right_share(run(results=twice), answer()) != 1.0
    others = {**short, 40: (*short[40], (40, 4, 29))}
    assert right_share(run(results=others), answer()) != 1.0


def test_repair_makes_up_for_what_is_overdue_and_says_when() -> None:
    short = found({20: 4})
    one = run(results={**short, 40: (*short[40], (40, 4, 28))})
    at, missing = overdue(one, answer(), GOAL)
    assert missing.max() == 4
    assert missing[(at >= 22.0) & (at < 40.5)].min() == 4
    assert exact_from(one, answer(), GOAL) == pytest.approx(40.6)
    assert exact_from(run(results=short), answer(), GOAL) is None
    assert exact_from(run(), answer(), GOAL) == 0.0


def test_a_batch_that_repairs_must_not_be_late() -> None:
    short = found({20: 4})
    repaired = {**short, 40: (*short[40], (40, 4, 28))}
    skipped, repaid = {20: 40.0}, {40: 4.0}
    assert bar("union_exact_after_repair", run(batches(skipped=skipped), repaired)) == (1.0, True)
    assert bar("repair_batches_over_goal", run(batches(skipped=skipped, repaid=repaid), repaired)) == (
        0.0,
        True,
    )
    late = batches(skipped=skipped, repaid=repaid, ended={40: START + 42.5})
    assert bar("repair_batches_over_goal", run(late, repaired)) == (1.0, False)
    # Nothing was made up for: nothing can be said.
    assert bar("repair_batches_over_goal", run(batches(skipped=skipped), short)) == (None, False)


def test_pairs_whose_second_row_comes_a_batch_later_are_no_repair() -> None:
    # Nothing was left out: the right rows of a tick were let in late.
    behind = found({20: 4})
    moved = {**behind, 21: (*behind[21], (40, 4, 28))}
    late = batches(ended={21: START + 23.5})
    assert bar("repair_batches_over_goal", run(late, moved)) == (0.0, True)


def test_overhead_compares_batches_of_the_same_rows_with_and_without_a_goal() -> None:
    # Batches become shorter while Java warms up; one second in three came in two batches.
    calm = []
    for number in range(60):
        usual = 0.4 if number >= 30 else 2.0
        calm.append(Second(OURS, number, 1.2 * usual, 0.03 if number >= 30 else 1.0, 0.12))
        calm.append(Second(WITHOUT_GOAL, number, None if number % 3 == 0 else usual, 0.0, 0.1))
    value, holds = bar("controller_overhead", run(), calm)
    # 30 ms on the driver, and 20 ms of tasks on two cores.
    assert value == pytest.approx(0.1)
    assert not holds
    assert bar("controller_overhead", run(), [one for one in calm if one.contender == OURS])[0] is None
    row = rows_of_report({}, answer(), calm, GOAL)[-1]
    assert (row["pairs"], row["ratio"]) == (20, pytest.approx(1.2))


def test_a_second_of_rows_counts_where_one_warm_batch_took_it() -> None:
    rows = [20] * (COLD_SECONDS + 3)
    took = [(number, 20, 0.5) for number in range(COLD_SECONDS + 1)]
    # Then a batch without rows, two of half a second each, and one of a whole second.
    took += [(10, 0, 0.1), (11, 10, 0.3), (12, 10, 0.3), (13, 20, 0.6)]
    told = [BatchOutcome(n, at, at + seconds, left, 2 * left) for n, (at, left, seconds) in enumerate(took)]
    found = seconds_of(OURS, 100, told, rows)
    assert [one.number for one in found] == list(range(100, 100 + len(rows)))
    assert [one.batch_seconds for one in found] == [None] * COLD_SECONDS + [
        pytest.approx(0.5),
        None,
        pytest.approx(0.6),
    ]


def test_the_report_has_every_batch_and_all_panels_can_be_drawn() -> None:
    one = run(batches(imbalance=dict.fromkeys(range(60), 1.2)))
    (row,) = rows_of_report({OURS: one}, answer(), [], GOAL)
    assert len(row["batches"]) == 60
    assert row["recall_in_time"] == 1.0
    assert row["rows_left_over"] == 0
    plot = day_plot({OURS: one}, answer(), GOAL)
    assert len(plot.panels) == 8
    assert all(panel.curves for panel in plot.panels)


def test_what_this_engine_tells_of_a_batch() -> None:
    window = {"in_reach": 100, "looked_at": 60, "skipped": 40, "fraction": 0.6}
    progress = {
        "batch": 4,
        "started": 100.0,
        "duration_seconds": 0.5,
        "offered": {"left": 10, "right": 11},
        "input_rows": 21,
        "late": {"left": 1, "right": 0},
        "operators": [{"comparisons": 60}, {"comparisons": 30}],
        "balance": {"pairs": {"seconds": [3.0, 1.0]}},
        "shed": {"pairs": {"fraction": 0.6, "windows": [window, window], "dropped": [2, 3]}},
    }
    told = told_by_tidegate(progress)
    assert (told.ended, told.left_rows, told.compared, told.imbalance) == (100.5, 10, 90, 1.5)
    assert (told.skipped, told.dropped, told.late) == (80, 5, 1)
    assert told_by_tidegate({**progress, "shed": {}}).fraction is None
    assert told_by_tidegate({**progress, "goal": {"planned": 0.5}}).decided == {"planned": 0.5}


def test_what_spark_tells_of_a_batch() -> None:
    told = told_by_spark(
        {
            "batchId": 7,
            "timestamp": "2025-03-03T17:00:00.250Z",
            "durationMs": {"triggerExecution": 1500},
            "numInputRows": 30,
            "sources": [
                {"description": "FileStreamSource[file:/tmp/day/right]", "numInputRows": 20},
                {"description": "FileStreamSource[file:/tmp/day/left]", "numInputRows": 10},
            ],
            "stateOperators": [{"numRowsDroppedByWatermark": 2}],
        }
    )
    assert (told.number, told.left_rows, told.rows, told.late) == (7, 10, 30, 2)
    assert told.ended - told.began == pytest.approx(1.5)
    assert told.began % 60 == pytest.approx(0.25)
