"""Sifters and the query index, by themselves and on an embedded Spark.

lookup-L   region and decision of every row, one core, rows in memory
scan       Spark reads Parquet files; sift-L: the same with a sifter of L regions right behind the scan
match-Q    the engine tries every row of a batch against Q queries and writes what it finds
"""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tidegate.api.goal import SIFT_POLICIES
from tidegate.cli.arguments import positive_int
from tidegate_lab.commands.arguments import listed, name_among
from tidegate_lab.commands.bench_report import add_usual_arguments, print_figures, tell_bars
from tidegate_lab.commands.console import console_beside_spark

if TYPE_CHECKING:
    from rich.console import Console

    from tidegate_lab.bench.sift.run import Measured
    from tidegate_lab.workloads.sifters import Workload

HEADS = ("contender", "rows", "rate", "seconds", "fastest", "slowest", "found")
#: Files of the match benchmark: one a batch, the first ones on cold workers.
MATCH_FILES = 24


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    some = listed(positive_int)
    add("--regions", type=some, default="16,100", metavar="A,B", help="of the sifters (%(default)s)")
    add("--queries", type=some, default="1000,100000", metavar="A,B", help="of the matches (%(default)s)")
    add(
        "--sift",
        type=name_among(*SIFT_POLICIES),
        default="auto",
        metavar="NAME",
        help="how regions are made, as in tg.Shed (%(default)s)",
    )
    add("--rows", type=positive_int, default=16_000_000, metavar="N", help="of the scan (%(default)s)")
    add("--batch", type=positive_int, default=1_000_000, metavar="N", help="rows of a match (%(default)s)")
    add("--rounds", type=positive_int, default=15, metavar="N", help="of the scans (%(default)s)")
    add(
        "--whole-normals",
        action="store_true",
        help="rows may lie out of the hot spots, the other reading of the paper",
    )
    add_usual_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    from tidegate_lab.bench.sift.bars import rows_of_report, sift_bars
    from tidegate_lab.bench.sift.lookups import lookups
    from tidegate_lab.workloads.sifters import Workload

    workload = Workload(seed=arguments.seed, whole_normals=arguments.whole_normals)
    regions = arguments.regions
    with console_beside_spark(arguments.json) as console:
        looked_up = lookups(workload, regions, arguments.sift, arguments.rounds)
        scans, matches = _on_spark(arguments, console, workload, regions)
    rows, bars = rows_of_report([*looked_up, *scans, *matches]), sift_bars(scans, matches, looked_up)
    print_figures(
        console, "rows a second; seconds of a usual round, the fastest and the slowest", HEADS, rows
    )
    tell_bars(console, "bench sift", arguments, rows, bars)
    return 0


def _on_spark(
    arguments: argparse.Namespace, console: Console, workload: Workload, regions: list[int]
) -> tuple[list[Measured], list[Measured]]:
    from dataclasses import replace

    from tidegate.cli.demo.outcome import say
    from tidegate.driver.session import embedded_session
    from tidegate_lab.bench.sift.feed import queries, write
    from tidegate_lab.bench.sift.run import matching, scans

    session = embedded_session("tidegate bench sift", cores=2, memory="4g")
    try:
        with TemporaryDirectory(prefix="tidegate-sift-", dir=arguments.temp) as temporary:
            folder = Path(temporary)
            write(folder / "scan", workload, arguments.rows, files=4)
            say(console, f"scan of {arguments.rows:,} rows")
            scanned = scans(session, folder / "scan", workload, regions, arguments.sift, arguments.rounds)
            matches = []
            for number in arguments.queries:
                asked = replace(workload, query_count=number)
                write(folder / f"rows-{number}", asked, MATCH_FILES * arguments.batch, MATCH_FILES)
                say(console, f"{number:,} queries, batches of {arguments.batch:,} rows")
                one = matching(session, folder / f"rows-{number}", queries(asked), f"match-{number}", folder)
                matches.append(one)
    finally:
        session.stop()
    return scanned, matches
