#!/usr/bin/env python3
"""Measures a sifter at the edge: rows a second on one core, alone and with the rows' formats, and its bytes.

    lab/scripts/sift_speed.py      (with the Python that has Tidegate)

Batches of 64k rows of float64 columns in memory, uniform and in hot spots; regions by greedy cuts at medians
of the sample (so cuts lie close where rows are many). Then `tidegate sift` on files of newline JSON, CSV and
Arrow with four columns. Processor times, in turns in one process; the best and the median of the rounds.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import redirect_stderr
from functools import partial
from io import StringIO
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import process_time

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from tidegate.cli.main import main as tidegate
from tidegate.sift.filter.decision import Gate, keep_by_hash
from tidegate.sift.filter.sifter import Sifter
from tidegate.sift.queries.axes import Axis
from tidegate.sift.regions import Domain, Regions

ROUNDS = 9
BATCH = 65_536
BATCHES = 40
CASES = tuple((regions, axes, hot) for regions in (16, 100) for axes in (2, 3) for hot in (False, True))
BAR_MILLIONS = 50
#: A batch of text takes as long as many in memory.
FILE_REPEATS = {"json": 2, "csv": 5, "arrow": 20}


def rows(axes: int, hot: bool, random: np.random.Generator) -> list[NDArray[np.float64]]:
    if not hot:
        return list(random.random((axes, BATCH)))
    spot = random.integers(0, 5, BATCH)
    return [random.random(5)[spot] + random.normal(0.0, 0.03, BATCH) for _ in range(axes)]


def found_and_kept(
    gate: Gate, columns: list[NDArray[np.float64]], hashed: NDArray[np.int64]
) -> NDArray[np.bool_]:
    return keep_by_hash(gate.lookup.regions(columns), hashed, gate.sifter.thresholds)


def cut_at_medians(columns: list[NDArray[np.float64]], regions: int) -> Regions:
    """The fullest region is halved along its widest axis, until there are enough."""
    parts: list[tuple[int, int, NDArray[np.int64]]] = [(-1, 0, np.arange(2_000))]
    axis: list[int] = []
    at: list[float] = []
    children: list[list[int]] = []
    while len(parts) < regions:
        parent, side, held = parts.pop(int(np.argmax([len(part[2]) for part in parts])))
        if parent >= 0:
            children[parent][side] = len(axis)
        k = int(np.argmax([column[held].var() for column in columns]))
        cut = float(np.median(columns[k][held]))
        below = columns[k][held] < cut
        parts += [(len(axis), 0, held[below]), (len(axis), 1, held[~below])]
        axis.append(k)
        at.append(cut)
        children.append([0, 0])
    for region, (parent, side, _) in enumerate(parts):
        children[parent][side] = ~region
    domain = Domain(np.zeros(len(columns)), np.ones(len(columns)))
    return Regions(domain, np.array(axis, np.int32), np.array(at), np.array(children, np.int32))


def best_and_median(work: Callable[[], object], repeats: int = BATCHES) -> tuple[float, float]:
    """Millions of rows a second, of work on one batch that is done so many times."""
    work()
    times = []
    for _ in range(ROUNDS):
        began = process_time()
        for _ in range(repeats):
            work()
        times.append(process_time() - began)
    return BATCH * repeats / min(times) / 1e6, BATCH * repeats / median(times) / 1e6


def main() -> None:
    random = np.random.default_rng(1)
    print(
        f"{'regions':>7} {'axes':>4} {'rows':<8} {'bytes':>6} {'per r·n':>7} {'buckets':>10} {'cells':>6} | "
        f"{'lookup':>13} {'+ counters':>13} {'+ samples':>13} {'by hash':>13}   M rows/s, best / median"
    )
    for regions, axes, hot in CASES:
        columns = rows(axes, hot, random)
        tree = cut_at_medians(columns, regions)
        names = tuple(Axis(f"x{k}") for k in range(axes))
        sifter = Sifter(names, tree, random.random(regions))
        sampling = Sifter(names, tree, sifter.thresholds, sample_share=0.01)
        gate, sampler = Gate(sifter), Gate(sampling)
        hashed = random.integers(-(2**63), 2**63 - 1, BATCH)
        speeds = [
            best_and_median(partial(gate.lookup.regions, columns)),
            best_and_median(partial(gate.decide, columns)),
            best_and_median(partial(sampler.decide, columns)),
            best_and_median(partial(found_and_kept, gate, columns, hashed)),
        ]
        size = len(sifter.to_bytes())
        tables = gate.lookup.tables
        buckets = "·".join(f"{len(t.base)}" for t in tables) or "tree"
        print(
            f"{regions:>7} {axes:>4} {'hot' if hot else 'uniform':<8} "
            f"{size:>6} {size / regions / axes:>7.1f} {buckets:>10} {len(gate.lookup.cells):>6} | "
            + " ".join(f"{best:>6.0f} /{middle:>5.0f}" for best, middle in speeds)
        )
    print(f"bar: lookup with decision at least {BAR_MILLIONS} M rows/s at 100 regions, 2 axes")


def formats() -> None:
    """All of `tidegate sift` but its start: reading, parsing, deciding, writing."""
    random = np.random.default_rng(2)
    lat, lon = rows(2, False, random)
    sifter = Sifter((Axis("lat"), Axis("lon")), cut_at_medians([lat, lon], 100), random.random(100))
    table = pa.table({"id": np.arange(BATCH), "lat": lat, "lon": lon, "zone": ["Manhattan"] * BATCH})
    with TemporaryDirectory() as folder:
        (Path(folder) / "filter").write_bytes(sifter.to_bytes())
        for form in ("json", "csv", "arrow"):
            file = Path(folder) / f"rows.{form}"
            write(table, file)
            command = ["sift", "--filter", f"{folder}/filter", "--in", str(file), "--out", f"{folder}/out"]
            with redirect_stderr(StringIO()):
                best, middle = best_and_median(partial(tidegate, command), FILE_REPEATS[form])
            size = file.stat().st_size / BATCH
            print(f"tidegate sift, {form:<5} {size:>4.0f} bytes a row: {best:>5.2f} /{middle:>5.2f} M rows/s")


def write(table: pa.Table, file: Path) -> None:
    if file.suffix == ".json":
        file.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    elif file.suffix == ".csv":
        pa.csv.write_csv(table, file)
    else:
        with pa.ipc.new_stream(file, table.schema) as writer:
            writer.write_table(table)


if __name__ == "__main__":
    main()
    formats()
