"""Clocks by hand: what a batch sees, what the wall clock says, how far time has come."""

from __future__ import annotations

import pytest

from tidegate.control.watermarks import ClockSettings, advance, saturated, unheard
from tidegate.model.manifest import StreamClock
from tidegate.model.times import BEGINNING_US, END_US

PATIENT = ClockSettings(lateness_us=0, idle_timeout_us=None)


def watermarks(clocks: dict[str, StreamClock]) -> dict[str, int]:
    return {name: clock.watermark_us for name, clock in clocks.items()}


# -- one stream ----------------------------------------------------------------------------------------------


def test_a_stream_that_has_shown_no_row_is_at_the_beginning() -> None:
    assert unheard(7) == StreamClock(BEGINNING_US, BEGINNING_US, 7)


def test_the_watermark_lies_the_lateness_below_the_newest_row() -> None:
    settings = {"a": ClockSettings(lateness_us=30, idle_timeout_us=None)}
    clocks = advance({"a": unheard(0)}, {"a": 100}, settings, now_us=5)
    assert clocks == {"a": StreamClock(seen_us=100, watermark_us=70, heard_us=5)}


def test_older_rows_turn_nothing_back_but_are_heard() -> None:
    before = {"a": StreamClock(100, 70, 5)}
    settings = {"a": ClockSettings(lateness_us=30, idle_timeout_us=None)}
    assert advance(before, {"a": 40}, settings, now_us=9) == {"a": StreamClock(100, 70, 9)}


def test_a_larger_lateness_after_a_restart_does_not_turn_the_watermark_back() -> None:
    before = {"a": StreamClock(100, 70, 5)}
    settings = {"a": ClockSettings(lateness_us=60, idle_timeout_us=None)}
    assert advance(before, {"a": 110}, settings, now_us=9) == {"a": StreamClock(110, 70, 9)}


@pytest.mark.parametrize("seen", [{}, {"a": None}])
def test_a_batch_without_rows_of_a_stream_leaves_its_clock_alone(seen: dict[str, int | None]) -> None:
    before = {"a": StreamClock(100, 70, 5)}
    assert advance(before, seen, {"a": PATIENT}, now_us=9) == before


def test_advancing_changes_no_argument() -> None:
    before = {"a": StreamClock(100, 70, 5), "b": unheard(0)}
    settings = {name: ClockSettings(0, 1) for name in before}
    advance(before, {"a": 200}, settings, now_us=50)
    assert before == {"a": StreamClock(100, 70, 5), "b": unheard(0)}


# -- the ends of time ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("time_us", "kept_us"),
    [
        (0, 0),
        (END_US, END_US),
        (END_US + 1, END_US),
        (2**70, END_US),
        (BEGINNING_US, BEGINNING_US),
        (BEGINNING_US - 1, BEGINNING_US),
        (-(2**70), BEGINNING_US),
    ],
)
def test_a_time_beyond_64_bits_stops_at_their_end(time_us: int, kept_us: int) -> None:
    assert saturated(time_us) == kept_us


def test_lateness_does_not_take_a_watermark_below_the_beginning() -> None:
    settings = {"a": ClockSettings(lateness_us=10, idle_timeout_us=None)}
    for seen_us, watermark_us in (
        (BEGINNING_US + 3, BEGINNING_US),
        (BEGINNING_US + 10, BEGINNING_US),
        (BEGINNING_US + 11, BEGINNING_US + 1),
        (END_US, END_US - 10),
    ):
        clocks = advance({"a": unheard(0)}, {"a": seen_us}, settings, now_us=1)
        assert watermarks(clocks) == {"a": watermark_us}


# -- silent streams ------------------------------------------------------------------------------------------


def test_a_silent_stream_without_a_timeout_stays_where_it_is() -> None:
    before = {"a": StreamClock(100, 100, 0), "b": StreamClock(10, 10, 0)}
    settings = {"a": PATIENT, "b": PATIENT}
    assert watermarks(advance(before, {"a": 500}, settings, now_us=10**12)) == {"a": 500, "b": 10}


@pytest.mark.parametrize(("now_us", "watermark_us"), [(49, 10), (50, 500), (51, 500)])
def test_a_stream_is_released_when_its_timeout_is_over_and_not_before(now_us: int, watermark_us: int) -> None:
    before = {"a": StreamClock(100, 100, 0), "b": StreamClock(10, 10, 20)}
    settings = {"a": PATIENT, "b": ClockSettings(0, idle_timeout_us=30)}
    clocks = advance(before, {"a": 500}, settings, now_us)
    assert clocks["b"] == StreamClock(10, watermark_us, 20)


