from __future__ import annotations

import math
from collections.abc import Callable

import pytest

import tidegate as tg
from tidegate.errors import FlowError


def test_a_query_counts_once_and_loses_as_much_quality_as_rows_unless_told_otherwise() -> None:
    query = tg.RangeQuery("airport", where="lat > 40.6")
    assert (query.weight, query.loss_sensitivity) == (1.0, 1.0)


def test_alpha_may_be_above_one_as_in_the_paper_and_zero() -> None:
    assert tg.RangeQuery("a", "x > 1", loss_sensitivity=2).loss_sensitivity == 2
    assert tg.RangeQuery("a", "x > 1", loss_sensitivity=0).loss_sensitivity == 0


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: tg.RangeQuery("", "x > 1"), "QUERY_NAME_MISSING"),
        (lambda: tg.RangeQuery(7, "x > 1"), "QUERY_NAME_MISSING.*Got: 7"),  # type: ignore[arg-type]
        (lambda: tg.RangeQuery("a", "  "), "QUERY_PREDICATE_MISSING"),
        (lambda: tg.RangeQuery("a", None), "QUERY_PREDICATE_MISSING.*Got: where=None"),  # type: ignore[arg-type]
        *(
            (
                lambda weight=weight: tg.RangeQuery("a", "x > 1", weight=weight),
                "QUERY_WEIGHT_RANGE",
            )
            for weight in (0, -1.0, math.nan, math.inf, "2", None)
        ),
        *(
            (
                lambda alpha=alpha: tg.RangeQuery("a", "x > 1", loss_sensitivity=alpha),
                "QUERY_SENSITIVITY_RANGE",
            )
            for alpha in (-0.5, math.nan, math.inf, "2")
        ),
    ],
)
def test_a_query_that_means_nothing_is_refused_when_it_is_made(make: Callable[[], object], said: str) -> None:
    with pytest.raises(FlowError, match=said):
        make()
