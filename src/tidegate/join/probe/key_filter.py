"""Which probing rows can be spared the search: rows whose key is certainly not among the stored ones.

Ours, for the controller's third step: skip what cannot matter before anything is shed. A Bloom filter with
one hash function over the codes of one stored run, eight to sixteen bits a row:

    code  ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒ 0110101001    its lowest bits name one bit of the filter
                                       ╰────┬───╯
    bits  0 0 1 0 … 1 …                     ╰──▶ 0: no stored row has this code. 1: perhaps

Codes are mixed hashes already and partitions are made by their highest bits, so their lowest ones are as good
as a hash of their own, on whatever partitions an instance has. One function is enough: a row that is let
through in vain (one of nine to seventeen) costs a search, no wrong result.

Only the search is skipped; such a row is stored all the same, because its partners may be yet to come.

Guarantee: every probing row whose code is stored is named, whatever the codes are. Cost: a test is a fraction
of a nanosecond to two, whatever is stored; searching walks over stored rows (`meet.py`), so the filter pays
where those are many more than the probing ones, as they are in windows much longer than a batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tidegate.join.kernel_types import BITS, CODES, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Bits of the filter per stored row, at least; twice as many at most.
BITS_PER_ROW = 8
#: A filter is worth asking where stored rows are so many times the probing ones. If every row is let
#: through, that is a tenth more than searching at once; if none is, a fifth to a fortieth of it.
WORTH_FROM = 4


@dataclass(frozen=True, eq=False)
class KeyFilter:
    """The codes of some stored rows, roughly."""

    #: Bit p is bit p % 8 of byte p // 8. A power of two of them.
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
    """Are stored rows so many that looking into a filter first is the shorter way?"""
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
        # Written in any case: a row that is spared is overwritten by the next one.
        rows[found] = row
        found += np.uint64((bits[place >> np.uint64(3)] >> np.uint8(place & np.uint64(7))) & np.uint8(1))
    return rows[:found].copy()
