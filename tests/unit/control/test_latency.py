"""The latency of the rows of a batch, from when they were available and when the batch was published."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.control.latency import (
    QUANTILE_STEPS,
    Availability,
    is_overdue,
    latency_of,
    overdue_warnings,
    p95_of_batches,
)
from tidegate.model.progress import ROWS_OVERDUE, LatencyBasis, LatencyProgress

NOW_US = 1_700_000_000_000_000
MOMENTS = st.integers(NOW_US - 10**9, NOW_US)


@st.composite
def streams(draw: st.DrawFn) -> Availability:
    """A stream whose weights are rows, so that every row can be written out."""
    points = draw(st.lists(st.tuples(MOMENTS, st.integers(1, 50)), min_size=1, max_size=8))
    basis: LatencyBasis = draw(st.sampled_from(["record", "file", "trigger"]))
    rows = sum(weight for _, weight in points)
    return Availability(basis, rows, tuple(at for at, _ in points), tuple(float(w) for _, w in points))


@given(st.lists(streams(), min_size=1, max_size=4), st.floats(0.001, 1_000))
def test_pooled_streams_have_the_quantiles_of_all_their_rows(some: list[Availability], goal: float) -> None:
    waits = np.concatenate(
        [(NOW_US - np.repeat(one.moments_us, np.array(one.weights, int))) / 1e6 for one in some]
    )
    found = latency_of(some, NOW_US, goal)
    assert found.p50_seconds == pytest.approx(np.quantile(waits, 0.5, method="inverted_cdf"))
    assert found.p95_seconds == pytest.approx(np.quantile(waits, 0.95, method="inverted_cdf"))
    assert found.max_seconds == pytest.approx(waits.max())
    assert found.overdue_ratio == pytest.approx((waits > goal).mean())


@given(st.lists(streams(), min_size=1, max_size=4), st.integers(1, 1_000))
def test_only_the_proportion_of_weights_matters(some: list[Availability], factor: int) -> None:
    scaled = [
        Availability(one.basis, one.rows, one.moments_us, tuple(factor * w for w in one.weights))
        for one in some
    ]
    plain, other = latency_of(some, NOW_US, 100.0), latency_of(scaled, NOW_US, 100.0)
    assert (plain.p50_seconds, plain.p95_seconds, plain.basis) == (
        other.p50_seconds,
        other.p95_seconds,
        other.basis,
    )
    assert plain.overdue_ratio == pytest.approx(other.overdue_ratio)


@given(st.lists(MOMENTS, min_size=1, max_size=300), st.floats(0.001, 1_000))
def test_quantiles_describe_the_rows_they_were_taken_of(moments: list[int], goal: float) -> None:
    steps = np.linspace(0, 1, QUANTILE_STEPS + 1)
    quantiles = np.quantile(moments, steps, method="inverted_cdf").astype(np.int64)
    found = latency_of([Availability.of_quantiles(len(moments), quantiles.tolist())], NOW_US, goal)
    waits = np.sort((NOW_US - np.array(moments)) / 1e6)
    assert found.max_seconds == pytest.approx(waits[-1])
    # A quantile lies on a row: the same one, or its neighbour where the share falls between two.
    for share, value in ((0.5, found.p50_seconds), (0.95, found.p95_seconds)):
        assert value is not None
        below, upto = (waits < value - 1e-9).mean(), (waits <= value + 1e-9).mean()
        assert below <= share + 1e-9
        assert upto >= share - 1 / len(moments) - 1e-9
    assert found.overdue_ratio == pytest.approx((waits > goal).mean(), abs=0.5 / QUANTILE_STEPS + 0.01)


@pytest.mark.parametrize(
    ("bases", "basis"),
    [
        ([("record", 5), ("file", 5)], "file"),
        ([("record", 5), ("file", 0)], "record"),
        ([("file", 1), ("trigger", 1), ("record", 9)], "trigger"),
        ([("record", 0), ("file", 0)], "file"),
        ([], "trigger"),
    ],
)
def test_the_weakest_basis_of_streams_with_rows_is_reported(
    bases: list[tuple[LatencyBasis, int]], basis: LatencyBasis
) -> None:
    found = latency_of([Availability.at(one, rows, NOW_US) for one, rows in bases], NOW_US, None)
    assert found.basis == basis


def test_a_batch_without_rows_has_no_latency_and_nothing_overdue() -> None:
    empty = [Availability.at("file", 0, NOW_US)]
    assert latency_of(empty, NOW_US, 2.0) == LatencyProgress(2.0, None, None, None, None, "file")
    assert not is_overdue(latency_of(empty, NOW_US, 2.0))


def test_a_row_that_says_it_comes_from_the_future_has_no_negative_latency() -> None:
    found = latency_of([Availability.at("record", 3, NOW_US + 10**6)], NOW_US, 1.0)
    assert (found.p50_seconds, found.max_seconds, found.overdue_ratio) == (0.0, 0.0, 0.0)


def test_files_without_known_size_count_alike() -> None:
    two = Availability("file", 10, (NOW_US - 10**6, NOW_US - 3 * 10**6), (0.0, 0.0))
    found = latency_of([two], NOW_US, 2.0)
    assert (found.p50_seconds, found.p95_seconds, found.overdue_ratio) == (1.0, 3.0, 0.5)


@given(st.lists(streams(), min_size=1, max_size=5))
def test_the_p95_of_several_batches_is_no_less_than_that_of_their_rows(some: list[Availability]) -> None:
    batches = [(latency_of([one], NOW_US, None), one.rows) for one in some]
    bound, whole = p95_of_batches(batches), latency_of(some, NOW_US, None)
    assert bound is not None
    assert whole.p95_seconds is not None
    assert whole.max_seconds is not None
    assert whole.p95_seconds - 1e-9 <= bound <= whole.max_seconds + 1e-9


def test_batches_without_rows_have_no_p95() -> None:
    assert p95_of_batches([(latency_of([], NOW_US, None), 0)]) is None


def late_by(basis: LatencyBasis) -> LatencyProgress:
    return latency_of([Availability.at(basis, 3, NOW_US - 5 * 10**6)], NOW_US, 2.0)


def test_measured_rows_that_are_overdue_are_warned_of_with_what_they_waited_for() -> None:
    (warning,) = overdue_warnings(late_by("file"), 0.5)
    assert warning["code"] == ROWS_OVERDUE
    assert "p95 5.000 s of 2.000 s" in warning["message"]
    assert "waited 4.500 s at the source" in warning["message"]
    assert "shorter trigger" in warning["message"]
    (long,) = overdue_warnings(late_by("record"), 4.5)
    assert "shorter trigger" not in long["message"]


def test_rows_whose_availability_is_not_known_are_judged_but_not_warned_of() -> None:
    latency = late_by("trigger")
    assert is_overdue(latency)
    assert overdue_warnings(latency, 0.5) == []
    assert overdue_warnings(None, 0.5) == []
