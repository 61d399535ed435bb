#!/usr/bin/env python3
"""Measures how even the strategies leave the nine groups Gxy of the FastJoin paper, and what they move.

    lab/scripts/group_balance.py      (with the Python that has Tidegate)

Counted cost of an indexed join, so it repeats exactly: 16 instances that hold both sides, windows of 8
batches, both streams over the same 5,000 keys, about 4 million pairs a batch. *Heaviest*: work of the
heaviest instance over an even share, the mean of all batches but the first four. *Moved*: rows that changed
their owner, over the rows of a full state. Means of six seeds.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tidegate.route.auto.strategy import Auto
from tidegate.route.baselines import HashOnly
from tidegate.route.fastjoin.strategy import FastJoinStrategy
from tidegate.route.strategy import Strategy
from tidegate_lab.simulate.balance.key_counts import count_arrivals
from tidegate_lab.simulate.balance.skewed_join import SkewedJoin, simulate
from tidegate_lab.workloads.skew import GROUPS, ZipfStreams, with_pairs, zipf_batches

#: Pairs of a batch, about; both streams have as many rows as that takes.
PAIRS = 4e6
BATCHES, WARM, SEEDS, WINDOW = 24, 4, range(6), 8
#: FastJoin watches all keys, as it wants it; auto those with a two-thousandth of the rows.
CONTENDERS: dict[str, tuple[Strategy, float]] = {
    "hash": (HashOnly(), 0.5),
    "fastjoin": (FastJoinStrategy(), 0.0),
    "auto": (Auto(scattering=0.0), 5e-4),
}


def measured(
    group: tuple[float, float], strategy: Strategy, watch_share: float
) -> Iterator[tuple[float, float]]:
    """Per seed: heaviest, and moved."""
    for seed in SEEDS:
        streams = with_pairs(ZipfStreams(group, keys=5_000, batches=BATCHES, seed=seed), PAIRS, 2 * WINDOW)
        join = SkewedJoin(16, 256, (WINDOW, WINDOW), watch_share=watch_share, first_look=True)
        trace = simulate(count_arrivals(zipf_batches(streams)), strategy, join)
        heaviest = float(trace.series("overload")[WARM:].mean())
        yield heaviest, float(trace.series("moved_rows").sum()) / trace.batches[-1].stored


if __name__ == "__main__":
    print("heaviest (moved)   " + "".join(f"{name:>16}" for name in CONTENDERS))
    for name, group in GROUPS.items():
        means = [np.mean(list(measured(group, *contender)), axis=0) for contender in CONTENDERS.values()]
        print(f"{name:<19}" + "".join(f"{f'{even:.2f} ({moved:.1%})':>16}" for even, moved in means))
