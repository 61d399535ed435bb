"""The key filter: whoever may be stored is named; of the others, few; asked only where it pays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tidegate.join.probe.key_filter import BITS_PER_ROW, WORTH_FROM, KeyFilter, worth_asking

#: Few different codes, and such as agree in their lowest bits.
CODES = st.one_of(
    st.integers(0, 40), st.integers(0, 40).map(lambda high: high << 50), st.integers(0, 2**64 - 1)
)


@given(arrays(np.uint64, st.integers(0, 60), elements=CODES), arrays(np.uint64, 30, elements=CODES))
def test_every_stored_code_is_named_in_order_whatever_the_codes(
    stored: np.ndarray, others: np.ndarray
) -> None:
    asked = np.sort(np.concatenate((stored, others)))
    named = KeyFilter.of(stored).may_hold(asked)
    assert set(np.flatnonzero(np.isin(asked, stored))) <= set(named.tolist())
    assert (np.diff(named) > 0).all()


@pytest.mark.parametrize("partitions", [1, 8])
def test_few_codes_that_are_not_stored_are_let_through(partitions: int) -> None:
    """Also where an instance has some partitions only: codes of a few ranges."""
    codes = np.random.default_rng(3).integers(0, 2**64 // partitions, 60_000, dtype=np.uint64)
    stored, others = codes[:40_000], codes[40_000:]
    assert len(KeyFilter.of(stored).may_hold(others)) < 0.12 * len(others)


@pytest.mark.parametrize("rows", [0, 1, 7, 1_000, 1_024, 1_025])
def test_a_filter_takes_eight_to_sixteen_bits_a_row(rows: int) -> None:
    bits = 8 * KeyFilter.of(np.arange(rows, dtype=np.uint64)).bits.size
    assert BITS_PER_ROW * rows <= bits < max(16, 2 * BITS_PER_ROW * rows)


def test_nothing_stored_names_nobody() -> None:
    assert not len(KeyFilter.of(np.zeros(0, np.uint64)).may_hold(np.arange(9, dtype=np.uint64)))


def test_a_filter_is_asked_where_many_more_rows_are_stored_than_look() -> None:
    assert worth_asking(10, 10 * WORTH_FROM)
    assert not worth_asking(10, 10 * WORTH_FROM - 1)
