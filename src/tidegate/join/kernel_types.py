"""The argument types of the compiled loops of joins; `kernels.py` says why they are fixed."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic

from tidegate.kernels import inlined as inlined
from tidegate.kernels import kernel as kernel

CODES: Any = types.Array(types.uint64, 1, "C", readonly=True, aligned=False)
TIMES: Any = types.Array(types.int64, 1, "C", readonly=True, aligned=False)
#: Positions and counts are int64 as times are: one type, one compiled version.
POSITIONS: Any = TIMES
BITS: Any = types.Array(types.uint8, 1, "C", readonly=True, aligned=False)
WEIGHTS: Any = types.Array(types.float64, 1, "C", readonly=True, aligned=False)
#: Places within one run of stored rows: half as many bytes as positions, and so half the memory traffic.
PLACES: Any = types.Array(types.int32, 1, "C", readonly=True, aligned=False)
#: Bitsets: a word per line, a row per column, so that the same word of neighbouring rows is adjacent.
WORDS: Any = types.Array(types.uint64, 2, "C", readonly=True, aligned=False)
#: Arrays that a kernel may change in place.
NEW_CODES: Any = types.Array(types.uint64, 1, "C")
NEW_TIMES: Any = types.Array(types.int64, 1, "C")
NEW_BITS: Any = types.Array(types.uint8, 1, "C")
NEW_PLACES: Any = types.Array(types.int32, 1, "C")
NEW_WEIGHTS: Any = types.Array(types.float64, 1, "C")
NUMBER: Any = types.int64
REAL: Any = types.float64


def _population_count(_: Any, bits: Any) -> Any:
    """The number of bits set in a word: one processor instruction that Python does not offer."""

    def build(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), build


#: For kernels only: the number of bits set in a word of 64.
population_count: Any = intrinsic(_population_count)
