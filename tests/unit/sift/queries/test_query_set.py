from __future__ import annotations

from tidegate.api.range_queries import RangeQuery
from tidegate.sift.queries.query_set import QuerySet


def test_weights_sum_up_to_one_and_keep_their_ratios() -> None:
    queries = [
        RangeQuery("a", "x < 1", weight=1, loss_sensitivity=1.5),
        RangeQuery("b", "x < 2 or x > 3", weight=3),
    ]
    found = QuerySet.of(queries, {"x": "number"})
    assert found.weights.tolist() == [0.25, 0.75]
    assert found.alphas.tolist() == [1.5, 1.0]
    assert found.names == ("a", "b")
    assert len(found) == found.boxes.queries == 2
    assert len(found.boxes) == 3


def test_weights_may_be_as_large_as_floats_are() -> None:
    found = QuerySet.of(
        [RangeQuery("a", "x < 1", weight=1e308), RangeQuery("b", "x < 2", weight=1e308)], {"x": "number"}
    )
    assert found.weights.tolist() == [0.5, 0.5]
