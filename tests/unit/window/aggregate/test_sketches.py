from __future__ import annotations

import datasketches
import pytest

from tidegate.errors import FlowError
from tidegate.window.aggregate.sketches import hll_size, kll_size


@pytest.mark.parametrize("rsd", [0.4, 0.05, 0.03, 0.01, 0.001])
def test_a_sketch_of_distinct_values_is_the_smallest_that_is_exact_enough(rsd: float) -> None:
    size = hll_size(rsd)
    assert 1.04 / 2 ** (size / 2) <= rsd
    assert size == 7 or 1.04 / 2 ** ((size - 1) / 2) > rsd


@pytest.mark.parametrize("accuracy", [1, 10, 100, 1000, 10_000, 20_000])
def test_a_sketch_of_quantiles_is_the_smallest_that_is_exact_enough(accuracy: int) -> None:
    size, error = kll_size(accuracy), datasketches.kll_doubles_sketch.get_normalized_rank_error
    assert error(size, False) <= 1 / accuracy * 1.001
    assert size == 8 or error(size - 1, False) > 1 / accuracy * 0.999


def test_spark_s_defaults_are_kept() -> None:
    assert hll_size() == 9
    assert kll_size() == kll_size(10_000)


@pytest.mark.parametrize("rsd", [0.0, -1.0, 0.0001, 1.0, float("nan")])
def test_errors_that_no_sketch_has_are_refused(rsd: float) -> None:
    with pytest.raises(
        FlowError, match=r"AGGREGATE_ACCURACY_INVALID.*Give a relative standard deviation from 0\.0007 to 1"
    ):
        hll_size(rsd)


@pytest.mark.parametrize("accuracy", [0, 0.5, 30_000, float("nan")])
def test_accuracies_that_no_sketch_has_are_refused(accuracy: float) -> None:
    with pytest.raises(FlowError, match=r"AGGREGATE_ACCURACY_INVALID.*accuracy from 1 to 20993"):
        kll_size(accuracy)
