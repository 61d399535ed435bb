from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from tidegate.api.joins.conditions import pairwise
from tidegate.errors import BatchFailed
from tidegate.worker.join.predicates import ByFunction


def asked(answer: Any, count: int = 3) -> list[bool]:
    def compare(left: Any, right: Any) -> Any:
        return answer

    found: list[bool] = ByFunction(pairwise(compare, "x"))._asked(None, None, count).tolist()
    return found


@pytest.mark.parametrize(
    "answer",
    [
        [True, False, False],
        np.array([1, 0, 0]),
        pd.DataFrame({"x": [True, False, False]}),
        pd.Series([True, pd.NA, False], dtype="boolean"),
        pd.Series([True, None, np.nan], dtype=object),
    ],
)
def test_a_missing_answer_is_no_match(answer: Any) -> None:
    assert asked(answer) == [True, False, False]


@pytest.mark.parametrize("answer", [True, [True], [1.0, 0.0, 1.0], ["x", "y", "z"], [True, "y", None], None])
def test_what_is_not_one_truth_value_per_pair_is_refused(answer: Any) -> None:
    with pytest.raises(BatchFailed, match=r"JOIN_FUNCTION_FAILED.*'compare' over x failed"):
        asked(answer)
