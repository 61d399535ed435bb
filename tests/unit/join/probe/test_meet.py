"""Where sorted codes meet: every place of small arrays, spread evenly and badly, by each of the ways."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tidegate.join.probe.meet import LEAP_RATIO, leap_in_probing, leap_in_stored, meet, merge

SPREADS = {
    "evenly": np.arange(1, 40, dtype=np.uint64) * np.uint64(2**58),
    "dense first, then far": np.array([1, 3, 5, 7, 9, 11, 13, 15, 17, 2**63, 2**64 - 2], np.uint64),
    "far first, then dense": np.array([1, *range(2**63, 2**63 + 40, 2)], np.uint64),
    "all in two keys": np.array([5] * 30 + [9] * 30, np.uint64),
    "one row": np.array([5], np.uint64),
}


def expected(probing: NDArray[np.uint64], stored: NDArray[np.uint64]) -> list[tuple[int, int]]:
    return [
        (row, int(np.searchsorted(stored, code)))
        for row, code in enumerate(probing)
        if code in stored  # numpy's `in`: equal to some element.
    ]


@pytest.mark.parametrize("way", [merge, leap_in_stored, leap_in_probing, meet])
@pytest.mark.parametrize("spread", SPREADS)
def test_a_code_is_found_at_every_place_and_missed_beside_it(spread: str, way: object) -> None:
    assert callable(way)
    codes = SPREADS[spread]
    beside = np.unique(np.concatenate((codes - np.uint64(1), codes, codes + np.uint64(1))))
    for few, many in [(beside[k : k + 2], codes) for k in range(beside.size)]:
        for probing, stored in [(few, many), (many, few)]:
            rows, places = way(probing, stored)
            assert list(zip(rows.tolist(), places.tolist(), strict=True)) == expected(probing, stored)


def test_the_longer_side_is_leapt_over_and_like_lengths_are_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("merge", "leap_in_stored", "leap_in_probing"):
        monkeypatch.setattr(f"tidegate.join.probe.meet.{name}", lambda *_, name=name: (name, name))
    short = np.arange(2, dtype=np.uint64)
    like, long = np.arange(2 * LEAP_RATIO, dtype=np.uint64), np.arange(2 * LEAP_RATIO + 1, dtype=np.uint64)
    ways = [meet(*pair)[0] for pair in [(short, like), (like, short), (short, long), (long, short)]]
    assert [str(way) for way in ways] == ["merge", "merge", "leap_in_stored", "leap_in_probing"]
