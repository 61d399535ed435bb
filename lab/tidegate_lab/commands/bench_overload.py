"""A join that gets more than the machine can take, on an embedded Spark.

day      One scripted day in minutes: calm, four times the rows, ten times, a ramp, a jump of the hot keys, a
         slow sink. The same rows, one after the other, for this controller, for random drop to the same goal,
         for Spark's own join, and for Spark's own with a limit of rows a batch. What was found is compared
         with the exact answer, tick by tick: a table, the bars, a picture.
steady   A rush that does not end, policy against policy (what tg.Shed(join=…) takes), side by side; of sets,
         through an index, by a function of the user's, or by equality, with and without correlation in time.

How much the machine can do is measured first, so that a rush is a rush on any machine.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tidegate.api.goal import JOIN_POLICIES
from tidegate.cli.arguments import positive_number, whole_number
from tidegate_lab.commands.arguments import listed, name_among

CONTENDERS, POLICIES = "tidegate,random,spark,spark-capped", "auto,random_drop"
PLOTS = "bench-overload"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--scenario", choices=("day", "steady"), default="day", help="(%(default)s)")
    add("--rate", type=positive_number, metavar="N", help="rows a second of each stream (else measured)")
    add("--seed", type=whole_number, default=7, metavar="N", help="same seed, same rows (%(default)s)")
    add("--temp", type=Path, metavar="DIR", help="where data goes, and is removed (the system's)")
    add("--json", metavar="FILE", help="write all figures and samples; - for standard output")
    add = parser.add_argument_group("day").add_argument
    contenders, policies = listed(name_among(*CONTENDERS.split(","))), listed(name_among(*JOIN_POLICIES))
    add("--contenders", type=contenders, default=CONTENDERS, metavar="A,B", help="who plays it (%(default)s)")
    add("--minutes", type=positive_number, default=4.0, metavar="X", help="of the day (%(default)g)")
    add("--quick", action="store_true", help="a few seconds of few rows: shows that all works")
    add("--plots", type=Path, default=Path(PLOTS), metavar="DIR", help="for the picture (%(default)s)")
    add = parser.add_argument_group("steady").add_argument
    add(
        "--policies",
        type=policies,
        default=POLICIES,
        metavar="A,B",
        help="what tg.Shed(join=…) takes (%(default)s)",
    )
    add(
        "--join",
        choices=("overlap", "indexed", "pairwise", "equality"),
        default="overlap",
        help="(%(default)s)",
    )
    add("--uncorrelated", action="store_true", help="matches do not depend on the time between rows")
    add("--times", type=positive_number, default=4.2, metavar="X", help="work over capacity (%(default)g)")
    add("--calm", type=positive_number, default=25.0, metavar="S", help="seconds (%(default)g)")
    add("--rush", type=positive_number, default=70.0, metavar="S", help="seconds (%(default)g)")


def run(arguments: argparse.Namespace) -> int:
    from tidegate_lab.commands import overload_day, overload_steady

    return overload_day.run(arguments) if arguments.scenario == "day" else overload_steady.run(arguments)
