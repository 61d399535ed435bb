#!/usr/bin/env python3
"""Measures, on one core, how long it takes to construct a sifter, and its three steps.

    lab/scripts/sifter_construction_speed.py      (with the Python that has Tidegate)

The workload is the sifters paper's (Table I) with 1000 sample rows. Every round constructs from nothing: what
regions and boxes remember about themselves is made anew. Printed are medians and the least of the rounds.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from statistics import median
from time import process_time

from tidegate.sift.construct.configuration import configure
from tidegate.sift.construct.consolidation import consolidate
from tidegate.sift.construction import Asked, Sample, construct
from tidegate.sift.partition.partitioners import PARTITIONERS
from tidegate.sift.placing import frequencies
from tidegate.sift.queries.query_set import QuerySet
from tidegate_lab.workloads.sifters import Workload, draw_queries, draw_rows, hits

ROUNDS = 15
#: Queries, regions, and the most milliseconds that a construction should take.
BARS = ((1_000, 16, 5), (1_000, 100, 50), (100_000, 16, None), (100_000, 100, 300))


def steps_ms(name: str, workload: Workload, sample: Sample, queries: QuerySet, regions: int) -> list[float]:
    """One round: partitioning, consolidation, configuration, and all of it at once."""
    domain, boxes = workload.domain, replace(queries.boxes)
    clock = [process_time()]
    parts = PARTITIONERS[name](domain, sample.rows, sample.hits, boxes, regions)
    shares = frequencies(parts, sample.rows)
    clock.append(process_time())
    seen = consolidate(parts, shares, boxes, queries.weights, queries.alphas, sample.rows)
    clock.append(process_time())
    configure(seen.region_qos, shares, seen.nonempty, 0.5, 0.5)
    clock.append(process_time())
    fresh = replace(queries.boxes)
    clock.append(process_time())
    construct(
        PARTITIONERS[name], domain, sample, Asked(fresh, queries.weights, queries.alphas), regions=regions
    )
    clock.append(process_time())
    return [1e3 * (clock[i + 1] - clock[i]) for i in (0, 1, 2, 4)]


def main() -> None:
    columns = ("partition", "consolidate", "configure", "construct", "least")
    print(f"{'queries':>8} {'regions':>8} {'by':>8} " + " ".join(f"{name:>12}" for name in columns) + "  ms")
    for count, regions, most in BARS:
        workload = Workload(query_count=count)
        queries, rows = draw_queries(workload), draw_rows(workload, 1000)
        sample = Sample(rows, hits(rows, queries.boxes))
        for name in PARTITIONERS:
            one = partial(steps_ms, name, workload, sample, queries, regions)
            one()  # warms up
            rounds = list(zip(*(one() for _ in range(ROUNDS)), strict=True))
            times = [*(median(step) for step in rounds), min(rounds[-1])]
            verdict = "" if most is None else f"  of {most}: {'holds' if times[3] <= most else 'MISSED'}"
            print(f"{count:>8} {regions:>8} {name:>8} " + " ".join(f"{ms:12.3f}" for ms in times) + verdict)


if __name__ == "__main__":
    main()
