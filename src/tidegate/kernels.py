"""How compiled loops are declared, for all stages: kept on disk where that is allowed, without Python's lock.

kernel(types…)   compiled when imported, for exactly these types: for loops that run in fresh workers, which
                 then find them on disk
compiled         compiled when first called, for whatever comes: for loops that one process runs again and
                 again
inlined          a part of kernels of the same file
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
