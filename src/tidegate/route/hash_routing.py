"""Plain hash routing: key code → partition → instance, the initial table of every query.

A partition is a range of codes: partition = ((code >> 33) * partitions) >> 31, all unsigned. The upper 31
bits of the code, read as a fraction of one, times the number of partitions. Three reasons for this instead
of a remainder:

- it does not decrease with the code, so in a run sorted by code every partition is one contiguous range of
  rows;
- no step exceeds 63 bits, so SQL with signed 64-bit integers computes the same before the shuffle;
- there is no division.

The first table gives each instance neighbouring partitions, p → p * instances // partitions, not p %
instances. Both are equally even (codes are well mixed; numbers of partitions differ by one at most). But
with neighbouring partitions an instance's rows are one contiguous range of every sorted run: one read and
one probe instead of one per partition. Balancing moves single partitions later; the ranges then split only
there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import FlowError

#: With more partitions, the product of 31 bits of code and a partition number would exceed 62 bits.
PARTITIONS_MAX = 2**31
_CODE_SHIFT = 33
_PRODUCT_SHIFT = 31


def partition_of(codes: NDArray[np.uint64], partitions: int) -> NDArray[np.int64]:
    """Partition of each code, 0 … partitions - 1; never decreases as the code grows."""
    _check_partitions(partitions)
    product = codes >> np.uint64(_CODE_SHIFT)
    product *= np.uint64(partitions)
    product >>= np.uint64(_PRODUCT_SHIFT)
    return product.view(np.int64)


def partition_bounds(
    sorted_codes: NDArray[np.uint64], partitions: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Partitions that have rows, ascending, and bounds: owned[k] has rows bounds[k] … bounds[k + 1] - 1."""
    _check_partitions(partitions)
    rows = sorted_codes.size
    if partitions < rows:
        firsts = np.append(np.searchsorted(sorted_codes, _lowest_codes(partitions)), rows)
        owned = np.flatnonzero(firsts[1:] > firsts[:-1]).astype(np.int64, copy=False)
        starts = firsts[owned]
    else:
        # More partitions than rows: iterate over the rows, not over the partitions.
        labels = partition_of(sorted_codes, partitions)
        starts = np.flatnonzero(np.diff(labels, prepend=-1))
        owned = labels[starts]
    return owned, np.append(starts, rows).astype(np.int64, copy=False)


def first_table(partitions: int, instances: int) -> tuple[int, ...]:
    """Instance of each partition at the start of a query."""
    check_instances(partitions, instances)
    return tuple(partition * instances // partitions for partition in range(partitions))


def check_instances(partitions: int, instances: int) -> None:
    """Refuse numbers that do not fit together."""
    _check_partitions(partitions)
    if not 1 <= instances <= partitions:
        raise FlowError(
            "The number of instances must be between 1 and the number of partitions",
            code="BALANCE_INSTANCES_INVALID",
            got=f"{instances} instances, {partitions} partitions",
            why="An instance without a partition would have no work",
            do="Give fewer instances=…, or start with a new checkpoint and more partitions=…",
        )


def _lowest_codes(partitions: int) -> NDArray[np.uint64]:
    """Lowest code of each partition p: the least h with h * partitions >= p * 2**31, in the upper 31 bits."""
    numbers = np.arange(partitions, dtype=np.uint64)
    upper = ((numbers << np.uint64(_PRODUCT_SHIFT)) + np.uint64(partitions - 1)) // np.uint64(partitions)
    return upper << np.uint64(_CODE_SHIFT)


def _check_partitions(partitions: int) -> None:
    if not 1 <= partitions <= PARTITIONS_MAX:
        raise FlowError(
            "The number of partitions must be between 1 and 2**31",
            code="BALANCE_PARTITIONS_INVALID",
            got=partitions,
            do="Give some tens of partitions per instance, for example partitions=128",
        )
