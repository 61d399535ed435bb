from __future__ import annotations

import math
from collections.abc import Callable

import pytest

import tidegate as tg
from tidegate.errors import FlowError


def test_a_query_counts_once_and_loses_as_much_quality_as_rows_unless_told_otherwise() -> None:
    query = tg.Query("airport", where="lat > 40.6")
    assert (query.weight, query.alpha) == (1.0, 1.0)


def test_alpha_may_be_above_one_as_in_the_paper_and_zero() -> None:
    assert tg.Query("a", "x > 1", alpha=2).alpha == 2
    assert tg.Query("a", "x > 1", alpha=0).alpha == 0


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: tg.Query("", "x > 1"), "needs a name"),
        (lambda: tg.Query(7, "x > 1"), "needs a name. Got: 7"),  # type: ignore[arg-type]
        (lambda: tg.Query("a", "  "), "Query 'a': it asks for nothing"),
        (lambda: tg.Query("a", None), "Query 'a': it asks for nothing. Got: where=None"),  # type: ignore[arg-type]
        *(
            (lambda weight=weight: tg.Query("a", "x > 1", weight), "Query 'a': its weight is not above zero")
            for weight in (0, -1.0, math.nan, math.inf, "2", None)
        ),
        *(
            (lambda alpha=alpha: tg.Query("a", "x > 1", alpha=alpha), "Query 'a': its alpha is no slope")
            for alpha in (-0.5, math.nan, math.inf, "2")
        ),
    ],
)
def test_a_query_that_means_nothing_is_refused_when_it_is_made(make: Callable[[], object], said: str) -> None:
    with pytest.raises(FlowError, match=said):
        make()
