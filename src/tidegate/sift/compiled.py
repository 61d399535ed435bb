"""How the compiled loops of sifting are declared: compiled when first called, kept on disk where allowed.

Loops run without the interpreter's lock, so that threads of one worker can share the rows of a batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

_Function = TypeVar("_Function", bound=Callable[..., Any])


def compiled(function: _Function) -> _Function:
    """For plain loops over arrays; everything they call must be compiled as well."""
    try:
        return cast(_Function, njit(cache=True, nogil=True)(function))
    except RuntimeError as error:
        if "cannot cache" not in str(error):
            raise
        return cast(_Function, njit(nogil=True)(function))
