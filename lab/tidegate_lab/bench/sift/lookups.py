"""Times lookup and decision alone: one core, columns in memory, in chunks as read from a file."""

from __future__ import annotations

import time

import numpy as np

from tidegate.sift.filter.decision import Gate
from tidegate_lab.bench.sift.run import Measured, made_sifter
from tidegate_lab.workloads.sifters import Workload, draw_rows

#: Rows in memory, and rows decided at a time.
ROWS, PIECE = 4_194_304, 65_536


def lookups(workload: Workload, regions: list[int], sift: str, rounds: int) -> list[Measured]:
    """Every row's region and fate, by the counters of an edge node, under sifters of so many regions."""
    points = draw_rows(workload, ROWS, part=20_000)
    columns = [np.ascontiguousarray(points[:, k]) for k in range(points.shape[1])]
    found = []
    for number in regions:
        gate = Gate(made_sifter(workload, number, sift))
        measured = Measured(f"lookup-{number}", ROWS)
        for _ in range(rounds + 1):
            started, kept = time.perf_counter(), 0
            for begin in range(0, ROWS, PIECE):
                kept += int(np.count_nonzero(gate.decide([c[begin : begin + PIECE] for c in columns])))
            measured.seconds.append(time.perf_counter() - started)
            measured.found.append(kept)
        del measured.seconds[0]  # the first round compiles
        found.append(measured)
    return found
