"""Random texts as the reference makes them, but for many rows at once: bytes are drawn flat, then cut."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]
SHORTEST = 3
#: One of so many characters is the special one.
SPECIAL_ONE_OF = 13
#: `extra` columns are cut out of one long random text, as in the reference.
POOL_BYTES = 1 << 20
_A = ord("a")


def cut(flat: Bytes, lengths: Ints) -> pa.Array:
    """The texts that lie one behind the other in `flat`."""
    offsets = np.zeros(lengths.size + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pa.StringArray.from_buffers(lengths.size, pa.py_buffer(offsets), pa.py_buffer(flat))


def words(count: int, longest: int, rng: np.random.Generator, special: str = " ") -> pa.Array:
    """From 3 to `longest` - 1 small letters with some special characters; blanks at the ends go."""
    lengths = rng.integers(SHORTEST, longest, count)
    size = int(lengths.sum())
    flat = rng.integers(_A, _A + 26, size, dtype=np.uint8)
    flat[rng.integers(0, SPECIAL_ONE_OF, size, dtype=np.uint8) == 0] = ord(special)
    return pc.utf8_trim_whitespace(cut(flat, lengths))


def extras(taken: Ints, wanted: int, rng: np.random.Generator) -> pa.Array:
    """What fills rows of `taken` bytes up to `wanted` bytes on average, give or take a fifth of the rest."""
    rest = np.maximum(wanted - taken, 0)
    spread = np.rint(rest * 0.2).astype(np.int64)
    lengths = rest - spread + rng.integers(0, np.maximum(2 * spread, 1))
    pool = _pool()
    starts = rng.integers(0, pool.size - lengths)
    # Where each byte comes from: its place in the column, moved to the start of its row's text.
    moved = starts - (np.cumsum(lengths) - lengths)
    places = np.arange(int(lengths.sum()), dtype=np.int32) + np.repeat(moved.astype(np.int32), lengths)
    return cut(pool[places], lengths)


@lru_cache(maxsize=1)
def _pool() -> Bytes:
    return np.random.default_rng(0).integers(_A, _A + 26, POOL_BYTES, dtype=np.uint8)


def card_numbers(count: int, rng: np.random.Generator) -> pa.Array:
    """Four groups of four digits."""
    text = np.full((count, 19), ord(" "), np.uint8)
    for group in range(4):
        text[:, 5 * group : 5 * group + 4] = rng.integers(ord("0"), ord("9") + 1, (count, 4), np.uint8)
    return cut(text.ravel(), np.full(count, 19))


def one_of(names: pa.Array, count: int, rng: np.random.Generator) -> pa.Array:
    return names.take(pa.array(rng.integers(0, len(names), count)))


def lengths_of(*columns: pa.Array) -> Ints:
    """Characters of the texts of each row."""
    sizes = [pc.utf8_length(column).to_numpy(zero_copy_only=False).astype(np.int64) for column in columns]
    return np.asarray(sum(sizes[1:], sizes[0]))
