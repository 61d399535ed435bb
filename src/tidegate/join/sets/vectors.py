"""Two vector operations for kernels: `LANES` products in one step.

A loop over a few dozen neighbouring numbers spends more time on checking whether its arrays overlap, and on
the remainder at its end, than on the numbers. These two operations always take `LANES` numbers from a place
in one array and as many from a place in another. They are for kernels only and check no bounds.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

#: Numbers per step, in three registers of eight: enough for a window of twenty slots.
LANES = 24
#: Numbers from one aligned line of LANES to the next. Lines that start at a cache line are fast to write and
#: read back; lines that straddle one take three times as long.
LINE = 32
#: Bytes of a cache line.
CACHE_LINE = 64

_struct: Any = cgutils.create_struct_proxy


def _vector(context: Any, builder: Any, kind: Any, array: Any, place: Any) -> Any:
    data = _struct(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [place]), ir.VectorType(ir.FloatType(), LANES).as_pointer())


def _read(builder: Any, pointer: Any) -> Any:
    # Four-byte numbers at any place of an array: no better alignment may be assumed.
    numbers = builder.load(pointer)
    numbers.align = 4
    return numbers


def _operation(*, add: bool) -> Any:
    def typed(_: Any, target: Any, to: Any, left: Any, at: Any, right: Any, of: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            out, one, two = (
                _vector(context, builder, signature.args[n], given[n], given[n + 1]) for n in (0, 2, 4)
            )
            result = builder.fmul(_read(builder, one), _read(builder, two))
            if add:
                result = builder.fadd(result, _read(builder, out))
            builder.store(result, out).align = 4
            return context.get_dummy_value()

        return types.void(target, types.int64, left, types.int64, right, types.int64), build

    return intrinsic(typed)


#: set_products(target, to, left, at, right, of): target[to …] = left[at …] × right[of …], all float32.
set_products: Any = _operation(add=False)
#: The same, added to the values in `target`.
add_products: Any = _operation(add=True)
