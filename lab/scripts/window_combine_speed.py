#!/usr/bin/env python3
"""Measures, on one core, what it takes to make finished windows out of runs of pane partials.

    lab/scripts/window_combine_speed.py      (with the Python that has Tidegate)

Five partial columns: a count, a sum of integers, a sum, a minimum and a maximum of floats, one of them with
nulls. Cases run in turns; printed are the best and the median of the rounds, in milliseconds of processor
time, and how that is spent. The last lines show that the cost per row does not grow with size/slide: the
longest windows need twice as many panes.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from statistics import median
from time import process_time
from typing import NamedTuple

import numpy as np

from tidegate.window.aggregate.aggregates import Merge
from tidegate.window.aggregate.closing import closing_windows, panes_needed
from tidegate.window.aggregate.columns import Column
from tidegate.window.aggregate.combine import combine
from tidegate.window.aggregate.merge_runs import PartialRun, merge_runs
from tidegate.window.panes import Panes
from tidegate.window.spec import WindowSpec
from tidegate_lab.simulate.windows.run_columns import in_order

ROUNDS = 15
STEPS = ("order", "stretches", "fetch", "merge")


class Case(NamedTuple):
    """Runs of partials, and the windows that close."""

    name: str
    runs: list[PartialRun]
    spec: WindowSpec
    windows: int
    bar_ms: float | None = None


def columns(case: Case, random: np.random.Generator) -> list[tuple[Merge, list[Column]]]:
    sizes = [run.code.size for run in case.runs]
    draws: list[tuple[Merge, Callable[[int], Column]]] = [
        (Merge.SUM, lambda n: Column(random.integers(1, 100, n))),
        (Merge.SUM, lambda n: Column(random.integers(-(10**9), 10**9, n))),
        (Merge.SUM, lambda n: Column(random.random(n), random.random(n) < 0.9)),
        (Merge.MIN, lambda n: Column(random.random(n))),
        (Merge.MAX, lambda n: Column(random.random(n))),
    ]
    return [(merge, [draw(size) for size in sizes]) for merge, draw in draws]


def finish(case: Case, partials: list[tuple[Merge, list[Column]]]) -> tuple[dict[str, float], int]:
    """Seconds per step, and how many windows came out."""
    panes, spent = Panes(case.spec), dict.fromkeys(STEPS, 0.0)
    began = process_time()

    def lap(step: str) -> None:
        nonlocal began
        now = process_time()
        spent[step] += now - began
        began = now

    merged = merge_runs(case.runs, *panes_needed(panes, 0, case.windows))
    lap("order")
    closed = closing_windows(merged, panes, 0, case.windows)
    lap("stretches")
    for merge, runs in partials:
        column = in_order(runs, merged.order)
        lap("fetch")
        combine(merge, [column], closed)
        lap("merge")
    return spent, closed.count


def dense(groups: int, panes: int, runs: int, random: np.random.Generator) -> list[PartialRun]:
    """Every group in every pane; each run has a few panes of all groups, as batches leave them behind."""
    codes = np.sort(random.integers(0, 2**64, groups, dtype=np.uint64))
    edges = np.linspace(0, panes, runs + 1).astype(np.int64)
    return [
        PartialRun(np.repeat(codes, end - begin), np.tile(np.arange(begin, end), groups))
        for begin, end in pairwise(edges.tolist())
    ]


def tumbling(groups: int, everywhere: bool, random: np.random.Generator) -> list[PartialRun]:
    """One pane, four runs: each group in all of them, or in one."""
    codes = np.sort(random.integers(0, 2**64, groups, dtype=np.uint64))
    lot = random.integers(0, 4, groups)
    parts = [codes if everywhere else codes[lot == run] for run in range(4)]
    return [PartialRun(part, np.zeros(part.size, np.int64)) for part in parts]


def cases(random: np.random.Generator) -> list[Case]:
    sliding = WindowSpec(60, 1)
    shown = [
        Case(
            f"1,000 groups × 660 panes, 60 s / 1 s, {runs} runs",
            dense(1_000, 660, runs, random),
            sliding,
            600,
            50,
        )
        for runs in (1, 4, 11, 60)
    ]
    for everywhere, where in ((False, "one of 4 runs"), (True, "each of 4 runs")):
        runs = tumbling(1_000_000, everywhere, random)
        shown.append(Case(f"1,000,000 groups × 1 pane, in {where}", runs, WindowSpec(60, 60), 1, 400))
    for overlap in (1, 60, 600):
        runs = dense(500, 1_200, 4, random)
        shown.append(
            Case(f"500 groups × 1,200 panes, size/slide {overlap}", runs, WindowSpec(overlap, 1), 600)
        )
    return shown


def main() -> None:
    random = np.random.default_rng(1)
    measured = [(case, columns(case, random), list[dict[str, float]]()) for case in cases(random)]
    counts = [finish(case, partials)[1] for case, partials, _ in measured]
    for _ in range(ROUNDS):
        for case, partials, rounds in measured:
            rounds.append(finish(case, partials)[0])
    print(
        f"{'':<48} {'windows':>9} {'best':>6} {'median':>6} {'bar':>5}   of the best: {', '.join(STEPS)}   ms"
    )
    for (case, _, rounds), count in zip(measured, counts, strict=True):
        best = min(rounds, key=lambda spent: sum(spent.values()))
        totals = [sum(spent.values()) * 1e3 for spent in rounds]
        bar = "" if case.bar_ms is None else f"{case.bar_ms:.0f}"
        parts = "  ".join(f"{best[step] * 1e3:5.1f}" for step in STEPS)
        print(f"{case.name:<48} {count:>9,} {min(totals):>6.1f} {median(totals):>6.1f} {bar:>5}   {parts}")


if __name__ == "__main__":
    main()
