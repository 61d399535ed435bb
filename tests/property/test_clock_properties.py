"""Laws of the clocks: whatever batches see and whatever the wall clock says."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.control.watermarks import ClockSettings, advance, saturated, unheard
from tidegate.model.manifest import StreamClock
from tidegate.model.times import BEGINNING_US, END_US

STREAMS = ("a", "b", "c")
#: Mostly times that differ by little, now and then the ends of time.
TIMES = st.sampled_from([*range(-20, 21), BEGINNING_US, BEGINNING_US + 3, END_US - 3, END_US])
LATENESS_US = st.sampled_from([0, 0, 1, 5, 30, 2**64])
TIMEOUTS_US = st.none() | st.integers(1, 20)


@dataclass(frozen=True)
class Batch:
    seen_us: dict[str, int | None]
    now_us: int


#: The wall clock may stand still or be set back.
BATCHES = st.lists(
    st.builds(
        Batch, st.fixed_dictionaries({name: st.none() | TIMES for name in STREAMS}), st.integers(0, 50)
    ),
    max_size=8,
)
PATIENT = st.fixed_dictionaries({name: st.builds(ClockSettings, LATENESS_US, st.none()) for name in STREAMS})
ANY = st.fixed_dictionaries({name: st.builds(ClockSettings, LATENESS_US, TIMEOUTS_US) for name in STREAMS})


def history(batches: list[Batch], reading: dict[str, ClockSettings]) -> list[dict[str, StreamClock]]:
    """The clocks before the first batch and after each one."""
    clocks = {name: unheard(0) for name in STREAMS}
    states = [clocks]
    for batch in batches:
        states.append(advance(states[-1], batch.seen_us, reading, batch.now_us))
    return states


@given(BATCHES, ANY)
def test_no_clock_ever_goes_back_or_leaves_64_bits(
    batches: list[Batch], reading: dict[str, ClockSettings]
) -> None:
    states = history(batches, reading)
    for before, after in pairwise(states):
        for name in STREAMS:
            assert BEGINNING_US <= before[name].watermark_us <= after[name].watermark_us <= END_US
            assert before[name].seen_us <= after[name].seen_us


@settings(max_examples=50)
@given(BATCHES, PATIENT)
def test_without_timeouts_a_watermark_is_the_newest_row_less_the_lateness(
    batches: list[Batch], reading: dict[str, ClockSettings]
) -> None:
    last = history(batches, reading)[-1]
    for name in STREAMS:
        seen = [at for batch in batches if (at := batch.seen_us[name]) is not None]
        newest = max(seen, default=BEGINNING_US)
        assert last[name].seen_us == newest
        assert last[name].watermark_us == saturated(newest - reading[name].lateness_us)


@given(BATCHES, ANY)
def test_a_watermark_moves_by_the_stream_s_own_rows_or_by_release_only(
    batches: list[Batch], reading: dict[str, ClockSettings]
) -> None:
    states = history(batches, reading)
    for batch, (before, after) in zip(batches, pairwise(states), strict=True):
        for name in STREAMS:
            own_us = saturated(after[name].seen_us - reading[name].lateness_us)
            if after[name].watermark_us > max(before[name].watermark_us, own_us):
                timeout_us = reading[name].idle_timeout_us
                assert batch.seen_us[name] is None
                assert timeout_us is not None
                assert batch.now_us - after[name].heard_us >= timeout_us


@settings(max_examples=50)
@given(BATCHES, ANY)
def test_release_overtakes_nobody_who_speaks(batches: list[Batch], reading: dict[str, ClockSettings]) -> None:
    states = history(batches, reading)
    for batch, (before, after) in zip(batches, pairwise(states), strict=True):
        speaking = {name for name in STREAMS if batch.seen_us[name] is not None}
        for name in set(STREAMS) - speaking:
            if after[name].watermark_us > before[name].watermark_us:
                assert all(after[name].watermark_us <= after[other].watermark_us for other in speaking)


@settings(max_examples=50)
@given(BATCHES, ANY, st.sampled_from(STREAMS))
def test_in_a_long_silence_only_streams_without_a_timeout_hold_time_back(
    batches: list[Batch], reading: dict[str, ClockSettings], patient: str
) -> None:
    reading = {**reading, patient: ClockSettings(0, None)}
    last = advance(history(batches, reading)[-1], {}, reading, now_us=10_000)
    holding = [last[name].watermark_us for name in STREAMS if reading[name].idle_timeout_us is None]
    assert min(clock.watermark_us for clock in last.values()) == min(holding)


@settings(max_examples=50)
@given(BATCHES, ANY)
def test_a_second_pass_over_the_same_batch_moves_nothing(
    batches: list[Batch], reading: dict[str, ClockSettings]
) -> None:
    for batch, after in zip(batches, history(batches, reading)[1:], strict=True):
        assert advance(after, {}, reading, batch.now_us) == after
        assert advance(after, batch.seen_us, reading, batch.now_us) == after


@settings(max_examples=50)
@given(BATCHES, ANY, st.permutations(STREAMS))
def test_the_order_of_streams_does_not_matter(
    batches: list[Batch], reading: dict[str, ClockSettings], order: list[str]
) -> None:
    clocks = {name: unheard(0) for name in order}
    for batch in batches:
        clocks = advance(clocks, batch.seen_us, reading, batch.now_us)
    assert clocks == history(batches, reading)[-1]
