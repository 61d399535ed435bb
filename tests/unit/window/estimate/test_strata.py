from __future__ import annotations

import numpy as np

from tidegate.window.estimate.strata import STRATA, STRETCHES_MAX, LeftOut, rows_by_stratum, stratum_of

ALL, NONE = [0.5] * STRATA, [1.0] * STRATA


def shares(*sampled: int) -> list[float]:
    return [0.5 if stratum in sampled else 1.0 for stratum in range(STRATA)]


def touched(left_out: LeftOut, low: int, high: int, stratum: int) -> bool:
    return bool(left_out.touches(*(np.array([one]) for one in (low, high, stratum)))[0])


def test_a_stratum_is_the_lowest_bits_of_a_code() -> None:
    codes = np.array([0, 63, 64, 2**64 - 1, 2**63 + 5], np.uint64)
    assert stratum_of(codes).tolist() == [0, 63, 0, 63, 5]
    counted = rows_by_stratum(codes, np.array([1, 2, 3, 4, 5]))
    assert (counted[0], counted[5], counted[63], sum(counted)) == (4, 5, 6, 15)


def test_windows_are_touched_where_time_and_stratum_both_are() -> None:
    left_out = LeftOut().add(100, 200, shares(0, 63))
    assert touched(left_out, 50, 101, 0)
    assert touched(left_out, 199, 300, 63)
    assert not touched(left_out, 50, 100, 0), "both are half open"
    assert not touched(left_out, 200, 300, 0)
    assert not touched(left_out, 50, 300, 7), "this stratum was kept whole"
    assert left_out.between(150, 160)
    assert not left_out.between(200, 300)


def test_nothing_left_out_is_nothing_written_down() -> None:
    assert LeftOut().add(100, 200, NONE) == LeftOut()
    assert LeftOut().add(200, 200, ALL) == LeftOut()


def test_neighbouring_batches_are_one_stretch_and_what_is_over_is_forgotten() -> None:
    left_out = LeftOut().add(100, 200, ALL).add(150, 260, ALL).add(180, 220, ALL)
    assert left_out.stretches == ((100, 260, 2**STRATA - 1),)
    later = left_out.add(400, 500, ALL)
    assert len(later.stretches) == 2
    assert later.since(260).stretches == ((400, 500, 2**STRATA - 1),)
    assert LeftOut.from_json(later.to_json()) == later


def test_the_list_stays_short_and_never_forgets_too_much() -> None:
    left_out = LeftOut()
    for batch in range(3 * STRETCHES_MAX):
        left_out = left_out.add(100 * batch, 100 * batch + 50, shares(batch % 2))
    assert len(left_out.stretches) == STRETCHES_MAX
    for batch in range(3 * STRETCHES_MAX):
        assert touched(left_out, 100 * batch, 100 * batch + 1, batch % 2)
