"""The memory of a worker process: what it keeps, what its tasks may hold, and how much it has.

Kernels allocate and free hundreds of arrays of a few megabytes. By default the C library maps and unmaps each
of them, and the first access to every fresh page causes a page fault: on small machines up to half of a
kernel's time. So a worker keeps freed memory, up to a bound.
"""

from __future__ import annotations

import ctypes
import os
import resource
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import pyarrow as pa

from tidegate.model.reports import TaskMemory

# Parameters of mallopt, from malloc.h.
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD = -1, -2, -3
#: Larger blocks are still mapped separately; this is the maximum that the C library allows.
MMAP_THRESHOLD_BYTES = 32 << 20
#: Freed memory that a worker may keep. Lower: more faults; higher: less memory for other processes.
KEPT_BYTES = 256 << 20
#: A task handles received rows up to this part of the memory of its core at a time, and up to so many bytes.
#: Sort keys, columns and stored copies come on top: five to eight times as much. Larger rooms make more
#: memory necessary and save no time, because smaller arrays stay in the caches of the processor.
_ROOM_PART, _ROOM_LEAST, _ROOM_MOST = 32, 1 << 20, 64 << 20
#: A worker with more memory than this at the end of a task gives back what is free.
_GIVES_BACK_BYTES = 2 * KEPT_BYTES
#: Limits of control groups: of the second version and of the first.
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


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


@cache
def room_bytes() -> int:
    """What a task handles of its rows at a time: a part of the memory that there is for its core."""
    part = _memory_bytes() // (os.cpu_count() or 1) // _ROOM_PART
    return min(_ROOM_MOST, max(_ROOM_LEAST, part))


def give_back_memory() -> None:
    """Return free memory to the system, if a large task has left much of it."""
    if anonymous_bytes() > _GIVES_BACK_BYTES:
        pa.default_memory_pool().release_unused()
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)


def anonymous_bytes() -> int:
    """Memory of this process that no file backs; 0 if the system does not say. Takes microseconds."""
    try:
        with open("/proc/self/statm", "rb") as statm:
            _, resident, shared = map(int, statm.read().split()[:3])
    except (OSError, ValueError):
        return 0
    return (resident - shared) * resource.getpagesize()


def _memory_bytes() -> int:
    """The memory of the machine, or the least of the limits that are set for this process."""
    return min([os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), *_limits()])


def _limits() -> Iterator[int]:
    for path in _LIMITS:
        with suppress(OSError, ValueError):
            yield int(Path(path).read_text())
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    # `spark.executor.pyspark.memory` limits each worker, so it is not shared by the cores.
    if limit != resource.RLIM_INFINITY:
        yield limit * (os.cpu_count() or 1)


class MemoryMeter:
    """Measures the memory of one task."""

    def __init__(self) -> None:
        self.received_bytes = 0
        self._peak_bytes = 0

    def sample(self) -> None:
        """Look at the memory of the worker. Call it where much of it is in use."""
        self._peak_bytes = max(self._peak_bytes, anonymous_bytes())

    @property
    def measured(self) -> TaskMemory:
        """What was measured, for the report of the task."""
        self.sample()
        return TaskMemory(self.received_bytes, self._peak_bytes, room_bytes())
