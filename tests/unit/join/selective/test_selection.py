from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.join.selective.selection import row_identity, unit_hashes, within_share
from tidegate_lab.simulate.join.basic_windows import Ranges, explore, select, whole_or_nothing


def ranges(*sizes: int) -> Ranges:
    """Rows of ages 0, 1, … from the newest; the oldest rows have the lowest places."""
    ends = sum(sizes) - np.concatenate([[0], np.cumsum(sizes)])
    return Ranges(ends[1:][None, :], ends[:-1][None, :])


def test_basic_windows_are_taken_in_order_and_the_last_one_in_part_from_its_newest_end() -> None:
    chosen = select(ranges(10, 20, 30, 40), [2, 0, 3, 1], fraction=0.45)
    assert chosen.sizes.tolist() == [[10, 0, 30, 5]]
    assert (chosen.starts[0, 3], chosen.ends[0, 3]) == (35, 40)


def test_ages_that_are_not_in_the_order_are_not_touched() -> None:
    assert select(ranges(10, 20, 30), [1], fraction=1.0).sizes.tolist() == [[0, 20, 0]]


@given(
    st.lists(st.integers(0, 50), min_size=1, max_size=8).flatmap(
        lambda sizes: st.tuples(st.just(sizes), st.permutations(range(len(sizes))))
    ),
    st.floats(0, 1),
)
def test_the_budget_is_used_exactly_and_no_later_age_before_an_earlier_one_is_done(
    drawn: tuple[list[int], list[int]], fraction: float
) -> None:
    sizes, order = drawn
    chosen = select(ranges(*sizes), order, fraction)
    taken = chosen.sizes[0]
    assert taken.sum() == np.rint(fraction * sum(sizes))
    assert chosen.ends.tolist() == ranges(*sizes).ends.tolist()
    for first, second in pairwise(order):
        assert taken[second] == 0 or taken[first] == sizes[first]


def test_a_sample_has_its_share_and_is_the_same_every_time() -> None:
    rows = np.arange(100_000, dtype=np.uint64)
    sample = within_share(rows, 0.03, seed=5)
    assert abs(sample.mean() - 0.03) < 0.003
    np.testing.assert_array_equal(sample, within_share(rows, 0.03, seed=5))
    assert (sample != within_share(rows, 0.03, seed=6)).any()


def test_a_larger_sample_contains_the_smaller_one_and_the_ends_are_exact() -> None:
    rows = np.arange(10_000, dtype=np.uint64)
    assert not (within_share(rows, 0.1, 5) & ~within_share(rows, 0.2, 5)).any()
    assert within_share(rows, 1.0, 5).all()
    assert not within_share(rows, 0.0, 5).any()


def test_exploring_rows_also_look_at_a_part_of_what_they_would_skip() -> None:
    whole = ranges(10, 20, 30)
    two = Ranges(np.repeat(whole.starts, 2, axis=0), np.repeat(whole.ends, 2, axis=0))
    chosen = select(two, [1, 0, 2], fraction=1 / 3)
    seen = explore(two, chosen, np.array([True, False]), 0.1, np.array([0.999, 0.999]))
    assert seen.sizes.tolist() == [[1, 20, 3], [0, 20, 0]]
    assert seen.ends[0].tolist() == whole.ends[0].tolist()
    assert explore(two, chosen, np.array([True, False]), 0.1, np.zeros(2)).starts[0, 2] == whole.starts[0, 2]


@given(st.lists(st.integers(0, 50), min_size=1, max_size=6), st.floats(0, 1), st.floats(0, 0.999))
def test_exploring_fully_looks_at_everything_and_never_outside(
    sizes: list[int], fraction: float, lot: float
) -> None:
    whole = ranges(*sizes)
    chosen = select(whole, range(len(sizes)), fraction)
    everything = explore(whole, chosen, np.array([True]), 1.0, np.array([lot]))
    assert everything.sizes.tolist() == [sizes]
    little = explore(whole, chosen, np.array([True]), 0.2, np.array([lot]))
    assert (little.starts >= whole.starts).all()
    assert (little.ends <= whole.ends).all()
    assert (little.sizes >= chosen.sizes).all()


def test_a_basic_window_chosen_in_part_is_taken_whole_or_not_at_all() -> None:
    whole = Ranges(np.array([[4, 0]] * 3), np.array([[8, 4]] * 3))
    chosen = Ranges(np.array([[4, 3]] * 3), np.array([[8, 4]] * 3))
    taken = whole_or_nothing(whole, chosen, np.array([0.0, 0.24, 0.26]))
    assert taken.sizes.tolist() == [[4, 4], [4, 4], [4, 0]]
    assert whole_or_nothing(whole, chosen).sizes.tolist() == [[4, 0]] * 3


def test_whole_or_nothing_keeps_the_budget_on_average_and_takes_nothing_that_was_not_chosen() -> None:
    rows = 10_000
    whole = Ranges(np.tile([10, 0], (rows, 1)), np.tile([20, 10], (rows, 1)))
    chosen = Ranges(np.tile([17, 10], (rows, 1)), np.tile([20, 10], (rows, 1)))
    taken = whole_or_nothing(whole, chosen, unit_hashes(np.arange(rows, dtype=np.uint64), 7)).sizes
    assert abs(taken[:, 0].mean() - 3) < 0.2
    assert not taken[:, 1].any()


@pytest.mark.parametrize("contents", ["different", "equal"])
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_about_the_same_share_of_every_batch_is_drawn_from_few_keys_and_one_time(
    contents: str, share: float
) -> None:
    rows = 10_000
    codes = np.sort(np.arange(rows, dtype=np.uint64) % np.uint64(5) * np.uint64(2**61))
    times = np.full(rows, 1_700_000_000_000_000)
    values = np.arange(rows, dtype=np.uint64) if contents == "different" else np.zeros(rows, np.uint64)
    drawn = [
        float((unit_hashes(row_identity(codes, times, batch, values), seed=9) < share).mean())
        for batch in range(200)
    ]
    low, high = np.percentile(drawn, [5, 95])
    assert share - 0.05 < low < share < high < share + 0.05
    # Rows of one key and time shared their fate without their contents.
    assert len(set(row_identity(codes, times, 0).tolist())) == 5


def test_the_identities_of_rows_do_not_depend_on_the_order_in_which_they_arrive() -> None:
    rng = np.random.default_rng(2)
    codes = np.sort(rng.integers(0, 6, 500)).astype(np.uint64)
    times = np.repeat(np.int64(7), 500)
    contents = rng.integers(0, 9, 500).astype(np.uint64)
    order = np.lexsort((rng.permutation(500), codes))
    given = sorted(zip(contents, row_identity(codes, times, 3, contents), strict=True))
    other = sorted(zip(contents[order], row_identity(codes, times, 3, contents[order]), strict=True))
    assert given == other
    assert len({identity for _, identity in given}) == 500
