from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import FlowError
from tidegate.window.spec import SIZE_MAX_US, WindowSpec

TIMES = st.integers(-(2**61), 2**61)
HALF = settings(max_examples=settings().max_examples // 2)


@st.composite
def specs(draw: st.DrawFn, size_max: int = 40, offset_max: int = 90) -> WindowSpec:
    size = draw(st.integers(1, size_max))
    return WindowSpec(size, draw(st.integers(1, size)), draw(st.integers(-offset_max, offset_max)))


def naive_windows(spec: WindowSpec, time: int) -> list[int]:
    near = range(time // spec.slide_us - spec.size_us - 1, time // spec.slide_us + 2)
    starts = {k: k * spec.slide_us + spec.offset_us for k in near}
    return [k for k, start in starts.items() if start <= time < start + spec.size_us]


@given(specs(), st.lists(TIMES, min_size=1, max_size=20))
@HALF
def test_the_windows_that_hold_a_time_are_found_at_either_side_of_the_epoch(
    spec: WindowSpec, times: list[int]
) -> None:
    first, last = spec.holding(np.array(times, np.int64))
    for time, low, high in zip(times, first, last, strict=True):
        assert list(range(low, high + 1)) == naive_windows(spec, time)


def test_the_longest_window_does_not_leave_64_bits() -> None:
    first, last = WindowSpec(SIZE_MAX_US, 1).holding(np.array([-(2**61), 2**61]))
    assert first.tolist() == [-(2**61) - SIZE_MAX_US + 1, 2**61 - SIZE_MAX_US + 1]
    assert last.tolist() == [-(2**61), 2**61]
    first, last = WindowSpec(SIZE_MAX_US, SIZE_MAX_US, -1).holding(np.array([-(2**61), 2**61]))
    assert first.tolist() == last.tolist() == [-3, 1]


@given(specs(), st.integers(-9, 9), st.integers(-200, 200))
@HALF
def test_an_offset_counts_modulo_the_slide(spec: WindowSpec, turns: int, time: int) -> None:
    assert WindowSpec(spec.size_us, spec.slide_us, spec.offset_us + turns * spec.slide_us) == spec
    assert 0 <= spec.offset_us < spec.slide_us
    shifted, plain = spec.holding(np.array([time])), WindowSpec(spec.size_us, spec.slide_us)
    assert shifted == plain.holding(np.array([time - spec.offset_us]))


@given(specs(), st.integers(-100, 100), st.integers(0, 100))
@HALF
def test_windows_that_start_in_a_range_are_counted_from_its_first_to_its_last(
    spec: WindowSpec, low: int, length: int
) -> None:
    first, end = spec.starting(np.array([low]), np.array([low + length]))
    starts = [t for t in range(low, low + length) if (t - spec.offset_us) % spec.slide_us == 0]
    assert spec.start(np.arange(first[0], end[0])).tolist() == starts
    assert spec.end(np.arange(first[0], end[0])).tolist() == [t + spec.size_us for t in starts]


def test_only_windows_without_overlap_are_tumbling() -> None:
    assert WindowSpec(10, 10).tumbling
    assert not WindowSpec(10, 9).tumbling


@pytest.mark.parametrize("size", [0, -1, SIZE_MAX_US + 1])
def test_a_size_that_is_no_length_is_refused(size: int) -> None:
    with pytest.raises(
        FlowError, match=r"WINDOW_SIZE_INVALID.*longer than zero and at most 2\*\*60.*Got: size"
    ):
        WindowSpec(size, 1)


@pytest.mark.parametrize("slide", [0, -5, 11])
def test_a_slide_of_nothing_or_beyond_the_size_is_refused(slide: int) -> None:
    with pytest.raises(
        FlowError, match=r"WINDOW_SLIDE_INVALID.*slide .* longer than zero and at most its size"
    ):
        WindowSpec(10, slide)
