#!/usr/bin/env python3
"""Measures how well and how fast the keys to move are chosen: GreedyFit, annealing, and all sets of 12 keys.

    lab/scripts/key_choice_speed.py      (with the Python that has Tidegate)

Balance is the lighter of the two instances over the heavier after the migration (1 is perfect), so it repeats
exactly; times are processor times, taken in turns in one process, and told as medians and ratios. Annealing
on the sum of benefits is the yardstick; it flips as many keys at each temperature as there are.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import process_time

import numpy as np
from numpy.typing import NDArray

from tidegate.route.assignment import Assignment
from tidegate.route.fastjoin.greedy_fit import Candidates, candidates, greedy_fit
from tidegate.route.fastjoin.imbalance import InstanceWork
from tidegate.route.fastjoin.sa_fit import BENEFIT, FACTOR, KeyAnnealing, sa_fit
from tidegate.route.fastjoin.strategy import FastJoinStrategy
from tidegate.route.hash_routing import partition_of
from tidegate.route.load import Load, LoadWork

ROUNDS = 9
#: Keys of the heaviest instance, and the Zipf exponent of their rows and probes.
CASES = tuple((keys, zipf) for keys in (100, 1_000, 10_000, 100_000) for zipf in (0.5, 1.0, 1.5))
CONTENDERS: dict[str, Callable[[Candidates, int], NDArray[np.int64]]] = {
    "GreedyFit": lambda keys, seed: greedy_fit(keys),
    "annealing on ΣF": lambda keys, seed: sa_fit(
        keys, KeyAnnealing(value=BENEFIT), np.random.default_rng(seed)
    ),
    "SAFit as printed": lambda keys, seed: sa_fit(
        keys, KeyAnnealing(value=FACTOR), np.random.default_rng(seed)
    ),
}


def zipf_work(keys: int, zipf: float, rows: int, random: np.random.Generator) -> LoadWork:
    """Stored rows and probes of each key, of one side; both follow one popularity, as in a city."""
    shares = np.arange(1, keys + 1) ** -zipf
    stored, probes = (random.multinomial(rows, shares / shares.sum()) for _ in range(2))
    none = np.zeros(keys, np.int64)
    return LoadWork(np.stack([stored, none]), np.stack([probes, none]), none)


def story(keys: int, zipf: float, seed: int) -> tuple[InstanceWork, LoadWork]:
    """The heaviest instance, with the most popular key left out (it alone may be more than the gap), and one
    that has a third of its rows."""
    giver = zipf_work(keys + 1, zipf, 100 * keys, np.random.default_rng(seed)).at(np.arange(1, keys + 1))
    stored, probes = (counts.sum(axis=1, dtype=np.float64) for counts in (giver.stored, giver.probes))
    return InstanceWork(np.stack([stored, stored / 3], axis=1), np.stack([probes, probes / 3], axis=1)), giver


def balance(work: InstanceWork, giver: LoadWork, chosen: NDArray[np.int64]) -> float:
    moved = giver.at(chosen)
    change = np.array([-1.0, 1.0])
    after = InstanceWork(
        work.stored + moved.stored.sum(axis=1)[:, None] * change,
        work.probes + moved.probes.sum(axis=1)[:, None] * change,
    ).loads
    return float(after.min() / after.max())


def choices() -> None:
    print(f"{'keys':>7} {'zipf':>4}  {'chosen by':<17} {'balance':>8} {'ms':>8}  {'rows moved':>10}")
    shares, times_over = [], []
    for keys, zipf in CASES:
        taken: dict[str, list[float]] = {name: [] for name in CONTENDERS}
        balances: dict[str, list[float]] = {name: [] for name in CONTENDERS}
        moved: dict[str, list[float]] = {name: [] for name in CONTENDERS}
        for turn in range(-1, ROUNDS):  # the first round warms up
            work, giver = story(keys, zipf, max(turn, 0))
            offered = candidates(work, 0, 1, giver)
            for name, choose in CONTENDERS.items():
                began = process_time()
                chosen = choose(offered, turn + 1)
                if turn >= 0:
                    taken[name].append(process_time() - began)
                    balances[name].append(balance(work, giver, chosen))
                    moved[name].append(offered.rows[chosen].sum() / offered.rows.sum())
        for name in CONTENDERS:
            print(
                f"{keys:>7} {zipf:>4}  {name:<17} {median(balances[name]):>8.4f} "
                f"{median(taken[name]) * 1e3:>8.2f}  {median(moved[name]):>10.1%}"
            )
        ours, yardstick = "GreedyFit", "annealing on ΣF"
        shares.append(median(a / b for a, b in zip(balances[ours], balances[yardstick], strict=True)))
        times_over.append(median(b / a for a, b in zip(taken[ours], taken[yardstick], strict=True)))
    print(f"GreedyFit's balance over that of annealing on ΣF: {min(shares):.4f} at the least (bar: 0.98)")
    print(f"time of annealing on ΣF over GreedyFit's: {min(times_over):.1f} at the least (bar: 10)")


def all_sets() -> None:
    """The most of the gap that GreedyFit fills, over the most that any set of twelve keys does."""
    for zipf in (0.5, 1.0, 1.5):
        found = []
        for seed in range(200):
            work, giver = story(12, zipf, seed)
            keys = candidates(work, 0, 1, giver)
            sets = (np.arange(2**12)[:, None] >> np.arange(12) & 1) @ keys.benefits
            best = sets[sets < keys.gap].max()
            found.append(float(keys.benefits[greedy_fit(keys)].sum() / best))
        print(
            f"12 keys, Zipf {zipf}: {median(found):.3f} of the best of all sets "
            f"(worst of 200: {min(found):.3f}, never above 1: {max(found) <= 1 + 1e-12})"
        )


def plans() -> None:
    """A whole decision with 100,000 watched keys: all on one of 16 instances, and spread out."""
    keys, partitions = 100_000, 10_000
    codes = np.random.default_rng(1).integers(0, 2**64, keys, dtype=np.uint64)
    homes = partition_of(codes, partitions)
    work = zipf_work(keys, 0.9, 100 * keys, np.random.default_rng(2))
    none = np.zeros(partitions, np.int64)
    stored, probes = (
        np.stack([np.bincount(homes, counts[0], partitions).astype(np.int64), none])
        for counts in (work.stored, work.probes)
    )
    load = Load(0, LoadWork(stored, probes, none), codes=codes, homes=homes, keys=work)
    strategy = FastJoinStrategy(theta=1.0)
    for name, current in (
        ("all on one instance", Assignment(16, (0,) * partitions)),
        ("on 16 instances", strategy.first(partitions, 16)),
    ):
        times = []
        for _ in range(ROUNDS):
            began = process_time()
            after, _ = strategy.decide(load, current, {})
            times.append(process_time() - began)
        print(
            f"a plan for {keys} keys in {partitions} partitions, {name}: {median(times) * 1e3:.0f} ms "
            f"({len(after.keys)} keys move; bar: 50 ms)"
        )


if __name__ == "__main__":
    choices()
    all_sets()
    plans()
