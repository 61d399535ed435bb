"""The bars of `tidegate bench nexmark`, from rates that are known."""

from __future__ import annotations

import pytest

from tidegate_lab.bench.nexmark.bars import sustained_bars, sustained_rows, turn_bars, turn_rows
from tidegate_lab.bench.nexmark.plot import rates_plot
from tidegate_lab.bench.nexmark.queries.catalogue import STATEFUL
from tidegate_lab.bench.nexmark.search import Attempt, Search
from tidegate_lab.bench.nexmark.task import FLINK, MEMORY, OURS, ROCKSDB
from tidegate_lab.bench.nexmark.turns import Line


def line(query: str, contender: str, seconds: float, right: bool = True) -> Line:
    """The first round is slow, and must not count."""
    rounds = [{"event": "done", "seconds": 99.0}, {"event": "done", "seconds": seconds}]
    return Line(query, contender, 1_000, rounds, right)


def measured(lines: list[Line], batch: int = 500_000) -> dict[str, tuple[float | None, bool]]:
    return {bar.id: (bar.value and round(bar.value, 6), bar.holds) for bar in turn_bars(lines, batch)}


def test_the_faster_of_sparks_own_is_the_one_to_beat() -> None:
    lines = [line("q5", OURS, 1.0), line("q5", MEMORY, 3.0), line("q5", ROCKSDB, 1.5)]
    assert measured(lines) == {"nexmark.q5.over_spark": (1.5, False)}


def test_a_wrong_result_has_no_rate_and_does_not_hold() -> None:
    wrong = [line("q5", OURS, 1.0, right=False), line("q5", MEMORY, 3.0)]
    assert measured(wrong) == {"nexmark.q5.over_spark": (None, False)}
    assert measured([line("q5", OURS, 1.0)]) == {}


def test_queries_without_state_have_no_bar_all_at_once() -> None:
    assert measured([line("q0", OURS, 1.0), line("q0", MEMORY, 3.0), line("q0", FLINK, 3.0)]) == {}


def test_the_mean_over_flink_needs_every_query_with_state() -> None:
    lines = [line(query, one, took) for query in STATEFUL for one, took in ((OURS, 1.0), (FLINK, 2.0))]
    found = measured(lines)
    assert found["nexmark.mean.over_flink"] == (2.0, True)
    assert found["nexmark.q3.over_flink"] == (2.0, True)
    assert "nexmark.mean.over_flink" not in measured(lines[2:])
    assert measured(lines, 2_500_000) == {"nexmark.large.mean.over_flink": (2.0, True)}


def attempt(rate: float, held: bool) -> Attempt:
    answer = {"p50": 0.5, "fell_behind": not held, "latencies": [1.0], "batches": [0.5]}
    return Attempt(rate, held, 1.0, answer)


def searched(query: str, contender: str, rate: float) -> Search:
    return Search(query, contender, rate, 1, [attempt(rate, True), attempt(2 * rate, False)])


def test_sustained_rates_are_compared_with_the_better_of_sparks_own() -> None:
    found = [
        searched(query, one, rate)
        for query in ("q0", "q5")
        for one, rate in ((OURS, 90.0), (MEMORY, 50.0), (ROCKSDB, 100.0))
    ]
    assert {bar.id: (bar.value, bar.holds) for bar in sustained_bars(found)} == {
        "nexmark.sustained.q0.over_spark": (0.9, True),
        "nexmark.sustained.q5.over_spark": (0.9, False),
    }


def test_rows_hold_the_samples_and_the_picture_a_point_for_every_rate() -> None:
    failed = Line("q5", ROCKSDB, 1_000, [{"event": "died", "why": "no memory"}])
    rows = turn_rows([line("q3", OURS, 2.0), line("q5", OURS, 4.0), line("q3", MEMORY, 8.0), failed])
    assert [row["samples"] for row in rows] == [[99.0, 2.0], [99.0, 4.0], [99.0, 8.0], [None]]
    assert rows[-1]["trouble"] == "no memory"
    (panel,) = rates_plot("nexmark", rows, "").panels
    assert [(curve.name, list(curve.x), list(curve.y)) for curve in panel.curves] == [
        (OURS, [0.0, 1.0], [0.5, 0.25]),
        (MEMORY, [0.0], [0.125]),
    ]
    (row,) = sustained_rows([searched("q3", OURS, 10.0)])
    assert row["rate"] == 10.0
    assert row["attempts"][1]["samples"] == pytest.approx([1.0])
