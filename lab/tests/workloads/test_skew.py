from __future__ import annotations

import numpy as np
import pytest

from tidegate.errors import FlowError
from tidegate.route.hash_routing import partition_of
from tidegate_lab.workloads.skew import (
    GROUPS,
    ZipfStreams,
    city_streams,
    key_codes,
    share_of_top_keys,
    zipf_batches,
)


def test_the_nine_groups_are_named_by_their_exponents() -> None:
    assert len(GROUPS) == 9
    assert GROUPS["G02"] == (0.0, 2.0)


def test_codes_are_distinct_evenly_spread_and_another_hash_for_another_seed() -> None:
    numbers = np.arange(100_000)
    one, other = key_codes(numbers, 0), key_codes(numbers, 1)
    assert np.unique(one).size == np.unique(other).size == 100_000
    assert not np.intersect1d(one, other).size
    for codes in (one, other):
        per_partition = np.bincount(partition_of(codes, 64), minlength=64)
        assert per_partition.min() > 1300
        assert per_partition.max() < 1830
    agree = partition_of(one, 2) == partition_of(other, 2)
    assert agree.mean() == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("exponent", [0.0, 1.0, 2.0])
def test_keys_are_drawn_as_zipf_says(exponent: float) -> None:
    streams = ZipfStreams((exponent, 0.0), keys=50, rows=(40_000, 10), batches=2, seed=3)
    drawn = np.concatenate([left for left, _ in zipf_batches(streams)])
    codes = key_codes(np.arange(50), 3)
    found = np.array([(drawn == code).mean() for code in codes])
    expected = np.arange(1, 51) ** -exponent
    assert found == pytest.approx(expected / expected.sum(), abs=0.006)


def test_batches_have_the_rows_asked_for_and_repeat() -> None:
    streams = ZipfStreams(keys=1000, rows=(30, 50), batches=4)
    story = list(zipf_batches(streams))
    assert [(left.size, right.size) for left, right in story] == [(30, 50)] * 4
    again = list(zipf_batches(streams))
    assert all(
        (a == b).all() for one, two in zip(story, again, strict=True) for a, b in zip(one, two, strict=True)
    )
    assert not (story[0][0] == story[1][0]).all()


def test_the_city_is_as_skewed_as_the_papers() -> None:
    story = list(zipf_batches(city_streams(rows=(200_000, 200_000), batches=5)))
    for side, share in ((0, 0.20), (1, 0.24)):
        counts = np.unique(np.concatenate([batch[side] for batch in story]), return_counts=True)[1]
        assert counts.size == pytest.approx(20_000, rel=0.001)
        assert share_of_top_keys(counts, 0.8) == pytest.approx(share, abs=0.015)
        assert np.sort(counts)[-10] > 0.6 * counts.max()


def test_both_streams_like_the_same_keys() -> None:
    left, right = next(zipf_batches(ZipfStreams(keys=100)))
    assert np.bincount(partition_of(left, 500)).argmax() == np.bincount(partition_of(right, 500)).argmax()


@pytest.mark.parametrize("wrong", [{"keys": 0}, {"exponents": (1.0, -0.5)}, {"rows": (-1, 3)}, {"seed": -1}])
def test_streams_that_cannot_be_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(FlowError, match=r"at least one key"):
        ZipfStreams(**wrong)  # type: ignore[arg-type]


def test_the_share_of_top_keys_is_the_smallest() -> None:
    assert share_of_top_keys(np.array([1, 8, 1, 0, 0]), 0.8) == 0.2
    assert share_of_top_keys(np.array([1, 1, 1, 1]), 1.0) == 1.0
