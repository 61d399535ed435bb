from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import datasketches
import numpy as np
import pyarrow as pa
import pytest

from tidegate.window.aggregate.aggregates import Merge
from tidegate.window.aggregate.closing import Stretches
from tidegate.worker.window.sketch_columns import estimates, merged_sketches, quantiles

#: Panes, some of them without a value; windows of one, of two and of three, as they slide.
PANES = [range(0), range(100), range(0), range(50, 200)]
WINDOWS = Stretches(np.arange(3), np.array([0, 1, 1]), np.array([1, 3, 4]))


def hll(values: Iterable[int]) -> bytes:
    sketch = datasketches.hll_sketch(12, datasketches.tgt_hll_type.HLL_8)
    for value in values:
        sketch.update(value)
    return bytes(sketch.serialize_compact())


def kll(values: Iterable[int]) -> bytes:
    sketch = datasketches.kll_doubles_sketch(500)
    for value in values:
        sketch.update(float(value))
    return bytes(sketch.serialize())


def test_distinct_values_of_panes_are_counted_once() -> None:
    column = pa.array([hll(pane) for pane in PANES])
    assert estimates(column, WINDOWS).to_pylist() == [
        0,
        pytest.approx(100, rel=0.02),
        pytest.approx(200, rel=0.02),
    ]


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        (pa.float64(), [None, 49.0, 87.0]),
        (pa.int32(), [None, 49, 87]),
        (pa.decimal128(9, 2), [None, Decimal("49.00"), Decimal("87.00")]),
        (pa.list_(pa.float32()), [None, [0.0, 49.0], [0.0, 87.0]]),
    ],
    ids=str,
)
def test_quantiles_are_of_the_type_of_their_values_and_null_where_there_are_none(
    kind: pa.DataType, found: list[Any]
) -> None:
    column = pa.array([kll(pane) for pane in PANES])
    ranks = [0.0, 0.5] if pa.types.is_list(kind) else [0.5]
    result = quantiles(column, WINDOWS, ranks, kind)
    assert result.type == kind
    assert result.to_pylist() == found
    first = Stretches(*np.array([[0], [0], [1]]))
    assert quantiles(column, first, ranks, kind).to_pylist() == [None]


@pytest.mark.parametrize(("merge", "made"), [(Merge.DISTINCT, hll), (Merge.QUANTILES, kll)])
def test_merged_sketches_are_sketches_again(merge: Merge, made: Any) -> None:
    column = pa.array([made(pane) for pane in PANES])
    merged = merged_sketches(merge, column, WINDOWS)
    assert merged.type == column.type
    each = Stretches(np.arange(3), np.arange(3), np.arange(1, 4))
    if merge is Merge.DISTINCT:
        assert estimates(merged, each).equals(estimates(column, WINDOWS))
    else:
        for ranks in ([0.3], [0.9]):
            twice, once = ((merged, each), (column, WINDOWS))
            assert quantiles(*twice, ranks, pa.int64()).equals(quantiles(*once, ranks, pa.int64()))
