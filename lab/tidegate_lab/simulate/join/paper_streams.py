"""The selective join paper's workload as inputs of a simulated join."""

from __future__ import annotations

from tidegate.join.sets.item_sets import bitsets
from tidegate_lab.simulate.join.counted_conditions import codes
from tidegate_lab.simulate.join.stored import Stream
from tidegate_lab.workloads.selective_join import Steps, Workload, draw


def paper_streams(workload: Workload, rates: tuple[Steps, Steps]) -> tuple[Stream, Stream]:
    """Left and right; sets become bitsets, single values codes."""
    single = workload.size_mean == 1 and workload.size_deviation == 0
    left, right = (
        Stream(
            rows.times_us, codes(rows.items) if single else bitsets(rows.bounds, rows.items, workload.items)
        )
        for rows in draw(workload, rates)
    )
    return left, right
