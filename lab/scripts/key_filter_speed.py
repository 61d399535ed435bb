#!/usr/bin/env python3
"""Measures, on one core, what asking a key filter first does to the search for partners.

    lab/scripts/key_filter_speed.py      (with the Python that has Tidegate)

Printed are medians in processor time: searching at once, and asking a filter before, for rows of which none,
half or all have their key stored. Making the filter is told apart: it is kept as long as its run.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from statistics import median
from time import process_time

import numpy as np
from numpy.typing import NDArray

from tidegate.join.probe.key_filter import KeyFilter
from tidegate.join.probe.meet import meet

Codes = NDArray[np.uint64]
ROUNDS = 25
PROBING = 50_000
#: Stored rows per probing row.
RATIOS = (1, 4, 20, 100)
KNOWN = (0.0, 0.5, 1.0)


def nanoseconds(work: Callable[[], object], rows: int) -> float:
    """Processor time of a call, per row."""
    work()
    times = []
    for _ in range(ROUNDS):
        before = process_time()
        work()
        times.append(process_time() - before)
    return median(times) / rows * 1e9


def filter_first(codes: Codes, stored: Codes, filtered: KeyFilter) -> object:
    return meet(codes[filtered.may_hold(codes)], stored)


def main() -> None:
    random = np.random.default_rng(7)
    print(f"{PROBING:,} rows look for partners; nanoseconds per looking row\n")
    print("stored rows  known  at once  filter first  gain    making (ns/stored row)")
    for ratio in RATIOS:
        stored = np.sort(random.integers(0, 2**64, ratio * PROBING, dtype=np.uint64))
        filtered, making = KeyFilter.of(stored), nanoseconds(partial(KeyFilter.of, stored), stored.size)
        for known in KNOWN:
            strangers = random.integers(0, 2**64, PROBING, dtype=np.uint64)
            codes = np.sort(
                np.where(random.random(PROBING) < known, random.choice(stored, PROBING), strangers)
            )
            at_once = nanoseconds(partial(meet, codes, stored), PROBING)
            first = nanoseconds(partial(filter_first, codes, stored, filtered), PROBING)
            print(
                f"{stored.size:11,}  {known:5.0%}  {at_once:7.1f}  {first:12.1f}  {at_once / first:4.1f}x"
                f"  {making:8.1f}"
            )


if __name__ == "__main__":
    main()
