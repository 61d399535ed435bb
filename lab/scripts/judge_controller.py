#!/usr/bin/env python3
"""Judges the goal controller of the installed Tidegate over generated scenarios, on a simulated clock.

    lab/scripts/judge_controller.py [--seeds 0:40] [--json FILE] [--table]

Metrics are those of `simulate/goal/metrics.py`. All repeats exactly. Seeds from 1000 on are for the table
alone: they are refused without `--table`, which counts the play in a committed file.
"""

from __future__ import annotations

import argparse
from time import process_time

from tidegate.observe.json_frame import Frame, write_frame
from tidegate_lab.simulate.goal.judge import (
    HELD_BACK,
    Judged,
    bars,
    count_a_play,
    headline,
    judge,
    seeds_in,
    times_judged,
)
from tidegate_lab.simulate.goal.metrics import METRICS


def line(one: Judged) -> str:
    shown = [getattr(one.verdict, name) for name in METRICS]
    cells = " ".join(f"{'-':>9}" if value is None else f"{value:9.3f}" for value in shown)
    counts = f"{one.verdict.judged:5.0f} {one.verdict.apart:5.0f}"
    return f"{one.seed:5} {one.rate:9} {one.disturbance:8} {cells} {counts}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=seeds_in, default=seeds_in("0:40"))
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--table", action="store_true", help=f"seeds from {HELD_BACK}; is counted")
    parser.add_argument("--quiet", action="store_true", help="no line per scenario")
    given = parser.parse_args()
    if given.seeds.stop > HELD_BACK:
        if not given.table:
            parser.error(f"seeds from {HELD_BACK} on are for the table alone. Use seeds below, or --table")
        count_a_play()
    names = " ".join(f"{name:>9.9}" for name in METRICS)
    print(f"{'seed':>5} {'rate':9} {'machine':8} {names} {'count':>5} {'apart':>5}")
    judged, began = [], process_time()
    for seed in given.seeds:
        judged.append(judge(seed))
        if not given.quiet:
            print(line(judged[-1]), flush=True)
    found = headline(judged)
    for part in ("median", "p5"):
        cells = " ".join(f"{found.get(f'{name}.{part}', float('nan')):9.3f}" for name in METRICS)
        print(f"{part:>24} {cells}")
    for bar in bars(found):
        value = "none" if bar.value is None else f"{bar.value:.4f}"
        print(f"{'met' if bar.holds else 'MISSED':7} {bar.id:32} {value:>8} {bar.target:>8} {bar.unit}")
    print(f"{found.get('on_time.all', float('nan')):.4f} of all judged batches are on time")
    print(f"{process_time() - began:.0f} s of processor time")
    print(f"seeds from {HELD_BACK} on were played {times_judged()} times")
    if given.json:
        rows = [*(one.row() for one in judged), {"headline": found, "held_back_plays": times_judged()}]
        write_frame(Frame("judge_controller", given.seeds.start, rows, bars(found)), given.json)


if __name__ == "__main__":
    main()
