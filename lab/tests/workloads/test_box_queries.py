from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tidegate.api.range_queries import RangeQuery
from tidegate.errors import FlowError
from tidegate.sift.queries.axes import Axis
from tidegate.sift.queries.query_set import QuerySet
from tidegate_lab.workloads.box_queries import queries_of_boxes

AXES = (Axis("x"), Axis("y"))
UNIT = ([[0.0, 0.0]], [[1.0, 1.0]])


def test_boxes_that_exist_already_need_no_sql() -> None:
    made = queries_of_boxes(
        AXES, [[0.0, -1.0], [2.0, 3.0]], [[1.0, 1.0], [4.0, float("inf")]], weights=[1, 3]
    )
    read = QuerySet.of(
        [
            RangeQuery("0", "x >= 0 and x < 1 and y >= -1 and y < 1"),
            RangeQuery("1", "x >= 2 and x < 4 and y >= 3", weight=3),
        ],
        {"x": "number", "y": "number"},
    )
    assert made.boxes.low.tolist() == read.boxes.low.tolist()
    assert [bound.tolist() for bound in made.boxes.extents] == [
        bound.tolist() for bound in read.boxes.extents
    ]
    assert (made.names, made.weights.tolist()) == (read.names, read.weights.tolist())


def test_several_boxes_may_have_one_owner() -> None:
    found = queries_of_boxes(AXES[:1], [[0], [2], [0]], [[1], [4], [9]], owner=[0, 0, 1], names=["a", "b"])
    assert len(found) == 2
    assert found.boxes.owner.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"low": [0.0, 0.0]}, "a line per box and a column per axis"),
        ({"low": np.empty((0, 2)), "high": np.empty((0, 2))}, "a line per box"),
        ({"high": [[1.0, 0.0]]}, r"Box 0 is empty. Got: from \[0.0, 0.0\] to \[1.0, 0.0\]"),
        ({"high": [[1.0, np.nan]]}, "Box 0 is empty"),
        ({"owner": [1]}, "every query from 0 on has a box"),
        ({"owner": [-1]}, "every query from 0 on has a box"),
        ({"owner": [0, 0]}, "every query from 0 on has a box"),
        ({"names": ["a", "b"]}, "a name of its own"),
        ({"weights": [0.0]}, "finite number above 0. Got: 0.0"),
        ({"weights": [np.nan]}, "finite number above 0"),
        ({"weights": [1.0, 1.0]}, "one of weights per query"),
        ({"alphas": [-1.0]}, "from 0 up. Got: -1.0"),
    ],
)
def test_boxes_that_mean_nothing_are_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(FlowError, match=said):
        queries_of_boxes(AXES, **{"low": UNIT[0], "high": UNIT[1], **given})
