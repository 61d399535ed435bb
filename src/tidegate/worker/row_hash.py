"""Hashes whole rows in a worker: equal rows have equal hashes, wherever and whenever they are computed.

    row = Σ over its columns of mixed(value, name)        nulls add nothing, whatever the order of columns

So rows hash alike when they arrive and long afterwards, when they are read back from a file, also if a column
that they do not have was added since. Values of a fixed width and texts are hashed by their bytes, lists by
their items in order, structures by their fields. Columns of other types add nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from zlib import crc32

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidegate.join.selective.selection import mixed
from tidegate.kernels import compiled

#: Multiplier of FNV-1a with 64 bits.
_PRIME = np.uint64(0x100000001B3)
_BASIS = np.uint64(0xCBF29CE484222325)


def row_hashes(columns: Mapping[str, pa.Array], rows: int) -> NDArray[np.uint64]:
    """One hash per row of these columns."""
    found = np.zeros(rows, np.uint64)
    for name, column in columns.items():
        values = mixed(_hashed(column), crc32(name.encode()))
        found += values if not column.null_count else np.where(_is_null(column), np.uint64(0), values)
    return found


def _hashed(column: pa.Array) -> NDArray[np.uint64]:
    """A hash per value; of nulls it means nothing."""
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        offsets = np.frombuffer(column.buffers()[1] or b"\0" * 4, np.int32)
        return _of_bytes(column, offsets[column.offset : column.offset + len(column) + 1])
    if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        offsets = np.frombuffer(column.buffers()[1] or b"\0" * 8, np.int64)
        return _of_bytes(column, offsets[column.offset : column.offset + len(column) + 1])
    if pa.types.is_map(kind):
        pairs = _hashed(column.keys) * _PRIME ^ row_hashes({"value": column.items}, len(column.items))
        return _folded(column.offsets.to_numpy().astype(np.int64), pairs)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        items = row_hashes({"item": column.values}, len(column.values))
        return _folded(column.offsets.to_numpy().astype(np.int64), items)
    if pa.types.is_struct(kind):
        fields = dict(zip((field.name for field in kind), column.flatten(), strict=True))
        return row_hashes(fields, len(column))
    return _of_words(column)


def _of_bytes(column: pa.Array, offsets: NDArray[np.integer]) -> NDArray[np.uint64]:
    if not len(column):
        return np.zeros(0, np.uint64)
    data = np.frombuffer(column.buffers()[2] or b"", np.uint8)
    return _folded(offsets.astype(np.int64), data)


def _of_words(column: pa.Array) -> NDArray[np.uint64]:
    """Of values with a fixed width; of other types nothing."""
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    try:
        width = column.type.bit_width
    except ValueError:
        return np.zeros(len(column), np.uint64)
    if not width or width % 8 or not len(column):
        return np.zeros(len(column), np.uint64)
    data = np.frombuffer(column.buffers()[1], np.uint8)
    values = data[column.offset * width // 8 : (column.offset + len(column)) * width // 8]
    words = np.zeros((len(column), -(-width // 64) * 8), np.uint8)
    words[:, : width // 8] = values.reshape(len(column), -1)
    found = np.zeros(len(column), np.uint64)
    for word in words.view(np.uint64).T:
        found = mixed(found ^ word, 0)
    return found


def _is_null(column: pa.Array) -> NDArray[np.bool_]:
    nulls: NDArray[np.bool_] = column.is_null().to_numpy(zero_copy_only=False)
    return nulls


@compiled
def _folded(offsets: NDArray[np.int64], parts: NDArray[np.unsignedinteger]) -> NDArray[np.uint64]:
    """One hash of the parts between two offsets each, in order (FNV-1a)."""
    found = np.empty(len(offsets) - 1, np.uint64)
    for row in range(len(found)):
        bits = _BASIS
        for place in range(offsets[row], offsets[row + 1]):
            bits = (bits ^ np.uint64(parts[place])) * _PRIME
        found[row] = bits
    return found
