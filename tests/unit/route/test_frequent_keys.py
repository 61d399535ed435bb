"""What a sketch of keys promises: no heavy key is missed, no weight is too large, memory is constant."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tidegate.route.frequent_keys import FLOOR, FrequentKeys
from tidegate_lab.workloads.skew import key_codes

SMALL, PURGED = 5, 3.5 / 2**5
CHUNKS = st.lists(st.dictionaries(st.integers(0, 2**64 - 1), st.integers(0, 500), max_size=80), max_size=6)
Chunk = dict[int, int]


def counted(chunks: list[Chunk], lg_size: int = SMALL) -> FrequentKeys:
    keys = FrequentKeys(lg_size)
    for chunk in chunks:
        keys.add(np.array(list(chunk), np.uint64), np.array(list(chunk.values()), np.int64))
    return keys


def check(keys: FrequentKeys, chunks: list[Chunk], of_all: float = 0.0) -> None:
    """The promises, against counts of every key; `of_all`: what may not have been sent."""
    truth: Counter[int] = Counter()
    for chunk in chunks:
        truth.update(chunk)
    assert keys.total == truth.total()
    assert keys.error <= (FLOOR + PURGED) * keys.total + 1 + of_all
    told = dict(zip(*(part.tolist() for part in keys.heaviest(0, 10_000)), strict=True))
    for code, weight in told.items():
        assert truth[code] - keys.error <= weight <= truth[code]
    least = keys.error + 1
    heavy = set(keys.heaviest(least, 10_000)[0].tolist())
    assert {code for code, weight in truth.items() if weight >= least} <= heavy


@given(CHUNKS)
@settings(max_examples=80)
def test_no_heavy_key_is_missed_and_no_weight_is_too_large(chunks: list[Chunk]) -> None:
    check(counted(chunks), chunks)


@given(CHUNKS, CHUNKS)
@settings(max_examples=40)
def test_sketches_add_up_and_can_be_sent(mine: list[Chunk], theirs: list[Chunk]) -> None:
    keys = counted(mine)
    sent = json.loads(json.dumps(counted(theirs).to_json(0, 10_000)))
    keys.merge(FrequentKeys.from_json(sent, SMALL))
    check(keys, [*mine, *theirs])


@given(CHUNKS, st.integers(0, 300), st.integers(0, 20))
@settings(max_examples=60)
def test_what_is_not_sent_counts_as_not_known(chunks: list[Chunk], least: int, most: int) -> None:
    keys = counted(chunks)
    sent = keys.to_json(least, most)
    assert len(sent["codes"]) <= most
    assert min(sent["weights"], default=least) >= least
    check(FrequentKeys.from_json(sent, SMALL), chunks, of_all=max(least, keys.heaviest(0, most + 1)[1].sum()))


def zipf(exponent: float, keys: int, rows: int) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    weights = np.arange(1, keys + 1, dtype=np.float64) ** -exponent
    return key_codes(np.arange(keys)), np.ceil(rows * weights / weights.sum()).astype(np.int64)


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 2.0])
def test_memory_does_not_grow_with_the_number_of_keys(exponent: float) -> None:
    sizes = []
    for number in (10_000, 1_000_000):
        keys = FrequentKeys(12)
        codes, weights = zipf(exponent, number, 10 * number)
        order = np.random.default_rng(1).permutation(number)
        for chunk in np.array_split(order, 20):
            keys.add(codes[chunk], weights[chunk])
        sizes.append(len(keys.heaviest(0, number)[0]))
        least = 2e-3 * keys.total
        assert keys.error < least
        heavy = codes[weights >= least]
        assert set(heavy.tolist()) <= set(keys.heaviest(least, 256)[0].tolist())
    assert max(sizes) <= 0.75 * 2**12


def test_the_heaviest_come_first_and_no_more_than_asked_for() -> None:
    keys = counted([{1: 5, 2: 50, 3: 7, 4: 50}])
    codes, weights = keys.heaviest(6, 10)
    assert codes.tolist() == [2, 4, 3]
    assert weights.tolist() == [50, 50, 7]
    assert keys.heaviest(0, 2)[0].tolist() == [2, 4]


def test_codes_above_the_signed_range_stay_what_they_are() -> None:
    code = 2**64 - 3
    keys = FrequentKeys.from_json(counted([{code: 9}]).to_json(0, 5), SMALL)
    assert keys.heaviest(1, 1)[0].tolist() == [code]


def test_nothing_is_heavy_where_nothing_came() -> None:
    keys = FrequentKeys(SMALL)
    keys.add(np.zeros(0, np.uint64), np.zeros(0, np.int64))
    assert [part.tolist() for part in keys.heaviest(0, 5)] == [[], []]
    assert (keys.total, keys.error) == (0, 0)
