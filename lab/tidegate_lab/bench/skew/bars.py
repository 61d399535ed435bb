"""The targets of balancing on Spark, each with a fixed id.

Strategies take turns in a round (`run.py`) and are compared within it; the median of several rounds is
reported. Comparisons of the heaviest instance are reported beside its time (`counted_over_papers`), because
they do not depend on the machine.

On even keys nothing has to move: both papers' strategies equal hash routing, and all three make the same
comparisons (`counted_over_papers` shows it). Time differences are then chance, so `auto` is compared with
their mean and may be 2 % slower, the same tolerance as against hash. Which of eight even instances is the
heaviest is chance too, so the mean instance is compared; evenness has a bar of its own.

The target for moved rows applies to streams of constant skew. Rows that `auto` moves to follow a real city's
taxis are reported without a bar.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

import numpy as np

from tidegate.observe.json_frame import Bar
from tidegate_lab.bench.skew.feed import TAXIS
from tidegate_lab.bench.skew.run import Run
from tidegate_lab.plots.bars import at_least, at_most

OURS, HASH, PAPERS = "auto", "hash", ("fastjoin", "ls_stream")
#: Heaviest instance over an even share.
EVEN, AFTER_A_JUMP, JUMP_BATCHES = 1.15, 1.25, 3
#: Rows moved: of what FastJoin moves where it moves any, of the state otherwise.
OF_FASTJOIN, OF_STATE = 0.5, 0.05
#: Even keys, and what their bars are called; and a workload whose skew does not stay.
UNIFORM, CHANGING = {"zipf-0": "uniform", "G00": "G00"}, TAXIS
#: Throughput against the better paper; and on even keys against hash, and all who do the same as it.
AS_GOOD, AS_GOOD_AS_HASH = 1.0, 0.98

#: The rounds of one strategy; by workload and strategy.
Rounds = Sequence[Run]
Runs = Mapping[str, Mapping[str, Rounds]]


def skew_bars(runs: Runs, jump: int) -> list[Bar]:
    """Bars of every workload that ours ran on."""
    bars: list[Bar] = []
    for workload, by_strategy in runs.items():
        ours = by_strategy.get(OURS)
        if ours is None:
            continue
        if workload == "jump":
            slowest = max(_slowest(one, jump) for one in ours)
            bars.append(at_most("skew.jump.batches_to_even", float(slowest), "", JUMP_BATCHES))
            continue
        imbalance = median(one.steady_imbalance for one in ours)
        bars.append(at_most(f"skew.{workload}.imbalance", imbalance, "x", EVEN))
        papers = [by_strategy[name] for name in PAPERS if name in by_strategy]
        if papers and workload not in UNIFORM:
            worst = min(faster(ours, one) for one in papers)
            bars.append(at_least(f"skew.{workload}.over_papers", worst, "x", AS_GOOD))
        if papers:
            worst = min(fewer(ours, one) for one in papers)
            bars.append(at_least(f"skew.{workload}.counted_over_papers", worst, "x", AS_GOOD))
        if workload != CHANGING:
            bars += _moving(workload, by_strategy, ours)
    return bars


def faster(ours: Rounds, other: Rounds) -> float:
    """Throughput over that of another strategy, round by round."""
    return median(
        float(two.usual_seconds.max() / one.usual_seconds.max()) for one, two in zip(ours, other, strict=True)
    )


def as_fast(ours: Rounds, others: Sequence[Rounds]) -> float:
    """Throughput of the mean instance over the mean of strategies that do all the same, round by round."""
    return median(
        float(np.mean([two.usual_seconds.mean() for two in equals]) / one.usual_seconds.mean())
        for one, *equals in zip(ours, *others, strict=True)
    )


def fewer(ours: Rounds, other: Rounds) -> float:
    """The same, counted in comparisons of the heaviest instance."""
    return median(
        float(two.usual_compared.max() / one.usual_compared.max())
        for one, two in zip(ours, other, strict=True)
    )


def _moving(workload: str, by_strategy: Mapping[str, Rounds], ours: Rounds) -> list[Bar]:
    if workload in UNIFORM:
        name = f"skew.{UNIFORM[workload]}"
        bars = [at_most(f"{name}.migrations", float(max(one.migrations for one in ours)), "", 0)]
        if HASH in by_strategy:
            ratio = as_fast(ours, [by_strategy[HASH], *_equal_to(by_strategy[HASH], by_strategy)])
            bars.append(at_least(f"{name}.over_hash", ratio, "x", AS_GOOD_AS_HASH))
        return bars
    moved, theirs = (sum(sum(one.moved) for one in some) for some in (ours, by_strategy.get("fastjoin", ())))
    if theirs:
        return [at_most(f"skew.{workload}.moved_of_fastjoin", moved / theirs, "x", OF_FASTJOIN)]
    most = max(one.moved_share for one in ours)
    return [at_most(f"skew.{workload}.moved_of_state", most, "x", OF_STATE)]


def _equal_to(hashed: Rounds, by_strategy: Mapping[str, Rounds]) -> list[Rounds]:
    """The papers' strategies that made the same comparisons as hash, on every instance in every batch."""
    return [
        by_strategy[name]
        for name in PAPERS
        if name in by_strategy
        and all(
            np.array_equal(a.compared, b.compared) for a, b in zip(by_strategy[name], hashed, strict=True)
        )
    ]


def _slowest(run: Run, jump: int) -> int:
    """After the worst jump: batches until the counted work is nearly even again."""
    slowest = 0
    for begin in range(jump, len(run.rows), jump):
        after = run.counted_imbalance[begin : begin + jump]
        even = [number for number, one in enumerate(after) if one <= AFTER_A_JUMP]
        slowest = max(slowest, even[0] if even else len(after))
    return slowest


def rows_of_report(runs: Runs) -> list[dict[str, Any]]:
    """One line a run, with every batch as raw sample."""
    return [_row(run) for by_strategy in runs.values() for some in by_strategy.values() for run in some]


def _row(run: Run) -> dict[str, Any]:
    settled = run.settled()
    return {
        "workload": run.workload,
        "strategy": run.strategy,
        "throughput": run.throughput,
        "imbalance": run.steady_imbalance,
        "imbalance_by_batch": median(run.imbalance[settled].tolist()),
        "total_seconds": run.total_seconds,
        "pairs": median(run.pairs[settled]),
        "moved_share": run.moved_share,
        "migrations": run.migrations,
        "entries": run.entries[-1],
        "split_keys": run.split_keys[-1],
        "batch_seconds": median(run.batch_seconds[settled]),
        "batches": {
            "seconds": run.seconds.tolist(),
            "compared": run.compared.tolist(),
            "rows": run.rows,
            "pairs": run.pairs,
            "moved": run.moved,
        },
    }
