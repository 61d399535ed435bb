"""The search for the highest rate that keeps the goal."""

from __future__ import annotations

from typing import Any

import pytest

from tidegate_lab.bench.nexmark.search import Attempt, Search, holds


def played(search: Search, capacity: float, cold: bool = False) -> list[int]:
    """The rates that a search tries against a query with this capacity; the first may fail from cold."""
    rates: list[int] = []
    while (rate := search.next_rate()) is not None:
        held = rate <= capacity and not (cold and not rates)
        rates.append(round(rate))
        search.attempts.append(Attempt(rate, held, None, {}))
    return rates


def test_the_rate_is_doubled_and_then_the_gap_is_halved() -> None:
    search = Search("q3", "tidegate", 100.0, halvings=2)
    assert played(search, 500.0) == [100, 200, 400, 800, 566, 476]
    assert search.best == pytest.approx(400 * 2**0.25)


def test_a_first_attempt_that_fails_is_tried_again() -> None:
    search = Search("q3", "tidegate", 100.0, halvings=1)
    assert played(search, 150.0, cold=True) == [100, 100, 200, 141]


def test_a_slow_query_is_tried_at_lower_rates_until_it_makes_no_sense() -> None:
    slow = Search("q3", "tidegate", 8_000.0, halvings=1)
    assert played(slow, 3_000.0) == [8000, 8000, 4000, 2000, 2828]
    hopeless = Search("q3", "tidegate", 4_000.0, halvings=1)
    assert played(hopeless, 0.0) == [4000, 4000, 2000, 1000]
    assert hopeless.best is None


def test_a_query_that_failed_is_not_tried_again() -> None:
    assert Search("q3", "tidegate", 100.0, 1, trouble="no memory").next_rate() is None


def test_a_rate_is_held_only_if_latency_stays_within_the_goal_to_the_end() -> None:
    def answer(latencies: list[float], fell_behind: bool = False) -> dict[str, Any]:
        return {"latencies": latencies, "fell_behind": fell_behind}

    assert holds(answer([1.0] * 99 + [9.0]), 2.0)
    assert not holds(answer([1.0] * 90 + [9.0] * 10), 2.0)
    assert not holds(answer([1.0] * 280 + [9.0] * 12), 2.0)
    assert not holds(answer([1.0] * 99, fell_behind=True), 2.0)
    assert not holds(answer([]), 2.0)
