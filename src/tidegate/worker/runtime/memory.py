"""Keeps freed memory in a worker process instead of returning it to the system after each array.

Kernels allocate and free hundreds of arrays of a few megabytes. By default the C library maps and unmaps each
of them, and the first access to every fresh page causes a page fault: on small machines up to half of a
kernel's time.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache

# Parameters of mallopt, from malloc.h.
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD = -1, -2, -3
#: Larger blocks are still mapped separately; this is the maximum that the C library allows.
MMAP_THRESHOLD_BYTES = 32 << 20
#: Freed memory that a worker may keep. Lower: more faults; higher: less memory for other processes.
KEPT_BYTES = 256 << 20


@cache
def keep_freed_memory() -> bool:
    """Call once per process; returns False if the C library lacks these parameters."""
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