def test_a_silent_stream_goes_no_further_than_the_slowest_that_speaks() -> None:
    before = {name: StreamClock(0, 0, 0) for name in "abc"}
    settings = {"a": PATIENT, "b": PATIENT, "c": ClockSettings(0, 30)}
    clocks = advance(before, {"a": 500, "b": 300}, settings, now_us=40)
    assert watermarks(clocks) == {"a": 500, "b": 300, "c": 300}


def test_a_stream_that_is_quiet_but_has_time_left_still_counts_as_speaking() -> None:
    before = {"a": StreamClock(0, 0, 0), "b": StreamClock(200, 200, 20), "c": StreamClock(0, 0, 0)}
    settings = {"a": PATIENT, "b": ClockSettings(0, 30), "c": ClockSettings(0, 30)}
    clocks = advance(before, {"a": 500}, settings, now_us=40)
    assert watermarks(clocks) == {"a": 500, "b": 200, "c": 200}


def test_a_silent_stream_that_is_ahead_is_not_turned_back() -> None:
    before = {"a": StreamClock(0, 0, 0), "b": StreamClock(900, 900, 0)}
    settings = {"a": PATIENT, "b": ClockSettings(0, 30)}
    assert watermarks(advance(before, {"a": 500}, settings, now_us=40)) == {"a": 500, "b": 900}


def test_when_all_are_silent_nobody_moves() -> None:
    before = {"a": StreamClock(100, 100, 0), "b": StreamClock(10, 10, 0)}
    settings = {name: ClockSettings(0, 30) for name in before}
    assert advance(before, {}, settings, now_us=40) == before


def test_a_stream_that_never_spoke_is_released_too() -> None:
    before = {"a": unheard(0), "b": unheard(0)}
    settings = {"a": PATIENT, "b": ClockSettings(0, 30)}
    clocks = advance(before, {"a": 500}, settings, now_us=30)
    assert clocks["b"] == StreamClock(BEGINNING_US, 500, 0)


def test_a_stream_that_never_spoke_and_never_gives_up_holds_the_released_ones() -> None:
    before = {"a": unheard(0), "b": StreamClock(10, 10, 0)}
    settings = {"a": PATIENT, "b": ClockSettings(0, 30)}
    assert watermarks(advance(before, {}, settings, now_us=40)) == {"a": BEGINNING_US, "b": 10}


def test_a_stream_that_comes_back_keeps_the_mark_it_was_moved_to() -> None:
    settings = {"a": PATIENT, "b": ClockSettings(0, 30)}
    before = {"a": StreamClock(0, 0, 0), "b": StreamClock(10, 10, 0)}
    released = advance(before, {"a": 500}, settings, now_us=40)
    back = advance(released, {"a": 600, "b": 20}, settings, now_us=50)
    assert back["b"] == StreamClock(seen_us=20, watermark_us=500, heard_us=50)


def test_a_stream_that_has_come_back_holds_the_others_again() -> None:
    settings = {"a": PATIENT, "b": ClockSettings(0, 30)}
    back = {"a": StreamClock(500, 500, 40), "b": StreamClock(20, 500, 50)}
    soon = advance(back, {"a": 700}, settings, now_us=79)
    assert watermarks(soon) == {"a": 700, "b": 500}
    assert watermarks(advance(soon, {"a": 800}, settings, now_us=80)) == {"a": 800, "b": 800}


def test_a_wall_clock_that_steps_back_makes_nobody_idle() -> None:
    before = {"a": StreamClock(0, 0, 100), "b": StreamClock(0, 0, 100)}
    settings = {"a": PATIENT, "b": ClockSettings(0, 30)}
    assert watermarks(advance(before, {"a": 500}, settings, now_us=5)) == {"a": 500, "b": 0}


def test_silence_before_the_run_began_does_not_count() -> None:
    before = {"a": StreamClock(100, 100, 0), "b": StreamClock(20, 20, 0)}
    settings = {"a": PATIENT, "b": ClockSettings(0, idle_timeout_us=30)}
    paused = advance(before, {"a": 200}, settings, now_us=1_000, awake_us=990)
    assert watermarks(paused) == {"a": 200, "b": 20}
    assert watermarks(advance(paused, {}, settings, now_us=1_020, awake_us=990)) == {"a": 200, "b": 200}
