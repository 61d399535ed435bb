"""The size of a sketch for a given error, for the HLL and KLL sketches of Apache DataSketches.

    distinct    HLL, 2**size registers. Relative error: 1.04 / √registers, as one standard deviation
    quantiles   KLL of parameter `size`. Error in rank: 2.296 / size**0.9723, with 99 % confidence

The errors are those that Apache DataSketches states for merged sketches. Sketches of few values are exact:
for quantiles up to `size` values.
"""

from __future__ import annotations

import math

from tidegate.errors import FlowError

#: Spark's defaults.
RSD_DEFAULT, ACCURACY_DEFAULT = 0.05, 10_000
#: Sketches below 2**7 registers cannot be merged, and sketches above 2**21 do not exist.
_REGISTERS_MIN, _REGISTERS_MAX = 7, 21
_KLL_MIN, _KLL_MAX = 8, 65_535
_KLL_FACTOR, _KLL_POWER = 2.296, 0.9723


def hll_size(rsd: float = RSD_DEFAULT) -> int:
    """Registers as a power of two, for a relative standard deviation of at most `rsd`."""
    least = 1.04 / math.sqrt(2**_REGISTERS_MAX)
    if not least <= rsd < 1:
        raise FlowError(
            "approx_count_distinct does not support this relative standard deviation over windows",
            code="AGGREGATE_ACCURACY_INVALID",
            got=f"rsd={rsd}",
            do=f"Give a relative standard deviation from {least:.4f} to 1",
        )
    return max(_REGISTERS_MIN, math.ceil(math.log2((1.04 / rsd) ** 2)))


def kll_size(accuracy: float = ACCURACY_DEFAULT) -> int:
    """The parameter for an error in rank of at most 1 / accuracy."""
    best = int(_KLL_MAX**_KLL_POWER / _KLL_FACTOR)
    if not 1 <= accuracy <= best:
        raise FlowError(
            "approx_percentile does not support this accuracy over windows",
            code="AGGREGATE_ACCURACY_INVALID",
            got=f"accuracy={accuracy}",
            why="The error in rank is 1 / accuracy",
            do=f"Give an accuracy from 1 to {best}",
        )
    return max(_KLL_MIN, math.ceil(math.pow(_KLL_FACTOR * accuracy, 1 / _KLL_POWER)))
