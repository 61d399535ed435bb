#!/usr/bin/env python3
"""Measures, on one core, what finding pairs of sets takes, and what choosing by content takes beside it.

    lab/scripts/set_pairs_speed.py      (with the Python that has Tidegate)

All contenders run in turns in one process; printed are medians of the rounds, and ratios round by round. Last
comes what choosing by content finds at equal counted cost, which is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from statistics import median
from time import process_time

import numpy as np
from numpy.typing import NDArray

from tidegate.join.selective.content import item_shares, match_values
from tidegate.join.selective.row_cells import choose_row_cells
from tidegate.join.sets.bitset_pairs import Bitsets
from tidegate.join.sets.inverted_lists import InvertedLists
from tidegate.join.sets.item_sets import ItemSets, item_sets
from tidegate.join.sets.pair_finders import PreparedSets
from tidegate_lab.simulate.join.basic_windows import Windows, ranges_by_age
from tidegate_lab.simulate.join.by_content import compare, item_counts
from tidegate_lab.simulate.join.counted_conditions import CountedOverlap
from tidegate_lab.workloads.selective_join import SECOND_US, Steps, Workload, draw

ROUNDS = 21
MATCH = CountedOverlap(3)


def timed(*contenders: Callable[[], object]) -> list[list[float]]:
    """Seconds per round, one list per contender."""
    times: list[list[float]] = [[] for _ in contenders]
    for turn in range(ROUNDS + 1):
        for one, contender in enumerate(contenders):
            began = process_time()
            contender()
            if turn:  # the first round warms up
                times[one].append(process_time() - began)
    return times


def drain(
    prepared: PreparedSets, probing: ItemSets, starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> int:
    return sum(rows.size for rows, _ in prepared.find(probing, starts, ends, 100_000))


def sets(items: int, rows: int) -> tuple[ItemSets, ItemSets]:
    still = Workload(items=items, period_seconds=1e9, shift_seconds=Steps(((1, 0.0),)))
    left, right = (item_sets(r.bounds, r.items, items) for r in draw(still, (Steps(((10, rows / 10),)),) * 2))
    return left, right


def pairs() -> None:
    for items, probes in ((100, 1000), (5000, 1000)):
        stored, probing = sets(items, 20_000)
        probing = probing.take(np.arange(probes))
        ways: list[Bitsets | InvertedLists] = [Bitsets(MATCH), InvertedLists(MATCH)]
        ways.append(InvertedLists(MATCH, "identifier"))
        prepared = [way.prepare(stored) for way in ways]
        ranges = np.zeros(probes, np.int64), np.full(probes, 20_000)
        times = timed(*(partial(drain, one, probing, *ranges) for one in prepared))
        found = drain(prepared[0], probing, *ranges)
        speed = probes * 20_000 / median(times[0]) / 1e6
        print(
            f"{items} items: {probes} rows × 20000 stored, {found} pairs; bitsets {speed:.0f} M comparisons/s"
        )
        for name, way in zip(("time-sorted lists", "identifier-sorted lists"), times[1:], strict=True):
            ratio = [a / b for a, b in zip(times[0], way, strict=True)]
            print(f"  {name}: {median(ratio):.1f}× bitsets ({min(ratio):.1f} … {max(ratio):.1f})")


def content() -> None:
    """A batch of 1000 rows and a window of 20 slots of 500 rows, as in
    `lab/tidegate_lab/simulate/join/by_content.py`.
    """
    left, right = draw(Workload(), (Steps(((22, 500),)),) * 2)
    stored, new = (item_sets(rows.bounds, rows.items, 100) for rows in (right, left))
    batch = np.flatnonzero(left.times_us >= 20 * SECOND_US)
    probing, own = new.take(batch), left.times_us[batch] // SECOND_US
    slot = right.times_us // SECOND_US
    counts, rows = item_counts(stored, slot, 22), np.bincount(slot)
    shares = item_shares(counts, rows, 21)
    whole = ranges_by_age(right.times_us, left.times_us[batch], 20 * SECOND_US, SECOND_US, equal_times=False)
    values = match_values(probing, shares, own, 3)
    prepared = Bitsets(MATCH).prepare(stored)
    sizes = whole.sizes
    limit = float(sizes.sum()) / 5
    row, age = np.nonzero(choose_row_cells(values, sizes, limit))
    starts, ends, comparing = whole.starts[row, age], whole.ends[row, age], probing.take(row)
    compared = int((ends - starts).sum())
    window_counts = counts[:, :21].copy()
    newest = stored.take(np.flatnonzero(slot >= 20))
    newest_slot = slot[slot >= 20] - 20
    times = timed(
        lambda: drain(prepared, comparing, starts, ends),
        # Ten times each: a single one is too short to be timed well.
        lambda: [match_values(probing, shares, own, 3) for _ in range(10)],
        lambda: [choose_row_cells(values, sizes, limit) for _ in range(10)],
        lambda: [item_counts(newest, newest_slot, 2) for _ in range(10)],
        lambda: [item_shares(window_counts, rows[:21], 21) for _ in range(10)],
    )
    comparison = [time / compared for time in times[0]]
    print(f"a comparison in the cells chosen, pairs written: {median(comparison) * 1e9:.2f} ns")
    for name, number, way in zip(
        (
            "an estimate",
            "its choice",
            "counting the items of a row",
            "the table of shares, per row of a batch of 500",
        ),
        (values.size, values.size, len(newest), 500),
        times[1:],
        strict=True,
    ):
        each = [time / (10 * number) for time in way]
        ratio = [time / one for time, one in zip(each, comparison, strict=True)]
        print(f"  {name}: {median(each) * 1e9:.2f} ns, {median(ratio):.1f} comparisons")


def gains() -> None:
    windows = Windows((20 * SECOND_US, 20 * SECOND_US), SECOND_US)
    for rate, skew in ((500, 0.6), (500, 0.8), (1000, 0.6), (1000, 0.8)):
        runs = [compare(Workload(skew=skew, seed=seed), rate, windows, MATCH, 0.2, 24) for seed in range(5)]
        found = sorted(run.gain for run in runs)
        print(
            f"slots of {rate} rows, Zipf({skew}), r = 0.2: by content {median(found):.3f}× the best by time "
            f"({found[0]:.3f} … {found[-1]:.3f})"
        )


if __name__ == "__main__":
    pairs()
    content()
    gains()
