from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.unit.api.frames import SECOND, Frame, a_stream, source, source_of
from tests.unit.messages.expecting import expect

from tidegate.api.sources import Watermark, watermark_of

DAY = 86_400 * SECOND


def test_a_batch_stream_has_no_lateness_no_idle_timeout_and_a_year_ahead() -> None:
    found = source_of(a_stream())
    assert (found.time, found.name) == ("ts", "orders")
    assert (found.lateness_us, found.idle_timeout_us, found.max_ahead_us) == (0, None, 366 * DAY)
    assert found.available_at is None


def test_a_stream_reads_its_durations_and_carries_its_frame_untouched() -> None:
    frame = Frame("ts", "arrived", streaming=True)
    found = source_of(
        source(
            frame,
            time="ts",
            lateness="2 s",
            idle_timeout=timedelta(minutes=1),
            max_ahead=None,
            available_at="arrived",
        )
    )
    assert found.frame is frame
    assert frame.asked == ()
    assert (found.lateness_us, found.idle_timeout_us) == (2 * SECOND, 60 * SECOND)
    assert (found.max_ahead_us, found.available_at) == (None, "arrived")


@pytest.mark.parametrize("setting", ["lateness", "idle_timeout", "max_ahead"])
def test_a_wrong_duration_is_blamed_on_its_setting_and_stream(setting: str) -> None:
    error = expect("DURATION_INVALID", lambda: a_stream(**{setting: "soon"}))
    assert error.details["problem"] == f"{setting} of 'orders' is not a duration"


@pytest.mark.parametrize("name", ["", None, 3, "\t"])
def test_a_stream_without_a_name_is_refused(name: Any) -> None:
    error = expect("NAME_UNUSABLE", lambda: a_stream(name))
    assert error.details["problem"] == "The name of a stream is not usable"
    assert error.details["got"] == repr(name)


@pytest.mark.parametrize("frame", [None, "orders", 3])
def test_a_stream_of_anything_but_a_data_frame_is_refused(frame: Any) -> None:
    error = expect("STREAM_NOT_A_FRAME", lambda: source(frame, time="ts"))
    assert error.details["got"] == type(frame).__name__


@pytest.mark.parametrize(
    ("setting", "code"), [("time", "STREAM_TIME_UNKNOWN"), ("available_at", "STREAM_AVAILABLE_AT_MISSING")]
)
def test_a_column_that_is_not_there_is_refused_with_those_that_are(setting: str, code: str) -> None:
    error = expect(code, lambda: a_stream(**{setting: "when"}))
    assert error.details["problem"] == "Stream 'orders' has no column 'when'"
    assert error.details["got"] == "columns ts, cell"


def test_columns_of_the_engine_s_own_are_refused() -> None:
    frame = Frame("ts", "_tidegate_time", "_Tidegate_code")
    error = expect("COLUMN_NAME_RESERVED", lambda: source(frame, time="ts"))
    assert error.details["got"] == "_tidegate_time, _Tidegate_code"


def test_an_idle_timeout_of_zero_is_refused() -> None:
    error = expect("STREAM_IDLE_TIMEOUT_ZERO", lambda: a_stream(idle_timeout="0 seconds"))
    assert error.details["problem"] == "idle_timeout of 'orders' is zero"


# -- watermarks ----------------------------------------------------------------------------------------------


def test_a_watermark_brings_time_and_lateness() -> None:
    found = source_of(source(Frame("at", "ts", streaming=True, delays_ms={"ts": 10_500})))
    assert (found.time, found.lateness_us) == ("ts", 10_500_000)


def test_what_the_watermark_says_may_be_said_again() -> None:
    frame = Frame("ts", streaming=True, delays_ms={"ts": 2000})
    found = source_of(source(frame, time="ts", lateness="2 seconds"))
    assert (found.time, found.lateness_us) == ("ts", 2 * SECOND)


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"time": "cell"}, "STREAM_TIME_TWICE"),
        ({"lateness": "3 seconds"}, "STREAM_LATENESS_TWICE"),
        ({"lateness": "0 seconds"}, "STREAM_LATENESS_TWICE"),
    ],
)
def test_what_contradicts_the_watermark_is_refused(settings: dict[str, str], code: str) -> None:
    expect(code, lambda: source(Frame("ts", "cell", delays_ms={"ts": 2000}), **settings))


def test_two_watermarks_are_refused_and_named() -> None:
    frame = Frame("ts", "at", delays_ms={"ts": 1, "at": 2})
    assert expect("STREAM_WATERMARKS_SEVERAL", lambda: source(frame)).details["got"] == "columns ts, at"


def test_a_streaming_frame_says_how_late_rows_may_be() -> None:
    expect("STREAM_LATENESS_MISSING", lambda: source(Frame("ts", streaming=True), time="ts"))
    found = source_of(source(Frame("ts", streaming=True), time="ts", lateness="0 seconds"))
    assert found.lateness_us == 0


def test_a_frame_without_time_or_watermark_is_refused_with_its_columns() -> None:
    error = expect("STREAM_TIME_MISSING", lambda: source(Frame("ts", "cell")))
    assert error.details["got"] == "columns ts, cell"


def test_a_watermark_is_read_from_the_column() -> None:
    assert watermark_of(Frame("ts"), "orders") is None
    assert watermark_of(Frame("ts", delays_ms={"ts": 3}), "orders") == Watermark("ts", 3000)
