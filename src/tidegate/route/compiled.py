"""How the compiled loops of routing are declared: compiled when first called, kept on disk where allowed.

Decisions are made by one process, once a batch, so that a loop may be compiled late (unlike those of the
join, which run in fresh workers).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

_Function = TypeVar("_Function", bound=Callable[..., Any])


def compiled(function: _Function) -> _Function:
    """For plain loops over arrays; everything they call must be compiled as well."""
    try:
        return cast(_Function, njit(cache=True)(function))
    except RuntimeError as error:
        if "cannot cache" not in str(error):
            raise
        return cast(_Function, njit(function))
