"""Estimates of recall: exact where everything was seen, scaled up where a sample saw it, bounded always."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tidegate.control.receipts.recall import Estimate, pooled, recall_of, recall_of_drop, student
from tidegate.join.selective.selection import GROUPS
from tidegate.model.codec import from_plain, to_plain
from tidegate.model.reports import ProbeCounts
from tidegate.model.skip_plan import Skipping


def looks(
    chosen: tuple[float, ...], sampled: tuple[tuple[int, ...], ...] = (), rows: int = 0, reach: int = 10_000
) -> ProbeCounts:
    """What one window found by age; the sample has ten rows in every group."""
    explored = tuple(float(sum(one)) for one in sampled) or (0.0,) * len(chosen)
    seen = (0,) * len(chosen)
    sample = (10,) * GROUPS if rows else ()
    return ProbeCounts((reach,) * len(chosen), seen, chosen, seen, explored, rows, sample, sampled)


def skipping(*shares: float, depth: float = 0.5) -> Skipping:
    return Skipping(0.5, (shares, (1.0,)), 0.1, depth)


WHOLE = looks((7.0,))


def test_what_was_looked_at_whole_is_known() -> None:
    found = recall_of(skipping(1.0, 1.0), [(looks((3.0, 4.0)), WHOLE), (looks((1.0, 0.0)), WHOLE)])
    assert found is not None
    assert found.total == Estimate(22.0, 22.0)
    assert (found.total.recall, found.total.interval) == (1.0, (1.0, 1.0))


def test_a_sample_is_scaled_up_by_its_rows_and_by_its_chance_to_see() -> None:
    # 160 of 1600 rows, each of which sees half of a basic window, find 2 matches in every group.
    quiet, busy = (0,) * GROUPS, (2,) * GROUPS
    found = recall_of(skipping(1.0, 0.0), [(looks((50.0, 0.0), (quiet, busy), rows=1600), WHOLE)])
    assert found is not None
    assert found.total.found == 50 + 32 + 7
    assert found.total.true == pytest.approx(50 + 7 + 10 * 32 / 0.5)
    assert Estimate(*found.by_age[0][1]).true == pytest.approx(640)
    low, high = found.total.interval
    assert low < found.total.recall < high  # type: ignore[operator]


def test_groups_that_differ_make_the_interval_wide() -> None:
    even, uneven = (2,) * GROUPS, (0, 4) * (GROUPS // 2)
    widths = []
    for groups in (even, uneven):
        found = recall_of(skipping(0.0), [(looks((0.0,), (groups,), rows=1600), WHOLE)])
        assert found is not None
        low, high = found.total.interval
        widths.append(high - low)
    assert widths[1] > 1.5 * widths[0]


def test_a_sample_that_found_nothing_does_not_say_that_there_is_nothing() -> None:
    found = recall_of(skipping(0.0), [(looks((0.0,), ((0,) * GROUPS,), rows=1600), WHOLE)])
    assert found is not None
    assert found.total.recall == 1.0
    low, high = found.total.interval
    # One match would weigh 20; 3.7 of them are missed in one of forty cases.
    assert low == pytest.approx(7 / (7 + 3.689 * 20), abs=0.001)
    assert high == 1.0


def test_no_more_can_be_missing_than_nobody_looked_at() -> None:
    found = recall_of(skipping(0.0), [(looks((0.0,), ((0,) * GROUPS,), rows=1600, reach=5), WHOLE)])
    assert found is not None
    assert found.total.interval[0] == pytest.approx(7 / 12)


def test_without_a_sample_there_is_no_estimate_unless_there_was_nothing_to_see() -> None:
    assert recall_of(skipping(0.0), [(looks((0.0,)), WHOLE)]) is None
    nothing = recall_of(skipping(0.0), [(looks((0.0,), reach=0), WHOLE)])
    assert nothing is not None
    assert nothing.total.recall == 1.0


def test_there_is_no_recall_of_nothing() -> None:
    assert Estimate(0.0, 0.0).recall is None


@pytest.mark.parametrize("freedom", [3, 5, 15, 60, 1000])
def test_quantiles_are_students(freedom: int) -> None:
    assert student(np.array([freedom]))[0] == pytest.approx(stats.t.ppf(0.975, freedom), rel=0.01)


AMOUNT = st.one_of(st.just(0.0), st.floats(0.01, 1e6))
ESTIMATES = st.builds(
    lambda certain, more, others, spread, freedom, unseen: Estimate(
        certain + more, certain, others, spread, freedom, unseen
    ),
    AMOUNT, AMOUNT, AMOUNT, AMOUNT, st.floats(1, 60), AMOUNT,
)  # fmt: skip


@given(st.lists(ESTIMATES, min_size=1, max_size=5))
def test_intervals_hold_the_estimate_and_stay_within_what_is_possible(parts: list[Estimate]) -> None:
    whole = pooled(parts)
    low, high = whole.interval
    assert 0 <= low <= high <= 1
    if whole.recall is not None:
        assert low <= whole.recall * (1 + 1e-9)
        assert whole.recall <= high * (1 + 1e-9)
    if whole.found and whole.true <= whole.found + whole.unseen:
        assert low >= whole.found / (whole.found + whole.unseen) * (1 - 1e-9)
    assert from_plain(Estimate, to_plain(whole)) == whole


def dropped_batch(seed: int, skew: float, shares: tuple[float, float]) -> tuple[float, float, float, float]:
    """New rows of both sides and stored ones, of which these shares are kept: true and estimated recall."""
    random = np.random.default_rng(seed)
    popularity = np.arange(1, 401) ** -skew
    popularity /= popularity.sum()
    whole, kept = [], []
    for share in (shares[0], shares[1]):
        rows = random.multinomial(4000, popularity)
        whole.append(rows)
        kept.append(random.binomial(rows, share))
    pairs, found = whole[0] * whole[1], kept[0] * kept[1]
    by_partition = np.bincount(np.arange(400) % 16, found)
    nothing = ProbeCounts((0,), (0,), (0.0,), (0,), (0.0,))
    probes = (nothing, ProbeCounts((9**9,), (0,), (float(found.sum()),), (0,), (0.0,)))
    estimate = recall_of_drop(
        (shares[0], 1.0), (np.ones(1), np.array([shares[1]])), [probes], by_partition.tolist()
    )
    assert estimate is not None
    assert estimate.recall is not None
    return (float(found.sum() / pairs.sum()), estimate.recall, *estimate.interval)


@pytest.mark.parametrize("skew", [0.0, 0.7, 1.2])
@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.1, 0.3), (0.9, 1.0)])
def test_the_recall_of_random_drop_is_estimated_and_its_interval_covers_the_truth(
    skew: float, shares: tuple[float, float]
) -> None:
    batches = [dropped_batch(seed, skew, shares) for seed in range(200)]
    assert np.mean([guess for _, guess, _, _ in batches]) == pytest.approx(shares[0] * shares[1], rel=0.02)
    assert np.mean([low <= true <= high for true, _, low, high in batches]) >= 0.94


def test_a_batch_that_found_nothing_has_no_recall() -> None:
    nothing = ProbeCounts((9,), (9,), (0.0,), (0,), (0.0,))
    assert recall_of_drop((0.5, 0.5), (np.ones(1), np.ones(1)), [(nothing, nothing)], [0.0]) is None
