"""Heavy keys: exact in a task, within a counted error over batches, in constant memory."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tidegate.errors import FlowError
from tidegate.route.heavy_keys import HeavyKeys, heavy_keys

CODES = st.lists(st.integers(0, 12).map(lambda small: small * (2**64 // 13)), max_size=60)


@given(CODES, st.floats(0, 1))
def test_a_task_finds_exactly_the_keys_with_that_share_of_its_rows(rows: list[int], share: float) -> None:
    codes, counts = heavy_keys(np.sort(np.array(rows, np.uint64)), share)
    # In the order of codes; a share of the rows means at least one row.
    least = max(1, share * len(rows))
    assert list(zip(codes.tolist(), counts.tolist(), strict=True)) == [
        (code, count) for code, count in sorted(Counter(rows).items()) if count >= least
    ]


def test_a_share_that_is_none_is_refused() -> None:
    with pytest.raises(FlowError, match=r"between 0 and 1. Got: 1.5"):
        heavy_keys(np.zeros(1, np.uint64), 1.5)


@given(
    st.lists(st.lists(CODES, min_size=1, max_size=3), min_size=1, max_size=6),
    st.integers(1, 8),
    st.sampled_from([0.5, 0.9, 1.0]),
    st.sampled_from([0.0, 0.1, 0.3]),
)
@settings(max_examples=60)
def test_counts_are_never_too_high_and_never_lower_than_was_missed(
    batches: list[list[list[int]]], size: int, fading: float, share: float
) -> None:
    summary, true = HeavyKeys(size, fading), Counter[int]()
    for tasks in batches:
        found = [heavy_keys(np.sort(np.array(rows, np.uint64)), share) for rows in tasks]
        codes, counts = (np.concatenate(lists) for lists in zip(*found, strict=True))
        summary = summary.after_batch(codes, counts, sum(len(rows) for rows in tasks), share)
        true = Counter({code: fading * count for code, count in true.items()})
        true.update(code for rows in tasks for code in rows)
    listed = dict(zip(summary.codes.tolist(), summary.counts.tolist(), strict=True))
    assert len(listed) <= size
    assert summary.total == pytest.approx(sum(true.values()))
    for code, count in true.items():
        assert listed.get(code, 0.0) <= count + 1e-9
        assert count <= listed.get(code, 0.0) + summary.missed + 1e-9
    # The docstring's bound, and what follows from it: nothing that heavy is left out.
    part = share + 1 / (size + 1)
    assert summary.missed <= part * summary.total + 1e-9
    heavy = {code for code, count in true.items() if count > part * summary.total + 1e-9}
    assert heavy <= set(summary.at_least(part).tolist())


def zipf_batch(batch: int, keys: int) -> NDArray[np.uint64]:
    random = np.random.default_rng(batch)
    ranks = np.minimum(random.zipf(1.3, 5_000), keys).astype(np.uint64)
    return np.sort(ranks * np.uint64(0x9E3779B97F4A7C15))


def test_memory_is_constant() -> None:
    """Ten times the batches and ever new keys: no more is kept, in memory or as JSON."""
    summary, sizes = HeavyKeys(size=64), []
    for batch in range(200):
        codes, counts = heavy_keys(zipf_batch(batch, 10**6), 0.0)
        summary = summary.after_batch(codes, counts, 5_000, 0.0)
        sizes.append(len(json.dumps(summary.to_json())))
    assert max(sizes[20:]) <= 1.05 * max(sizes[:20])
    assert summary.codes.size == summary.counts.size <= 64


def test_a_key_that_is_heavy_no_more_is_forgotten_and_a_new_one_is_found() -> None:
    summary = HeavyKeys(size=8, fading=0.5)
    for batch in range(20):
        hot = np.full(500, 7 if batch < 10 else 9, np.uint64)
        cold = np.random.default_rng(batch).integers(100, 2**40, 500, dtype=np.uint64)
        codes, counts = heavy_keys(np.sort(np.concatenate([hot, cold])), 0.01)
        summary = summary.after_batch(codes, counts, 1000, 0.01)
        if batch in (9, 12):
            assert summary.at_least(0.4).tolist() == [7 if batch == 9 else 9]
    assert summary.counts[summary.codes == 7].sum() < 1


def test_json_carries_all_of_it() -> None:
    summary = HeavyKeys(size=4).after_batch(np.array([5, 2**64 - 1], np.uint64), np.array([3, 9]), 20, 0.1)
    again = HeavyKeys.from_json(json.loads(json.dumps(summary.to_json())))
    assert again.to_json() == summary.to_json()
    assert again.codes.dtype == np.uint64


@pytest.mark.parametrize(("size", "fading"), [(0, 0.5), (3, 0.0), (3, 1.5)])
def test_no_room_or_no_memory_is_refused(size: int, fading: float) -> None:
    with pytest.raises(FlowError, match=rf"Got: size {size}, fading {fading}.*size of 1 or more"):
        HeavyKeys(size, fading)
