from __future__ import annotations

import pytest

from tidegate.observe import units


@pytest.mark.parametrize(
    ("given", "expected"),
    [(0, "0 B"), (999, "999 B"), (1_000, "1.0 kB"), (7_340_032, "7.3 MB"), (2_500_000_000_000, "2.5 TB")],
)
def test_bytes_take_the_unit_that_fits(given: int, expected: str) -> None:
    assert units.size(given) == expected


@pytest.mark.parametrize(("given", "expected"), [(0.618, "0.62 s"), (12.34, "12.3 s"), (240.4, "240 s")])
def test_seconds_lose_places_as_they_grow(given: float, expected: str) -> None:
    assert units.seconds(given) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, "-"),
        ("2025-03-03T17:00:31.250000+00:00", "17:00:31"),
        ("2025-03-03T17:00:31Z", "17:00:31"),
        ("2025-03-03T17:00:31", "17:00:31"),
        ("the end", "the end"),
    ],
)
def test_a_moment_shows_its_time_of_day(given: str | None, expected: str) -> None:
    assert units.moment(given) == expected


def test_counts_have_separators() -> None:
    assert units.count(1234567.4) == "1,234,567"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, "-"),
        ("2025-03-03T17:00:31.250999+00:00", "2025-03-03 17:00:31.250"),
        ("2025-03-03T17:00:31+00:00", "2025-03-03 17:00:31.000"),
        ("end", "end"),
    ],
)
def test_date_and_time_go_to_the_millisecond(given: str | None, expected: str) -> None:
    assert units.date_and_time(given) == expected
