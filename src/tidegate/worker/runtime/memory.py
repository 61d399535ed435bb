"""Keeps freed memory in a worker process instead of giving it back to the system between arrays.

Kernels make and drop arrays of a few megabytes by the hundred. By default the C library maps and unmaps each
of them, and the first touch of every fresh page costs a fault: on small machines up to half of a kernel's
time.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache

# Parameters of mallopt, from malloc.h.
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD = -1, -2, -3
#: Larger blocks are still mapped one by one; the C library allows no more than this.
MMAP_THRESHOLD_BYTES = 32 << 20
#: How much freed memory a worker may keep. Lower: more faults; higher: memory that others cannot have.
KEPT_BYTES = 256 << 20


@cache
def keep_freed_memory() -> bool:
    """Once per process; False where the C library has no such knobs."""
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    settings = (
        (_M_MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES),
        (_M_TRIM_THRESHOLD, KEPT_BYTES),
        (_M_TOP_PAD, 16 << 20),
    )
    return all(mallopt(name, value) == 1 for name, value in settings)
