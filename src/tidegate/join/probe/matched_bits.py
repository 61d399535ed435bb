"""Records which stored rows have found a partner: one bit per row of a piece, for outer, semi and anti joins.

Bits are laid out as by `np.packbits(…, bitorder="little")`: row p is bit p % 8 of byte p // 8. Bits are set
and never cleared, so `union` may combine the sets of different instances in any order and any number of times
with the same result.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import REPORT_STATE_BUG, StateError
from tidegate.join.kernel_types import BITS, NEW_BITS, NUMBER, POSITIONS, kernel


def no_bits(rows: int) -> NDArray[np.uint8]:
    """An empty set over this many rows."""
    return np.zeros((rows + 7) // 8, np.uint8)


def set_bits(bits: NDArray[np.uint8], positions: NDArray[np.int64]) -> None:
    """Set, in place, the bit of every position; positions may repeat."""
    outside = _set(bits, np.ascontiguousarray(positions, dtype=np.int64))
    if outside >= 0:
        raise StateError(
            "A matched row lies outside the matched bits of its piece",
            code="INTERNAL_POSITION_OUT_OF_BOUNDS",
            got=f"row {positions[outside]} of at most {8 * bits.size}",
            do=REPORT_STATE_BUG,
        )


def unset_positions(bits: NDArray[np.uint8], start: int, stop: int) -> NDArray[np.int64]:
    """Rows start … stop - 1 whose bit is not set, ascending."""
    if not 0 <= start <= stop <= 8 * bits.size:
        raise StateError(
            "The requested rows lie outside the matched bits of their piece",
            code="INTERNAL_POSITION_OUT_OF_BOUNDS",
            got=f"rows {start} to {stop} of at most {8 * bits.size}",
            do=REPORT_STATE_BUG,
        )
    positions: NDArray[np.int64] = _unset(np.ascontiguousarray(bits, dtype=np.uint8), start, stop)
    return positions


def positions(bits: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Rows whose bit is set, ascending."""
    return np.flatnonzero(np.unpackbits(bits, bitorder="little"))


def count(bits: NDArray[np.uint8]) -> int:
    """How many bits are set."""
    return int(np.bitwise_count(bits).sum(dtype=np.int64))


def count_between(bits: NDArray[np.uint8], start: int, stop: int) -> int:
    """How many bits of the rows start … stop - 1 are set."""
    flags = np.unpackbits(bits[start // 8 : -(-stop // 8)], bitorder="little")
    return int(np.count_nonzero(flags[start % 8 : start % 8 + stop - start]))


def union(a: NDArray[np.uint8], b: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The bits set in either set, as a new array."""
    if a.size != b.size:
        raise StateError(
            "The matched bits of a piece differ in length",
            code="INTERNAL_ARRAYS_INCONSISTENT",
            got=f"{a.size} and {b.size} bytes",
            do=REPORT_STATE_BUG,
        )
    return np.bitwise_or(a, b)


@kernel(NEW_BITS, POSITIONS)
def _set(bits: Any, positions: Any) -> Any:
    """-1, or the index of the first position outside the bits; the positions before it have been set."""
    rows = 8 * bits.size
    for index in range(positions.size):
        position = positions[index]
        if position < 0 or position >= rows:
            return index
        bits[position >> 3] |= np.uint8(1 << (position & 7))
    return -1


@kernel(BITS, NUMBER, NUMBER)
def _unset(bits: Any, start: Any, stop: Any) -> Any:
    positions = np.empty(stop - start + 1, np.int64)
    found = 0
    for position in range(start, stop):
        # Written without a branch and kept where the bit is not set: the branch would be mispredicted often.
        positions[found] = position
        found += 1 - int((bits[position >> 3] >> (position & 7)) & 1)
    return positions[:found].copy()
