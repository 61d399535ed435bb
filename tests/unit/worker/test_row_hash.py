"""Hashes of whole rows: equal for equal rows, also read back, sliced or taken; different for others."""

from __future__ import annotations

import decimal
import io
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tidegate.worker.row_hash import row_hashes

KINDS: dict[str, tuple[Any, list[Any]]] = {
    "text": (pa.string(), ["", "a", "b", "ab", "ba", "äöü" * 9]),
    "large text": (pa.large_string(), ["", "a", "b", "ab"]),
    "bytes": (pa.binary(), [b"", b"\0", b"\0\0", b"a"]),
    "bool": (pa.bool_(), [True, False]),
    "small": (pa.int8(), [-1, 0, 1, 127]),
    "date": (pa.date32(), [0, 1, 20000]),
    "time": (pa.timestamp("us", "UTC"), [0, 1, 10**15]),
    "double": (pa.float64(), [0.0, 1.5, -1.5, float("inf")]),
    "decimal": (pa.decimal128(38, 2), [decimal.Decimal(one) for one in ("0.01", "9" * 20, "-1")]),
    "list": (pa.list_(pa.int64()), [[], [0], [0, 0], [1, 2], [2, 1], [None]]),
    "lists": (pa.list_(pa.list_(pa.string())), [[], [[]], [["a"], ["b"]], [["a", "b"]]]),
    "structure": (
        pa.struct({"a": pa.int64(), "b": pa.string()}),
        [{"a": 1, "b": None}, {"a": None, "b": "1"}],
    ),
    "map": (pa.map_(pa.string(), pa.int64()), [[], [("a", 1)], [("a", 2)], [("b", 1)], [("a", None)]]),
}


def read_back(batch: pa.RecordBatch) -> pa.RecordBatch:
    file = io.BytesIO()
    with pa.ipc.new_file(file, batch.schema) as writer:
        writer.write_batch(batch)
    return pa.ipc.open_file(file.getvalue()).get_batch(0)


@pytest.mark.parametrize("name", KINDS)
def test_values_of_every_type_are_told_apart_and_hash_alike_wherever_they_lie(name: str) -> None:
    kind, values = KINDS[name]
    whole = pa.array([values[-1], None, *values, None], kind)
    hashes = row_hashes({"c": whole}, len(whole))
    assert len(set(hashes[2:].tolist())) == len(values) + 1
    assert hashes[0] == hashes[-2]
    assert hashes[1] == hashes[-1] == 0
    assert (row_hashes({"c": whole.slice(2)}, len(values) + 1) == hashes[2:]).all()
    back = np.arange(len(whole))[::-1]
    assert (row_hashes({"c": whole.take(pa.array(back))}, len(whole)) == hashes[back]).all()
    stored = read_back(pa.record_batch({"c": whole}))
    assert (row_hashes({"c": stored.column(0)}, len(whole)) == hashes).all()


def test_columns_count_by_name_in_any_order_and_one_that_was_added_changes_nothing() -> None:
    one, other = pa.array([1, 2, 3]), pa.array([3, 2, 1])
    hashes = row_hashes({"a": one, "b": other}, 3)
    assert (hashes == row_hashes({"b": other, "a": one}, 3)).all()
    assert (hashes[[0, 2]] != row_hashes({"a": other, "b": one}, 3)[[0, 2]]).all()
    assert (hashes == row_hashes({"a": one, "b": other, "new": pa.nulls(3, pa.string())}, 3)).all()
    assert row_hashes({}, 0).size == row_hashes({"c": pa.array([], pa.string())}, 0).size == 0
