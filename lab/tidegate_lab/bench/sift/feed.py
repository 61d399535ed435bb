"""The rows and queries of `tidegate bench sift`: the sifters paper's hot spots, as files and as SQL."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import tidegate as tg
from tidegate_lab.workloads.sifters import Workload, draw_queries, draw_rows

SCHEMA = "ts timestamp, x1 double, x2 double, load double"
#: Event time of the first row.
START_US = 1_700_000_000_000_000


def write(folder: Path, workload: Workload, rows: int, files: int) -> None:
    """So many rows in so many files, a second of event time in each."""
    folder.mkdir(parents=True, exist_ok=True)
    each = rows // files
    for number in range(files):
        points = draw_rows(workload, each, part=number)
        times = START_US + number * 1_000_000 + np.arange(each) * 1_000_000 // each
        table = pa.table(
            {
                "ts": pa.array(times, pa.timestamp("us", "UTC")),
                "x1": points[:, 0],
                "x2": points[:, 1],
                "load": np.random.default_rng([workload.seed, number]).random(each),
            }
        )
        # Several row groups, or Spark would read a file with one core.
        pq.write_table(table, folder / f"{number:03d}.parquet", row_group_size=max(1, each // 8))


def queries(workload: Workload) -> list[tg.RangeQuery]:
    """The workload's queries as users write them."""
    drawn = draw_queries(workload)
    low, high = drawn.boxes.extents
    return [
        tg.RangeQuery(
            f"q{i}", f"x1 >= {a!r} and x1 < {b!r} and x2 >= {c!r} and x2 < {d!r}", loss_sensitivity=alpha
        )
        for i, ((a, c), (b, d), alpha) in enumerate(
            zip(low.tolist(), high.tolist(), drawn.alphas.tolist(), strict=True)
        )
    ]
