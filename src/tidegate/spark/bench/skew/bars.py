"""The figures that balancing was asked to reach on Spark, each with a fixed id."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any

from tidegate.report.bars import at_least, at_most
from tidegate.report.frame import Bar
from tidegate.spark.bench.skew.run import Run

OURS, HASH, PAPERS = "auto", "hash", ("fastjoin", "ls-stream")
#: Heaviest instance over an even share.
EVEN, AFTER_A_JUMP, JUMP_BATCHES = 1.15, 1.25, 3
#: Rows moved: of what FastJoin moves where it moves any, of the state otherwise.
OF_FASTJOIN, OF_STATE = 0.5, 0.05
UNIFORM = "zipf-0"
#: Throughput against the better paper.
AS_GOOD = 1.0

Runs = Mapping[str, Mapping[str, Run]]


def skew_bars(runs: Runs, jump: int) -> list[Bar]:
    """Bars of every workload that ours ran on."""
    bars: list[Bar] = []
    for workload, by_strategy in runs.items():
        ours = by_strategy.get(OURS)
        if ours is None:
            continue
        if workload == "jump":
            bars.append(at_most("skew.jump.batches_to_even", float(_slowest(ours, jump)), "", JUMP_BATCHES))
            continue
        bars.append(at_most(f"skew.{workload}.imbalance", ours.steady_imbalance, "x", EVEN))
        papers = [by_strategy[name] for name in PAPERS if name in by_strategy]
        if papers:
            best = max(one.throughput for one in papers)
            bars.append(at_least(f"skew.{workload}.over_papers", ours.throughput / best, "x", AS_GOOD))
        bars += _moving(workload, by_strategy, ours)
    return bars


def _moving(workload: str, by_strategy: Mapping[str, Run], ours: Run) -> list[Bar]:
    if workload == UNIFORM:
        bars = [at_most("skew.uniform.migrations", float(ours.migrations), "", 0)]
        if HASH in by_strategy:
            ratio = ours.throughput / by_strategy[HASH].throughput
            bars.append(at_least("skew.uniform.over_hash", ratio, "x", 0.98))
        return bars
    fastjoin = by_strategy.get("fastjoin")
    if fastjoin is not None and fastjoin.migrations:
        ratio = sum(ours.moved) / sum(fastjoin.moved)
        return [at_most(f"skew.{workload}.moved_of_fastjoin", ratio, "x", OF_FASTJOIN)]
    return [at_most(f"skew.{workload}.moved_of_state", ours.moved_share, "x", OF_STATE)]


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
    return [_row(run) for by_strategy in runs.values() for run in by_strategy.values()]


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
