#!/usr/bin/env python3
"""Halves and doubles every number of the control tuning, switches mechanisms off, and prints what that moves.

    lab/scripts/ablate_control.py [--seeds 0:72] [--jobs 1] [--only ease. margin.] [--table FILE]

Movements are means over development seeds in points (`simulate/goal/ablation.py`). A seed takes about a
second for each variant, and there are two for each number. All repeats exactly, whatever `--jobs` is.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from tidegate.control.goal.goal_values import GoalSettings
from tidegate.observe.json_frame import Frame, write_frame
from tidegate_lab.simulate.goal.ablation import (
    Variant,
    means,
    measured,
    moved,
    of_mechanisms,
    of_numbers,
    table,
)
from tidegate_lab.simulate.goal.judge import HELD_BACK, seeds_in
from tidegate_lab.simulate.goal.metrics import Verdict


def variants(only: Sequence[str]) -> list[Variant]:
    """Numbers of the tuning that the goal has by default, where it has one, and mechanisms."""
    tuning = getattr(GoalSettings(1.0), "tuning", None)
    found = [*([] if tuning is None else of_numbers(tuning)), *of_mechanisms()]
    return [one for one in found if not only or one.name.startswith(tuple(only))]


def verdicts(only: Sequence[str], seed: int) -> list[Verdict]:
    # Variants hold functions, which cannot be sent to another process: each makes its own.
    return measured(seed, variants(only))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=seeds_in, default=seeds_in("0:72"))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=[], help="beginnings of names")
    parser.add_argument("--table", type=Path)
    parser.add_argument("--json", metavar="FILE")
    given = parser.parse_args()
    if given.seeds.stop > HELD_BACK:
        parser.error(f"seeds from {HELD_BACK} on are for the judge's table alone. Use seeds below")
    with ProcessPoolExecutor(given.jobs) as pool:
        rows = list(pool.map(partial(verdicts, given.only), given.seeds))
    found = moved(rows, variants(given.only))
    text = table(found, given.seeds, means(rows))
    print(text)
    if given.table is not None:
        given.table.write_text(text, encoding="utf-8")
    if given.json:
        lines = [one.row() for one in found]
        write_frame(Frame("ablate_control", given.seeds.start, lines), given.json)


if __name__ == "__main__":
    main()
