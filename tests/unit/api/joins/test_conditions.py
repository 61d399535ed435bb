from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tidegate.api.joins.conditions import inner_product, overlap, pairwise
from tidegate.errors import FlowError


def near(left: Any, right: Any) -> Any:
    return left == right


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: overlap("items"), "takes one threshold"),
        (lambda: overlap("items", 2, jaccard=0.5), "takes one threshold"),
        (lambda: overlap("items", 0), "JOIN_SET_THRESHOLD.*tg.overlap"),
        (lambda: overlap("items", True), "not a whole number"),
        (lambda: overlap("items", 1.5), "not a whole number"),  # type: ignore[arg-type]
        (lambda: overlap("items", jaccard=0.0), "above 0"),
        (lambda: overlap("items", jaccard=1.5), "JOIN_SET_THRESHOLD.*at most 1"),
        (lambda: overlap(["a", "b"], 1), "one column of each side"),  # type: ignore[arg-type]
        (lambda: overlap("items", 1, index="tree"), "Unknown index"),  # type: ignore[arg-type]
        (lambda: inner_product("w", at_least=0.0), "above 0"),
        (lambda: inner_product("w", at_least="much"), "not a number"),  # type: ignore[arg-type]
        (lambda: pairwise("near", "x"), "needs a function"),  # type: ignore[arg-type]
        (lambda: pairwise(near, []), "needs the names of columns"),
        (lambda: pairwise(near, None), "needs the names of columns. Got: None"),  # type: ignore[arg-type]
        (lambda: pairwise(near, [3]), r"needs the names of columns. Got: \[3\]"),  # type: ignore[list-item]
        (lambda: pairwise(near, {"x": None}), "needs the names of columns"),  # type: ignore[dict-item]
        (lambda: pairwise(near, ""), "needs the names of columns"),
        (lambda: pairwise(abs, "x"), r"does not take two arguments. Got: abs\(x, /\)"),  # type: ignore[arg-type]
        (lambda: overlap("", 2), "one column of each side"),
        (lambda: overlap({"items": None}, 2), "one column of each side"),  # type: ignore[dict-item]
    ],
)
def test_a_condition_that_means_nothing_is_refused(make: Callable[[], object], said: str) -> None:
    with pytest.raises(FlowError, match=said):
        make()


def test_columns_may_be_called_differently() -> None:
    assert overlap({"items": "tags"}, 2).columns == (("items", "tags"),)
    assert pairwise(near, {"x": "y", "lat": "lat"}).columns == (("x", "y"), ("lat", "lat"))


def test_one_name_means_series_and_a_list_means_frames() -> None:
    assert pairwise(near, "x").single
    assert not pairwise(near, ["x"]).single


def test_what_a_checkpoint_relies_on_names_threshold_and_columns() -> None:
    assert overlap({"items": "tags"}, 2).describe() == "Overlap(items, tags, at_least=2)"
    assert pairwise(near, ["x"]).describe() == "pairwise(near, x=x)"
