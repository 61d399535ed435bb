from __future__ import annotations

from datetime import timedelta
from decimal import localcontext

import pytest

from tidegate.errors import FlowError
from tidegate.quantities import duration_us

SECOND = 1_000_000


@pytest.mark.parametrize(
    ("text", "expected_us"),
    [
        ("7 microseconds", 7),
        ("1 microsecond", 1),
        ("7 us", 7),
        ("500 ms", 500_000),
        ("3 milliseconds", 3_000),
        ("2 seconds", 2 * SECOND),
        ("2 secs", 2 * SECOND),
        ("2s", 2 * SECOND),
        ("1 minute", 60 * SECOND),
        ("5 min", 300 * SECOND),
        ("2 hours", 7_200 * SECOND),
        ("2h", 7_200 * SECOND),
        ("366 days", 366 * 86_400 * SECOND),
        ("1 d", 86_400 * SECOND),
        ("2 weeks", 14 * 86_400 * SECOND),
    ],
)
def test_every_unit_is_understood_long_and_short(text: str, expected_us: int) -> None:
    assert duration_us(text, "window") == expected_us


@pytest.mark.parametrize("text", ["1 hour 30 minutes", "1h30min", "  1 HOUR   30 Minutes ", "1.5 hours"])
def test_parts_add_up_however_they_are_spaced_or_spelt(text: str) -> None:
    assert duration_us(text, "window") == 5_400 * SECOND


@pytest.mark.parametrize("text", ["INTERVAL 90 MINUTES", "interval 1 hour 30 minutes", " Interval 1.5h"])
def test_the_word_interval_of_sql_may_come_first(text: str) -> None:
    assert duration_us(text, "window") == 5_400 * SECOND


@pytest.mark.parametrize("given", ["-90 seconds", "INTERVAL -90 SECONDS", timedelta(seconds=-90)])
def test_a_duration_may_be_negative_where_that_has_a_meaning(given: str | timedelta) -> None:
    assert duration_us(given, "offset", signed=True) == -90 * SECOND


def test_fractions_are_exact_where_binary_floats_are_not() -> None:
    assert duration_us("0.1 s 0.2 s", "window") == 300_000
    assert duration_us("4503599627370497.000001 seconds", "window") == 4_503_599_627_370_497_000_001


def test_the_application_s_decimal_precision_does_not_matter() -> None:
    with localcontext() as context:
        context.prec = 3
        assert duration_us("1234.567 seconds", "window") == 1_234_567_000


@pytest.mark.parametrize(
    "text",
    [
        "INTERVAL 90 MINUTES",
        "interval 1 hour 30 minutes",
        "INTERVAL '90' MINUTE",
        " Interval 1.5 hours",
        "+90 min",
    ],
)
def test_durations_as_spark_writes_them_are_understood(text: str) -> None:
    assert duration_us(text, "window") == 5_400 * SECOND


@pytest.mark.parametrize(
    ("text", "expected_us"),
    [
        ("-5 minutes", -300 * SECOND),
        ("- 5 minutes", -300 * SECOND),
        ("INTERVAL -5 MINUTES", -300 * SECOND),
        ("-INTERVAL 5 MINUTES", -300 * SECOND),
        ("-INTERVAL -5 MINUTES", 300 * SECOND),
        ("-1 hour 30 minutes", -1_800 * SECOND),
        ("-1 hour -30 minutes", -5_400 * SECOND),
        (timedelta(microseconds=-1), -1),
    ],
)
def test_a_signed_duration_may_be_negative(text: str | timedelta, expected_us: int) -> None:
    assert duration_us(text, "bound", signed=True) == expected_us
    if expected_us < 0:
        with pytest.raises(FlowError, match="bound is negative"):
            duration_us(text, "bound")


@pytest.mark.parametrize("nothing", ["0 seconds", "0.0 ms", "-0 s", timedelta(0)])
def test_zero_is_a_duration(nothing: str | timedelta) -> None:
    assert duration_us(nothing, "lateness") == 0


def test_a_timedelta_counts_to_the_microsecond() -> None:
    assert duration_us(timedelta(days=1, microseconds=1), "window") == 86_400 * SECOND + 1
    assert duration_us(timedelta.max, "window") == timedelta.max // timedelta(microseconds=1)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "2",
        "seconds",
        "2 fortnights",
        "1 month",
        "1 second and a half",
        "1e3 ms",
        ".5 s",
        "interval",
        "INTERVAL",
        "interval2 s",
        "'2 s",
    ],
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(FlowError, match=r"DURATION_INVALID.*window is not a duration"):
        duration_us(text, "window")


@pytest.mark.parametrize("given", [5, 2.5, None, ["2 seconds"]])
def test_what_is_no_text_is_refused_with_how_to_write_it(given: object) -> None:
    with pytest.raises(FlowError) as caught:
        duration_us(given, "lateness of 'orders'")  # type: ignore[arg-type]
    assert str(caught.value) == (
        f"[DURATION_INVALID] lateness of 'orders' is not a duration. Got: {given!r}. "
        'Write a number and a unit, for example "2 seconds", "500 ms" or "1 hour 30 minutes".'
    )


def test_a_negative_duration_is_refused_as_text_and_as_timedelta() -> None:
    with pytest.raises(FlowError) as caught:
        duration_us("-2 seconds", "window")
    assert str(caught.value) == (
        "[DURATION_NEGATIVE] window is negative. Got: '-2 seconds'. Give zero or a positive duration."
    )
    with pytest.raises(FlowError, match="DURATION_NEGATIVE"):
        duration_us(timedelta(microseconds=-1), "window")


def test_less_than_a_microsecond_is_refused_rather_than_rounded() -> None:
    with pytest.raises(FlowError) as caught:
        duration_us("1.0005 ms 0.1 us", "window")
    assert str(caught.value) == (
        "[DURATION_TOO_FINE] window is finer than a microsecond. Got: '1.0005 ms 0.1 us'. "
        'Event times are whole microseconds. Round it, for example to "1 microsecond".'
    )
