"""A Bloom filter over the stored codes: skips the search for probing rows whose key is certainly not stored.

Ours, for the controller's third step: skip work that cannot change the result before shedding anything. The
filter has one hash function over the codes of one stored run, and eight to sixteen bits per row:

    code  ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒ 0110101001    its lowest bits name one bit of the filter
                                       ╰────┬───╯
    bits  0 0 1 0 … 1 …                     ╰──▶ 0: no stored row has this code. 1: perhaps

Codes are mixed hashes already, and partitions are made from their highest bits. So the lowest bits serve as
the hash, whatever partitions an instance owns. One hash function is enough: a false positive (one row of nine
to seventeen) costs a search and never a wrong result.

Only the search is skipped. The row is stored all the same, because its partners may still arrive.

Guarantee: every probing row whose code is stored passes the filter, for any codes. Cost: a test takes a
fraction of a nanosecond to two nanoseconds, independent of the number of stored rows. A search steps over
stored rows (`meet.py`), so the filter pays where they far outnumber the probing rows: windows much longer
than a batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.join.kernel_types import BITS, CODES, kernel

#: Bits of the filter per stored row, at least; twice as many at most.
BITS_PER_ROW = 8
#: Use the filter where stored rows outnumber probing rows this many times. If every row passes, it adds a
#: tenth to the cost of searching; if none passes, it cuts that cost to between a fifth and a fortieth.
WORTH_FROM = 4


@dataclass(frozen=True, eq=False)
class KeyFilter:
    """A Bloom filter over the codes of some stored rows."""

    #: Bit p is bit p % 8 of byte p // 8. The number of bits is a power of two.
    bits: NDArray[np.uint8]

    @classmethod
    def of(cls, codes: NDArray[np.uint64]) -> KeyFilter:
        size = 1 << max(3, (BITS_PER_ROW * codes.size - 1).bit_length())
        return cls(_marked(np.ascontiguousarray(codes, dtype=np.uint64), np.zeros(size >> 3, np.uint8)))

    def may_hold(self, codes: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Positions of the codes that may be stored, ascending."""
        found: NDArray[np.int64] = _found(np.ascontiguousarray(codes, dtype=np.uint64), self.bits)
        return found


def worth_asking(probing: int, stored: int) -> bool:
    """True if testing the filter before searching is likely to be cheaper."""
    return stored >= WORTH_FROM * probing


@kernel(CODES, BITS)
def _marked(codes: Any, none: Any) -> Any:
    bits = none.copy()
    lowest = np.uint64(8 * bits.size - 1)
    for row in range(codes.size):
        place = codes[row] & lowest
        bits[place >> np.uint64(3)] |= np.uint8(1) << np.uint8(place & np.uint64(7))
    return bits


@kernel(CODES, BITS)
def _found(codes: Any, bits: Any) -> Any:
    lowest = np.uint64(8 * bits.size - 1)
    rows = np.empty(codes.size + 1, np.int64)
    found = np.uint64(0)
    for row in range(codes.size):
        place = codes[row] & lowest
        # Written without a branch: the next row overwrites a row that the filter rejects.
        rows[found] = row
        found += np.uint64((bits[place >> np.uint64(3)] >> np.uint8(place & np.uint64(7))) & np.uint8(1))
    return rows[:found].copy()
