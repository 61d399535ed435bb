"""How compiled loops are declared, for all stages: kept on disk where that is allowed, without Python's lock.

kernel(types…)   compiled when imported, for exactly these types: for loops that run in fresh workers, which
                 then find them on disk
compiled         compiled when first called, for whatever comes: for loops that one process runs again and
                 again
inlined          a part of kernels of the same file

A worker is a fresh process, and compiling one loop takes longer than a whole batch. So its kernels name their
argument types (`join/kernel_types.py`, `window/kernel_types.py`): they are compiled, or read from numba's
cache, when their module is imported and never during a batch. The types say "read-only, perhaps unaligned":
numba passes ordinary arrays to such a kernel unchanged, so one compiled version serves fresh arrays and
memory-mapped segments.

The cache lies next to the source. Where that folder is read-only, numba uses its own cache folder in the
user's home (or NUMBA_CACHE_DIR); where nothing can be written, kernels are compiled in memory. Each file is
self-contained: numba notices a change of the file that holds a kernel, not of the files that it calls into.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

_Function = TypeVar("_Function", bound=Callable[..., Any])


def kernel(*arguments: Any) -> Callable[[_Function], _Function]:
    """Compile for exactly these argument types; the caller brings its arrays into shape first."""
    return lambda function: _kept(function, [arguments])


def compiled(function: _Function) -> _Function:
    """For plain loops over arrays; everything they call must be compiled as well."""
    return _kept(function)


def inlined(function: _Function) -> _Function:
    """A part of kernels of the same file; never called from Python, so it is not compiled on its own."""
    return cast(_Function, njit(nogil=True)(function))


def _kept(function: _Function, signatures: list[Any] | None = None) -> _Function:
    try:
        return cast(_Function, njit(signatures, cache=True, nogil=True)(function))
    except (RuntimeError, OSError) as error:
        if isinstance(error, RuntimeError) and "cannot cache" not in str(error):
            raise
        # A folder that cannot be written to: compiled anew by every process, and just as right.
        return cast(_Function, njit(signatures, nogil=True)(function))
