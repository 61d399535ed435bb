from __future__ import annotations

import numpy as np
import pytest

from tidegate.model.times import BEGINNING_US, END_US, LEFT
from tidegate.window.lifetime import SLOTS_PER_WINDOW, Lifetime, RowsLifetime
from tidegate.window.spec import SIZE_MAX_US, WindowSpec

SPECS = [
    *(WindowSpec(10, 10), WindowSpec(10, 3), WindowSpec(7, 5), WindowSpec(1, 1), WindowSpec(60, 1)),
    *(WindowSpec(10, 10, 4), WindowSpec(10, 3, -1), WindowSpec(7, 5, 13)),
]


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_a_window_is_closed_when_the_watermark_has_reached_its_end(spec: WindowSpec) -> None:
    for watermark in range(-70, 70):
        first_open = Lifetime(spec).closed(watermark)
        assert spec.end(first_open - 1) <= watermark
        assert spec.end(first_open) > watermark


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_partials_die_with_the_last_window_that_holds_them(spec: WindowSpec) -> None:
    lifetime = Lifetime(spec)
    for watermark in range(-70, 70):
        dead_before = lifetime.dead_before(LEFT, watermark)
        last_window_of = spec.holding(np.array([dead_before - 1, dead_before]))[1]
        assert last_window_of[0] < lifetime.closed(watermark) <= last_window_of[1]


@pytest.mark.parametrize(
    "spec", [*SPECS, *(WindowSpec(SIZE_MAX_US, slide, -1) for slide in (1, 9, SIZE_MAX_US))]
)
def test_the_ends_of_time_fit_into_64_bits(spec: WindowSpec) -> None:
    lifetime = Lifetime(spec)
    assert lifetime.dead_before(LEFT, BEGINNING_US) == BEGINNING_US
    assert END_US - spec.size_us < lifetime.dead_before(LEFT, END_US) <= END_US


def test_before_all_time_nothing_is_closed_and_behind_it_everything_is() -> None:
    lifetime = Lifetime(WindowSpec(7, 5))
    assert lifetime.closed(BEGINNING_US) * 5 < BEGINNING_US
    assert lifetime.closed(END_US) * 5 + 7 > END_US


def test_a_window_is_cut_into_slots_but_no_slide_is() -> None:
    assert Lifetime(WindowSpec(100, 1)).slot_us(LEFT) == 100 // SLOTS_PER_WINDOW
    assert Lifetime(WindowSpec(100, 30)).slot_us(LEFT) == 30
    assert Lifetime(WindowSpec(1, 1)).slot_us(LEFT) == 1


def test_rows_that_wait_for_others_do_not_die_by_time() -> None:
    assert RowsLifetime().dead_before(LEFT, END_US) == BEGINNING_US
    assert RowsLifetime().slot_us(LEFT) == 0
