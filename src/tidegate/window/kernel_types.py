"""The argument types of the compiled loops of windows; `kernels.py` says why they are fixed."""

from __future__ import annotations

from typing import Any

from numba import types

from tidegate.kernels import inlined as inlined
from tidegate.kernels import kernel as kernel

INTEGERS: Any = types.Array(types.int64, 1, "C", readonly=True, aligned=False)
REALS: Any = types.Array(types.float64, 1, "C", readonly=True, aligned=False)
WORDS: Any = types.Array(types.uint64, 1, "C", readonly=True, aligned=False)
FLAGS: Any = types.Array(types.boolean, 1, "C", readonly=True, aligned=False)
#: Several columns of the same rows: a line each, so that neighbouring rows are adjacent in memory.
KEYS: Any = types.Array(types.uint64, 2, "C", readonly=True, aligned=False)
COLUMNS: Any = types.Array(types.float64, 2, "C", readonly=True, aligned=False)
#: Arrays that a kernel may change in place.
NEW_INTEGERS: Any = types.Array(types.int64, 1, "C")
NEW_WORDS: Any = types.Array(types.uint64, 1, "C")
NEW_KEYS: Any = types.Array(types.uint64, 2, "C")
NUMBER: Any = types.int64
REAL: Any = types.float64
WORD: Any = types.uint64
