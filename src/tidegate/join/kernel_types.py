"""How the compiled loops of the join are declared: once, with fixed types, kept on disk.

A worker is a fresh process, and compiling one loop takes longer than a whole batch. So every kernel names
its argument types (it is compiled, or read from numba's cache, when the module is imported, never in the
middle of a batch) and is cached next to its source. Where that folder cannot be written, numba takes its
own cache folder in the user's home (or NUMBA_CACHE_DIR); where nothing at all can be written, we compile in
memory.

The types say "read-only, perhaps unaligned": numba passes ordinary arrays to such a kernel as they are, so
one compiled version serves fresh arrays and memory-mapped segments alike. Each file is self-contained:
numba notices a change of the file that a kernel stands in, not of the files that it calls into.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic

from tidegate.kernels import inlined as inlined
from tidegate.kernels import kernel as kernel

CODES = types.Array(types.uint64, 1, "C", readonly=True, aligned=False)
TIMES = types.Array(types.int64, 1, "C", readonly=True, aligned=False)
#: Positions and counts are int64 as times are: one type, one compiled version.
POSITIONS = TIMES
BITS = types.Array(types.uint8, 1, "C", readonly=True, aligned=False)
WEIGHTS = types.Array(types.float64, 1, "C", readonly=True, aligned=False)
#: Places within one run of stored rows: half as many bytes as positions, and so half the memory traffic.
PLACES = types.Array(types.int32, 1, "C", readonly=True, aligned=False)
#: Bitsets: a word per line, a row per column, so that the same word of neighbouring rows is adjacent.
WORDS = types.Array(types.uint64, 2, "C", readonly=True, aligned=False)
#: What a kernel may change in place.
NEW_CODES = types.Array(types.uint64, 1, "C")
NEW_TIMES = types.Array(types.int64, 1, "C")
NEW_BITS = types.Array(types.uint8, 1, "C")
NEW_PLACES = types.Array(types.int32, 1, "C")
NEW_WEIGHTS = types.Array(types.float64, 1, "C")
NUMBER = types.int64
REAL = types.float64


def _population_count(_: Any, bits: Any) -> Any:
    """How many bits of a word are set: one instruction, which plain Python has no name for."""

    def build(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), build


#: For kernels only: the number of bits set in a word of 64.
population_count: Any = intrinsic(_population_count)
